/** The ways that lead past a sidecar: what closes each, who is warned of it, and what `check-cluster` says. */
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest'
import { type JsonObject, listAt, objectAt } from '../../sidecar/injector/pod/json.ts'
import { podWith } from '../sidecar/injector/pod/pods.ts'
import { type Cluster, installWords, NAMESPACE, startCluster, until } from './cluster.ts'
import type { KubeAnswer } from './kube-client.ts'
import { storeRoutes } from './objects.ts'

const POLICIES = '/apis/networking.k8s.io/v1/namespaces/invoices/networkpolicies'
const SLICES = '/apis/discovery.k8s.io/v1/namespaces/invoices/endpointslices'
const PROTECTED = ['--set', 'protectedNamespaces[0].name=invoices']
let cluster: Cluster
let authority = ''

beforeAll(async () => {
  cluster = await startCluster(inject('binaries'))
  await cluster.namespace(NAMESPACE)
  authority = await cluster.certify('first')
  cluster.helm(...installWords('install', authority))
  await cluster.serve()
  await cluster.namespace('invoices', { 'portcullis.dev/inject': 'enabled' })
  await cluster.namespace('payments', { 'portcullis.dev/inject': 'required' })
  for (const namespace of ['invoices', 'payments']) await storeRoutes(cluster.kube, namespace)
})
afterAll(() => cluster?.close())

let count = 0
async function create(namespace: string, over: Parameters<typeof podWith>[0] = {}): Promise<JsonObject> {
  count += 1
  const pod = podWith({ labels: { app: 'invoices' }, ...over })
  const metadata = { ...objectAt(pod.metadata, 'metadata'), name: `pod-${count}` }
  return cluster.kube.must('POST', `/api/v1/namespaces/${namespace}/pods`, { ...pod, metadata })
}
const message = ({ body }: KubeAnswer): string => String(body.message)

const check: Cluster['check'] = (...words) => cluster.check(...words)

describe('the IP of a Pod and the port of its app (K8S-001)', () => {
  test('are open as long as no network policy selects the Pod, which is listed', async () => {
    await create('invoices')
    const { status, stdout } = check('--namespace', 'invoices')
    expect(status).toBe(1)
    expect(stdout).toMatch(/policy_missing {2}invoices\/Pod\/pod-1/)
    expect(stdout).not.toMatch(/webhook_missing|backstop_missing|webhook_open|backstop_open/)
  })

  test('are closed by the policies of the chart, which admit the numbers of the sidecars that a Pod has', async () => {
    cluster.helm(...installWords('upgrade', authority, PROTECTED))
    expect(check('--namespace', 'invoices')).toMatchObject({
      status: 0,
      stdout: expect.stringMatching(/^0 findings\n/),
    })
    const { items } = await cluster.kube.must('GET', POLICIES)
    const admitted = listAt(items, 'items')
      .map((item) => objectAt(objectAt(item, 'item').spec, 'spec'))
      .map(({ podSelector, ingress }) => [podSelector, ingress])
    expect(admitted).toEqual([
      ...[15_080, 15_081, 15_082, 15_083].map((port, at) => [
        {
          matchExpressions: [
            { key: 'portcullis.dev/injected', operator: 'In', values: ['1', '2', '3', '4'].slice(at) },
          ],
        },
        [{ ports: [{ port, protocol: 'TCP' }] }],
      ]),
      [{ matchExpressions: [{ key: 'portcullis.dev/injected', operator: 'Exists' }] }, undefined],
    ])
  })

  test('are opened again by a policy beside them, which is listed', async () => {
    await cluster.kube.must('POST', POLICIES, {
      metadata: { name: 'open' },
      spec: { podSelector: { matchLabels: { app: 'invoices' } }, ingress: [{ ports: [{ port: 8080 }] }] },
    })
    const { stdout } = check('--namespace', 'invoices')
    expect(stdout).toContain('policy_bypass  invoices/NetworkPolicy/open')
    expect(stdout).not.toContain('NetworkPolicy/portcullis-sidecars')
    await cluster.kube.must('DELETE', `${POLICIES}/open`)
  })
})

