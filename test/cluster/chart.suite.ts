/** The chart as Helm renders it, validated by the API server itself, for every values file in ci/. */
import { execFileSync, spawnSync } from 'node:child_process'
import { readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest'
import { type JsonObject, listAt, objectAt } from '../../sidecar/injector/pod/json.ts'
import { type Cluster, NAMESPACE, startCluster } from './cluster.ts'
import { define, missingFrom, objectsOf, pathOf } from './objects.ts'

const CHART = 'charts/portcullis'
const VALUES = [
  ...readdirSync(join(CHART, 'ci')).map((name) => join(CHART, 'ci', name)),
  ...['first-try', 'production'].map((name) => join(CHART, `values-${name}.yaml`)),
]
const binaries = inject('binaries')
/** The values files for users leave it out. */
const ISSUER = ['--set', 'pdp.issuer=https://id.example.com']
let cluster: Cluster

beforeAll(async () => {
  cluster = await startCluster(binaries)
  for (const name of [NAMESPACE, 'invoices', 'reports']) await cluster.namespace(name)
  for (const path of binaries.definitions) await define(cluster.kube, path)
})
afterAll(() => cluster?.close())

const helm = (...words: readonly string[]): string =>
  execFileSync(binaries.helm, words, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] })
const render = (values: string, ...more: readonly string[]): string =>
  helm('template', 'portcullis', CHART, '--namespace', NAMESPACE, '--values', values, ...ISSUER, ...more)

describe.each(VALUES)('%s', (values) => {
  test('passes helm lint', () => {
    expect(helm('lint', CHART, '--strict', '--values', values, ...ISSUER)).toContain('0 chart(s) failed')
  })

  test('is rendered twice without a difference', () => {
    expect(render(values)).toBe(render(values))
  })

  test('is accepted by the API server, every field known to it', async () => {
    const objects = objectsOf(render(values))
    expect(objects.length).toBeGreaterThan(4)
    for (const object of objects) {
      const path = `${await pathOf(cluster.kube, object)}?dryRun=All&fieldValidation=Strict`
      const account = object.kind === 'Pod' ? objectAt(object.spec, 'spec').serviceAccountName : undefined
      // Admission looks for the account of a Pod.
      const accounts = `/api/v1/namespaces/${NAMESPACE}/serviceaccounts`
      if (account !== undefined) await cluster.kube.must('POST', accounts, { metadata: { name: account } })
      const answer = await cluster.kube.send('POST', path, object)
      if (account !== undefined) await cluster.kube.must('DELETE', `${accounts}/${account}`)
      const what = `${object.kind}/${objectAt(object.metadata, 'metadata').name}`
      expect([what, answer.status, answer.body.message, answer.warnings]).toEqual([what, 201, undefined, []])
      // A tool that compares Git with the cluster would apply it again and again.
      expect([what, missingFrom(object, answer.body)]).toEqual([what, []])
    }
  })

  test('shows no difference after it was applied', () => {
    const manifests = join(cluster.folder, 'manifests.yaml')
    writeFileSync(manifests, render(values))
    const kubectl = (...words: readonly string[]) =>
      spawnSync(binaries.kubectl, [...words, '-f', manifests], {
        encoding: 'utf8',
        env: { ...process.env, KUBECONFIG: cluster.kubeconfig },
      })
    expect(kubectl('apply')).toMatchObject({ status: 0, stderr: '' })
    expect(kubectl('diff')).toMatchObject({ status: 0, stdout: '', stderr: '' })
    expect(kubectl('delete', '--wait=false')).toMatchObject({ status: 0 })
  })

  test('makes Pods that Pod Security restricted admits', async () => {
    await cluster.kube.send('PATCH', `/api/v1/namespaces/${NAMESPACE}`, [
      { op: 'add', path: '/metadata/labels/pod-security.kubernetes.io~1enforce', value: 'restricted' },
    ])
    for (const { kind, spec, metadata } of objectsOf(render(values)).filter(
      ({ kind }) => kind === 'Deployment' || kind === 'Pod',
    )) {
      const template =
        kind === 'Pod' ? { metadata: metadata ?? {}, spec: spec ?? {} } : objectAt(objectAt(spec, '').template, '')
      const podSpec = { ...objectAt(template.spec, ''), serviceAccountName: 'default', priorityClassName: null }
      const labels = objectAt(template.metadata, '').labels ?? {}
      const answer = await cluster.kube.send('POST', `/api/v1/namespaces/${NAMESPACE}/pods?dryRun=All`, {
        metadata: { name: 'restricted', labels },
        spec: podSpec,
      })
      expect([answer.status, answer.body.message]).toEqual([201, undefined])
    }
  })
})