describe('a Service', () => {
  const service = (name: string, targetPort: number | string): Promise<KubeAnswer> =>
    cluster.kube.send('POST', '/api/v1/namespaces/invoices/services', {
      metadata: { name },
      spec: { selector: { app: 'invoices' }, ports: [{ port: 80, targetPort }] },
    })

  test.each([
    ['a number', 'by-number', 8080],
    ["the app's own name", 'by-hidden-name', 'app-http'],
    ['a sidecar that its Pods do not have', 'by-other-sidecar', 15_081],
  ])('that targets %s is warned of and listed (K8S-002)', async (_what, name, target) => {
    const said = expect.stringContaining('use the name of the protected port')
    // Admission does not know which Pods a Service selects.
    const warnings = target === 15_081 ? [] : [said]
    expect(await service(name, target)).toMatchObject({ status: 201, warnings })
    expect(check('--namespace', 'invoices').stdout).toContain(`service_bypass  invoices/Service/${name}`)
    await cluster.kube.must('DELETE', `/api/v1/namespaces/invoices/services/${name}`)
  })

  test.each([
    ['the name of the protected port', 'by-name', 'http'],
    ["the sidecar's number", 'by-sidecar', 15_080],
  ])('that targets %s is neither', async (_what, name, target) => {
    expect(await service(name, target)).toMatchObject({ status: 201, warnings: [] })
    expect(check('--namespace', 'invoices').stdout).not.toContain(name)
  })

  test('is listed when a Pod without a sidecar is among its own', async () => {
    const annotations = { 'portcullis.dev/ports': 'none', 'portcullis.dev/unprotected-ports': 'http' }
    const { metadata } = await create('invoices', { annotations })
    const { name } = objectAt(metadata, 'metadata')
    expect(check('--namespace', 'invoices').stdout).toContain(`of Pod ${name}, which has no sidecar`)
    await cluster.kube.must('DELETE', `/api/v1/namespaces/invoices/pods/${name}?gracePeriodSeconds=0`)
  })
})

test('endpoints written by hand to the port of an app are listed', async () => {
  const { metadata } = await create('invoices')
  const pod = `/api/v1/namespaces/invoices/pods/${objectAt(metadata, 'metadata').name}`
  // What its kubelet would say.
  const status = { podIP: '10.0.0.7', podIPs: [{ ip: '10.0.0.7' }] }
  await cluster.kube.must('PATCH', `${pod}/status`, [{ op: 'replace', path: '/status', value: status }])
  await cluster.kube.must('POST', SLICES, {
    metadata: {
      name: 'by-hand',
      labels: { 'endpointslice.kubernetes.io/managed-by': 'endpointslice-controller.k8s.io' },
    },
    addressType: 'IPv4',
    endpoints: [{ addresses: ['10.0.0.7'] }],
    ports: [{ port: 8080 }],
  })
  expect(check('--namespace', 'invoices').stdout).toContain('service_bypass  invoices/EndpointSlice/by-hand')
  await cluster.kube.must('DELETE', `${SLICES}/by-hand`)
})