describe('values that are refused', () => {
  test.each([
    ['a misspelt failurePolicy', 'injector.webhook.failurePolicy=fail'],
    ['a misspelt name', 'injector.webhok.failurePolicy=Fail'],
    ['a misspelt name at the top', 'pdpp.enabled=true'],
    ['an issuer without https', 'pdp.issuer=http://id.example.com'],
    ['an issuer with a path', 'pdp.issuer=https://id.example.com/x'],
    ['a caBundle that is no PEM', 'injector.certificates.caBundle=abc'],
    ['a misspelt name of a reference', 'pdp.redis.secret=redis'],
    ['a reference without a key', 'pdp.database.key='],
    ['a misspelt key of the database', 'pdp.database.keys.username=user'],
    ['a parameter of the database with quotes', 'pdp.database.parameters="a"'],
    ['a platform that says more than it may', 'injector.sidecar.platform.routes=x'],
    ['a platform whose PDP has no certificate', 'injector.sidecar.platform.pdp.insecure=true'],
    ['a platform that lets route files say anything', 'injector.sidecar.platform.overridable={upstream}'],
    ['a name of namespaces with a dot', 'onboarding.namespaces={team.*}'],
    ['a source of entitlements without https', 'pdp.entitlementSource.url=http://billing.example.com'],
    ['a source of entitlements with a user', 'pdp.entitlementSource.url=https://a:b@billing.example.com'],
    ['a misspelt setting of the sidecar', 'injector.sidecar.dpopNonce.secretName=x'],
    ['a log level that is none', 'injector.sidecar.logLevel=loud'],
    ['a pull secret that is an object', 'injector.sidecar.imagePullSecrets[0].name=registry'],
    ['a trusted proxy that is a name', 'pdp.trustedProxies={ingress.example.com}'],
    ['no replica', 'pdp.replicas=0'],
    ['a sidecar as root', 'injector.sidecar.runAsUser=0'],
    ['a webhook that waits for a minute', 'injector.webhook.timeoutSeconds=60'],
    ['a webhook over kube-system', 'injector.webhook.excludedNamespaces={default}'],
    ['a digest that is none', 'pdp.image.digest=sha256:1'],
    ['a caller without a namespace', 'pdp.grpc.serviceAccounts.callers={checkout}'],
    ['every ServiceAccount of the cluster as callers', 'pdp.grpc.serviceAccounts.callers={*/*}'],
    ['a caller twice', 'pdp.grpc.serviceAccounts.callers={shop/*,shop/*}'],
    ['an extra variable that is text', 'pdp.extraEnv={HOME}'],
    ['an extra volume without a name', 'pdp.extraVolumes[0].emptyDir.medium=Memory'],
    ['an IP family that is none', 'ipFamilies.families={IPv5}'],
    ['a family twice', 'ipFamilies.families={IPv4,IPv4}'],
    ['the injector on a port of the system', 'injector.webhook.port=443'],
    ['the injector on the port of its metrics', 'injector.webhook.port=15094'],
    ['a mode of certificates that is none', 'injector.certificates.mode=own'],
    ['a Gateway without a name', 'pdp.gateway.parentRefs[0].namespace=gateways'],
    ['a condition without an expression', 'injector.webhook.matchConditions[0].name=a'],
    ['a first port of the sidecars for the system', 'injector.sidecar.port=1023'],
    ['a first port of the sidecars without room for the others', 'injector.sidecar.port=65519'],
    ['a first port of the sidecars that is a name', 'injector.sidecar.port=http'],
    ['a first port of the sidecars with a fraction', 'injector.sidecar.port=15080.5'],
    ['no port of the sidecars', 'injector.sidecar.port=null'],
    ['two ports of the sidecars', 'injector.sidecar.port={15080,15094}'],
    ['a former port that is a name', 'injector.sidecar.formerPort=http'],
    ['a former port for the system', 'injector.sidecar.formerPort=80'],
    ['an exception of the proxy that is a network', 'injector.sidecar.egressProxy.noProxy=10.0.0.0/8'],
    ['a port past the end', 'protectedNamespaces[0].name=x,protectedNamespaces[0].unprotectedPorts[0]=65536'],
  ])('%s', (_what, set) => {
    expect(() => render(`${CHART}/ci/minimal-values.yaml`, '--set', set)).toThrow(
      /values don't meet the specifications/,
    )
  })

  test.each([
    ['no issuer', 'pdp.issuer=', 'pdp.issuer'],
    ['no Secret for the PDP', 'pdp.secretName=', 'pdp.secretName'],
    [
      'no callers of the PDP',
      'pdp.grpc.serviceAccounts.issuer=https://kubernetes.default.svc',
      'pdp.grpc.serviceAccounts.callers',
    ],
    ['no authority', 'injector.certificates.caBundle=', 'injector.certificates.caBundle'],
    [
      'no token for the source of entitlements',
      'pdp.entitlementSource.url=https://billing.example.com',
      'pdp.entitlementSource.secretName',
    ],
    ['a database of parts without its user', 'pdp.database.keys.host=host', 'pdp.database.keys.user'],
    ['parts of a database without its host', 'pdp.database.keys.user=username', 'pdp.database.keys.host is empty'],
    ['onboarding without bounds', 'onboarding.enabled=true', 'onboarding.namespaces'],
    [
      'a platform without a PDP',
      'injector.sidecar.platform.enabled=true,pdp.enabled=false',
      'injector.sidecar.platform: pdp and issuers',
    ],
    [
      'a platform with a dollar sign',
      'injector.sidecar.platform.enabled=true,injector.sidecar.platform.issuers[0].issuer=https://$(HOST)',
      'injector.sidecar.platform must not contain $',
    ],
    ['a variable that the chart sets', 'pdp.extraEnv[0].name=PORTCULLIS_ISSUER', 'pdp.extraEnv: PORTCULLIS_ISSUER'],
    ['a variable twice', 'pdp.extraEnv[0].name=A,pdp.extraEnv[1].name=A', 'pdp.extraEnv: A is there twice'],
    ['a volume that the chart has', 'pdp.extraVolumes[0].name=tls', 'pdp.extraVolumes: tls'],
    [
      'a namespace twice',
      'protectedNamespaces[0].name=shop,protectedNamespaces[1].name=shop',
      'protectedNamespaces: shop is there twice',
    ],
    [
      'the port of a sidecar as one without',
      'protectedNamespaces[0].name=x,protectedNamespaces[0].unprotectedPorts[0]=15080',
      'unprotectedPorts: 15080 is a port of sidecars (injector.sidecar.port)',
    ],
    [
      'the port of a sidecar that was moved as one without',
      'injector.sidecar.port=16080,protectedNamespaces[0].name=x,protectedNamespaces[0].unprotectedPorts[0]=16097',
      'unprotectedPorts: 16097 is a port of sidecars',
    ],
    [
      'the port of a sidecar in namespaces that onboard themselves',
      'onboarding.enabled=true,onboarding.namespaces={a},onboarding.unprotectedPorts={15083}',
      'unprotectedPorts: 15083 is a port of sidecars',
    ],
    [
      'sidecars at a port of Istio',
      'injector.sidecar.port=15076',
      'injector.sidecar.port: 15076 gives sidecars the ports 15076 to 15079 and 15090 to 15093, and 15090 is a port of Istio; choose another',
    ],
    ['sidecars at a port of Linkerd', 'injector.sidecar.port=4188', '4190 is a port of Linkerd'],
    ['sidecars at a port of Consul', 'injector.sidecar.port=8299', '8300 is a port of Consul'],
    ['sidecars at a port of Dapr', 'injector.sidecar.port=7777', '7777 is a port of Dapr'],
    ['sidecars at a port of Kuma', 'injector.sidecar.port=9888', '9902 is a port of Kuma'],
    ['a Gateway that nobody named', 'pdp.gateway.enabled=true', 'pdp.gateway.parentRefs'],
    ['monitors that no policy lets in', 'metrics.serviceMonitor.enabled=true', 'networkPolicy.metricsFrom is empty'],
    [
      'fewer Pods at most than at least',
      'pdp.autoscaling.enabled=true,pdp.autoscaling.minReplicas=5,pdp.autoscaling.maxReplicas=3',
      'pdp.autoscaling: minReplicas 5 is more than maxReplicas 3',
    ],
  ])('%s', (_what, set, name) => {
    expect(() => render(`${CHART}/ci/minimal-values.yaml`, '--set', set)).toThrow(name)
  })
})

test("the PDP is open to sidecars and the chart's test alone until the operator names others", () => {
  const policies = (...set: readonly string[]): readonly JsonObject[] =>
    objectsOf(render(`${CHART}/ci/minimal-values.yaml`, ...set)).filter(
      ({ kind, metadata }) => kind === 'NetworkPolicy' && objectAt(metadata, '').name === 'portcullis-pdp',
    )
  const sidecars = {
    ports: [{ protocol: 'TCP', port: 9090 }],
    from: [{ podSelector: { matchExpressions: [{ key: 'portcullis.dev/injected', operator: 'Exists' }] } }],
  }
  const [closed] = policies()
  const ports = [8080, 9090].map((port) => ({ protocol: 'TCP', port }))
  const own = { ports, from: [{ podSelector: { matchLabels: { 'app.kubernetes.io/component': 'test' } } }] }
  expect(objectAt(closed?.spec, '').ingress).toMatchObject([sidecars, own])
  expect(objectAt(closed?.spec, '').ingress).toHaveLength(2)
  const label = 'namespaceSelector.matchLabels.team=edge'
  const [opened] = policies('--set', `networkPolicy.pdpFrom[0].${label}`)
  const from = [{ namespaceSelector: { matchLabels: { team: 'edge' } } }]
  expect(objectAt(opened?.spec, '').ingress).toMatchObject([sidecars, own, { ports, from }])
})