describe('a guard with a hole is listed, and not once it is mended:', () => {
  const ADMISSION = '/apis/admissionregistration.k8s.io/v1'
  const names = ['pods', 'changes', 'bindings', 'namespaces'] as const
  /** What is stored, as it is sent to make it again. */
  async function saved(path: string): Promise<JsonObject> {
    const { metadata, ...rest } = await cluster.kube.must('GET', path)
    const { name, labels, annotations } = objectAt(metadata, 'metadata')
    return {
      ...rest,
      status: null,
      metadata: { name: name ?? '', labels: labels ?? {}, annotations: annotations ?? {} },
    }
  }

  test.each([
    ...names.map(
      (name) => ['a policy deleted, its binding left', `validatingadmissionpolicies/portcullis-${name}`] as const,
    ),
    ...names.map((name) => ['a binding deleted', `validatingadmissionpolicybindings/portcullis-${name}`] as const),
  ])('%s: %s', async (_what, path) => {
    const object = await saved(`${ADMISSION}/${path}`)
    await cluster.kube.must('DELETE', `${ADMISSION}/${path}`)
    expect(check().stdout).toContain('backstop_missing')
    await cluster.kube.must('POST', `${ADMISSION}/${path.split('/')[0]}`, object)
    expect(check().stdout).not.toMatch(/backstop|webhook/)
  })

  test.each([
    [
      'of one namespace',
      '/webhooks/0/namespaceSelector/matchExpressions/1/values/-',
      'invoices',
      'webhook_open  invoices/',
    ],
    ['of its operations', '/webhooks/0/rules/0/operations/0', 'UPDATE', 'webhook_open  Mutating'],
    ['of Pods', '/webhooks/1/objectSelector', { matchLabels: { protected: 'yes' } }, 'webhook_open  Mutating'],
  ])('a webhook narrowed by the selector %s', async (_what, path, value, said) => {
    const webhook = `${ADMISSION}/mutatingwebhookconfigurations/zz-portcullis-injector`
    const object = await saved(webhook)
    const op = path.endsWith('-') ? 'add' : 'replace'
    await cluster.kube.must('PATCH', webhook, [{ op, path, value }])
    expect(check().stdout).toContain(said)
    await cluster.kube.must('DELETE', webhook)
    await cluster.kube.must('POST', `${ADMISSION}/mutatingwebhookconfigurations`, object)
    expect(check().stdout).not.toMatch(/backstop|webhook/)
  })

  test('a policy whose rule admits everything', async () => {
    const path = `${ADMISSION}/validatingadmissionpolicies/portcullis-pods`
    const object = await saved(path)
    await cluster.kube.must('PATCH', path, [{ op: 'replace', path: '/spec/validations/2/expression', value: 'true' }])
    expect(check().stdout).toContain('backstop_open  ValidatingAdmissionPolicy/portcullis-pods')
    await cluster.kube.must('DELETE', path)
    await cluster.kube.must('POST', `${ADMISSION}/validatingadmissionpolicies`, object)
  })
})

describe('from inside a Pod, or through the API server', () => {
  test('the app is reached until backstop.denyDebug closes it where a sidecar is required (K8S-014)', async () => {
    const { metadata } = await create('payments')
    const path = `/api/v1/namespaces/payments/pods/${objectAt(metadata, '').name}`
    const shell = [
      { op: 'add', path: '/spec/ephemeralContainers', value: [{ name: 'shell', image: 'example/shell:1' }] },
    ]
    const attach = (): Promise<KubeAnswer> =>
      cluster.kube.send('PATCH', `${path}/ephemeralcontainers?dryRun=All`, shell)
    expect(await attach()).toMatchObject({ status: 200 })
    const services = '/api/v1/namespaces/payments/services'
    await cluster.kube.must('POST', services, {
      metadata: { name: 'invoices' },
      spec: { selector: { app: 'invoices' }, ports: [{ port: 80, targetPort: 'http' }] },
    })
    cluster.helm(...installWords('upgrade', authority, ['--set', 'backstop.denyDebug=true']))
    await until(async () => (await attach()).status === 422)
    const ways = [
      `${path}/exec?command=sh`,
      `${path}/attach`,
      `${path}/portforward?ports=8080`,
      `${path}:8080/proxy/`,
      `${services}/invoices:80/proxy/`,
    ]
    const answers = await Promise.all(ways.map((way) => cluster.kube.send('POST', way)))
    expect(answers.map(message)).toEqual(ways.map(() => expect.stringContaining('would reach the app past it')))
  })
})

test('Pods whose sidecar is older than the injector are listed until their workload restarts', async () => {
  cluster.helm(...installWords('upgrade', authority, [...PROTECTED, '--set', 'injector.image.tag=0.2.0']))
  expect(check().stdout).toMatch(
    /sidecar_outdated {2}invoices\/Pod\/pod-\d+ {2}its sidecar's image is not the injector's portcullis-sidecar:0\.2\.0/,
  )
})

test('what kubectl may not read is said, and nothing is called safe', () => {
  const { stdout, status } = check('--context', 'none')
  expect([stdout, status]).toEqual(['', 64])
})