test('the PDP takes the parts of its database’s URL from the keys that the operator names, and then no URL', () => {
  const keys = { host: 'host', port: 'port', user: 'username', password: 'password', database: 'dbname' }
  const set = Object.entries(keys).map(([part, key]) => `pdp.database.keys.${part}=${key}`)
  const [pdp] = objectsOf(
    render(`${CHART}/ci/minimal-values.yaml`, '--set', [...set, 'pdp.database.secretName=cnpg-app'].join(',')),
  ).filter(({ kind, metadata }) => kind === 'Deployment' && objectAt(metadata, '').name === 'portcullis-pdp')
  const template = objectAt(objectAt(objectAt(pdp?.spec, '').template, '').spec, '')
  const [container] = listAt(template.containers, '').map((one) => objectAt(one, ''))
  const from = listAt(container?.env, '')
    .map((one) => objectAt(one, ''))
    .filter(({ name }) => String(name).includes('DATABASE'))
  expect(from).toEqual(
    ['host', 'port', 'username', 'password', 'dbname'].map((key, at) => ({
      name: `PORTCULLIS_DATABASE_${['HOST', 'PORT', 'USER', 'PASSWORD', 'NAME'][at]}`,
      valueFrom: { secretKeyRef: { name: 'cnpg-app', key } },
    })),
  )
})

test('one value moves the ports of the sidecars in everything that names them', () => {
  const objects = (port: number, former: number): readonly JsonObject[] => {
    const ports = `injector.sidecar.port=${port},injector.sidecar.formerPort=${former}`
    const scrapers = 'networkPolicy.metricsFrom[0].podSelector.matchLabels.app=prometheus'
    const values = `protectedNamespaces[0].name=invoices,${scrapers},${ports}`
    return objectsOf(render(`${CHART}/ci/minimal-values.yaml`, '--set', values))
  }
  const openIn = (rendered: readonly JsonObject[]): readonly unknown[] =>
    rendered
      .filter(({ metadata }) => objectAt(metadata, '').namespace === 'invoices')
      .flatMap(({ spec }) => listAt(objectAt(spec, '').ingress, '').map((rule) => objectAt(rule, '')))
      .flatMap(({ ports }) => listAt(ports, '').map((one) => objectAt(one, '').port))
  const all = (first: number) => [0, 1, 2, 3].flatMap((at) => [first + at, first + 14 + at])
  const moved = objects(16_080, 16_080)
  expect(openIn(moved)).toEqual(all(16_080))
  expect(openIn(objects(17_080, 16_080))).toEqual([...all(16_080), ...all(17_080)])
  const text = JSON.stringify(moved)
  expect(text).toContain('\\nport: 16080\\n')
  for (const name of ['port', 'former']) expect(text).toContain(`{"name":"${name}","expression":"16080"}`)
  expect(text).toContain('[16080].exists(first, p.targetPort >= first')
})

test('native sidecars are used from Kubernetes 1.32 and not below', () => {
  const native = (version: string): string => render(`${CHART}/ci/minimal-values.yaml`, '--kube-version', version)
  expect(native('1.32.0')).toContain('nativeSidecars: true')
  expect(native('v1.34.1-eks-1')).toContain('nativeSidecars: true')
  expect(native('1.31.9')).toContain('nativeSidecars: false')
  expect(() => native('1.29.0')).toThrow('kubeVersion')
})
