/** A namespace that onboards itself by its label, against a real API server: within bounds, with the chart's own rights, and closed without the label. */
import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest'
import { parse } from 'yaml'
import { isObject, type JsonObject, listAt, objectAt, textAt, textsAt } from '../../../sidecar/injector/pod/json.ts'
import { podWith } from '../../sidecar/injector/pod/pods.ts'
import { type Cluster, installWords, NAMESPACE, startCluster, until } from '../cluster.ts'
import type { KubeClient } from '../kube-client.ts'

const INJECT = 'portcullis.dev/inject'
const ROUTES = `portcullis: v1
resource: https://invoices.example.com
upstream: http://127.0.0.1:8080
routes:
  GET /invoices/{id}: viewer invoice:{id}
`
const VALUES = [
  'onboarding.enabled=true',
  'onboarding.namespaces={team-*}',
  'onboarding.matchLabels.tier=tenant',
  'injector.sidecar.authorities=portcullis-ca',
  'injector.sidecar.platform.enabled=true',
  'pdp.grpc.serviceAccounts.issuer=https://kubernetes.default.svc',
]
let cluster: Cluster
let authority = ''
/** May change namespaces, as the owner of a team's may. */
let owner: KubeClient
/** As the Deployment of onboarding. */
let own: KubeClient
let onboarding: ChildProcess | null = null
let log = ''

beforeAll(async () => {
  cluster = await startCluster(inject('binaries'))
  await cluster.namespace(NAMESPACE)
  authority = await cluster.certify('first')
  const ca = { metadata: { name: 'portcullis-ca' }, data: { 'ca.crt': readFileSync(authority, 'utf8') } }
  await cluster.kube.must('POST', `/api/v1/namespaces/${NAMESPACE}/configmaps`, ca)
  cluster.helm(...installWords('install', authority, ['--namespace', NAMESPACE, ...set(VALUES)]))
  await cluster.serve()
  owner = cluster.kubeAs(await tokenOf('owner'))
  const rules = [
    { apiGroups: [''], resources: ['namespaces', 'namespaces/status', 'namespaces/finalize'], verbs: ['*'] },
  ]
  await cluster.kube.must('POST', '/apis/rbac.authorization.k8s.io/v1/clusterroles', { metadata: { name: 'o' }, rules })
  await cluster.kube.must('POST', '/apis/rbac.authorization.k8s.io/v1/clusterrolebindings', {
    metadata: { name: 'o' },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'o' },
    subjects: [{ kind: 'ServiceAccount', name: 'owner', namespace: NAMESPACE }],
  })
  for (const name of ['team-a', 'team-b', 'team-c']) await cluster.namespace(name, { tier: 'tenant' })
  await cluster.namespace('team-guest')
  await cluster.namespace('others', { tier: 'tenant' })
  await startOnboarding()
  // The API server takes up policies after a moment. A label that it takes before then would stay.
  await until(async () => (await label('others', 'enabled', { at: '?dryRun=All' })).status === 422)
})
afterAll(async () => {
  await stopOnboarding()
  await cluster?.close()
})

const set = (values: readonly string[]): readonly string[] => values.flatMap((value) => ['--set', value])
const file = (name: string): string => join(cluster.folder, name)

async function tokenOf(account: string): Promise<string> {
  const accounts = `/api/v1/namespaces/${NAMESPACE}/serviceaccounts`
  await cluster.kube.send('POST', accounts, { metadata: { name: account } })
  const made = await cluster.kube.must('POST', `${accounts}/${account}/token`, { spec: { expirationSeconds: 3600 } })
  return textAt(objectAt(made.status, 'status').token, 'token') ?? ''
}

/** With the rights and the settings that the chart gives it, as its Deployment starts it. */
async function startOnboarding(): Promise<void> {
  const token = await tokenOf('portcullis-onboarding')
  own = cluster.kubeAs(token)
  writeFileSync(file('onboarding.token'), token)
  const { data } = await cluster.kube.must('GET', `/api/v1/namespaces/${NAMESPACE}/configmaps/portcullis-onboarding`)
  writeFileSync(file('onboarding.yaml'), textsAt(data, 'data').get('onboarding.yaml') ?? '')
  const config: unknown = parse(readFileSync(cluster.kubeconfig, 'utf8'))
  const [entry] = isObject(config) && Array.isArray(config.clusters) ? config.clusters : []
  const { server, 'certificate-authority-data': ca } = objectAt(objectAt(entry, '').cluster, '')
  writeFileSync(file('cluster-ca.pem'), Buffer.from(String(ca), 'base64'))
  const flags = [
    `--settings=${file('onboarding.yaml')}`,
    `--api-server=${server}`,
    `--token-file=${file('onboarding.token')}`,
  ]
  const env = { ...process.env, NODE_EXTRA_CA_CERTS: file('cluster-ca.pem') }
  const words = ['sidecar/main.ts', 'injector', 'onboard-namespaces', ...flags]
  onboarding = spawn(process.execPath, words, { env, stdio: ['ignore', 'pipe', 'inherit'] })
  onboarding.stdout?.setEncoding('utf8').on('data', (text: string) => {
    log += text
  })
}

async function stopOnboarding(): Promise<void> {
  if (onboarding === null || onboarding.exitCode !== null) return
  const ended = once(onboarding, 'exit')
  onboarding.kill('SIGTERM')
  await ended
}

const label = (namespace: string, value: string | null, { by = owner, at = '' } = {}) => {
  const path = '/metadata/labels/portcullis.dev~1inject'
  const change = value === null ? { op: 'remove', path } : { op: 'add', path, value }
  return by.send('PATCH', `/api/v1/namespaces/${namespace}${at}`, [change])
}
const makePod = (namespace: string) =>
  cluster.kube.send('POST', `/api/v1/namespaces/${namespace}/pods?dryRun=All`, podWith({}))
const exists = async (path: string): Promise<boolean> => (await cluster.kube.send('GET', path)).status === 200
const policyIn = (namespace: string, name: string): string =>
  `/apis/networking.k8s.io/v1/namespaces/${namespace}/networkpolicies/${name}`
const copyIn = (namespace: string): string => `/api/v1/namespaces/${namespace}/configmaps/portcullis-ca`
async function callers(): Promise<string> {
  const { data } = await cluster.kube.must('GET', `/api/v1/namespaces/${NAMESPACE}/configmaps/portcullis-callers`)
  return textsAt(data, 'data').get('callers') ?? ''
}

test('a label brings the authorities, the policies and the right to ask, and a ConfigMap with routes is all that is left', async () => {
  expect(await label('team-a', 'enabled')).toMatchObject({ status: 200 })
  const map = {
    metadata: { name: 'invoices-routes', labels: { 'portcullis.dev/route-file': 'true' } },
    data: { 'http.yaml': ROUTES },
  }
  expect(await cluster.kube.send('POST', '/api/v1/namespaces/team-a/configmaps', map)).toMatchObject({ status: 201 })
  await until(() => exists(policyIn('team-a', 'portcullis-sidecars')), 30)
  await until(async () => (await callers()) === 'team-a/*\n', 30)
  expect(objectAt((await cluster.kube.must('GET', copyIn('team-a'))).data, 'data')).toEqual({
    'ca.crt': readFileSync(authority, 'utf8'),
  })
  const { status, body } = await makePod('team-a')
  expect([status, body.message]).toEqual([201, undefined])
  const [sidecar] = listAt(objectAt(body.spec, 'spec').initContainers, '').map((one) => objectAt(one, ''))
  const platform = listAt(sidecar?.args, '')
    .map(String)
    .find((arg) => arg.startsWith('--platform='))
  expect(JSON.parse(platform?.slice('--platform='.length) ?? '')).toEqual({
    pdp: {
      address: 'portcullis-pdp.portcullis.svc:9090',
      ca_file: '/etc/portcullis/authorities/ca.crt',
      token_file: '/var/run/secrets/portcullis/token',
    },
    issuers: [{ issuer: 'https://id.example.com' }],
  })
  expect(log).toContain('"event":"namespace_onboarded"')
  expect(log).not.toContain('onboarded","reason"')
})

describe('the label is refused', () => {
  test.each([
    ['on a namespace with another name', 'others', 'enabled'],
    ['on a namespace without the operator’s label', 'team-guest', 'required'],
    ['with another value', 'team-b', 'on'],
  ])('%s', async (_, namespace, value) => {
    expect((await label(namespace, value)).status).toBe(422)
    expect(await exists(copyIn(namespace))).toBe(false)
  })
  test('on a namespace that is made with it', async () => {
    const made = { metadata: { name: 'outside', labels: { [INJECT]: 'enabled' } } }
    expect(await owner.send('POST', '/api/v1/namespaces', made)).toMatchObject({
      status: 422,
      body: { message: expect.stringContaining('may not have label portcullis.dev/inject') },
    })
  })
})

describe('without the label nothing opens', () => {
  beforeAll(async () => {
    await until(async () => (await label('team-c', 'required')).status === 200)
    await until(() => exists(policyIn('team-c', 'portcullis-no-sidecar')), 30)
  })
  test.each([
    ['', null],
    ['', 'enabled'],
    ['', 'disabled'],
    ['/status', null],
    ['/finalize', null],
  ])('its owner can neither remove nor weaken it: %s %s', async (at, value) => {
    const { status, body } = await label('team-c', value, { at })
    expect(status, JSON.stringify(body)).toBeGreaterThanOrEqual(400)
    const { metadata } = await cluster.kube.must('GET', '/api/v1/namespaces/team-c')
    expect(textsAt(objectAt(metadata, '').labels, '').get(INJECT)).toBe('required')
  })
  test('who has the verb may, Pods that ask are refused then, and the policies stay', async () => {
    const admin = { by: cluster.kube }
    expect(await label('team-a', null, admin)).toMatchObject({ status: 200 })
    await until(async () => (await makePod('team-a')).status === 422, 30)
    await until(async () => !(await callers()).includes('team-a'), 30)
    expect(await exists(policyIn('team-a', 'portcullis-sidecars'))).toBe(true)
    expect(await label('team-a', 'enabled')).toMatchObject({ status: 200 })
    await until(async () => (await callers()).includes('team-a/*'), 30)
  })
})

describe('its rights', () => {
  const named = (name: string, labels: JsonObject = { 'portcullis.dev/part': 'onboarding' }): JsonObject => ({
    metadata: { name, labels },
    data: { 'ca.crt': 'x' },
  })
  test.each([
    ['a ConfigMap with another name', 'team-a', named('routes')],
    ['a ConfigMap of a namespace without the label', 'others', named('portcullis-ca')],
    ['a ConfigMap of kube-system', 'kube-system', named('portcullis-ca')],
    ['a ConfigMap of the chart', NAMESPACE, named('portcullis-x')],
    ['a ConfigMap that is not marked as its own', 'team-b', named('portcullis-ca', {})],
  ])('do not suffice for %s', async (_, namespace, object) => {
    const { status } = await own.send('POST', `/api/v1/namespaces/${namespace}/configmaps`, object)
    expect([403, 422]).toContain(status)
  })
  test.each([
    ['Secrets', `/api/v1/namespaces/${NAMESPACE}/secrets`],
    ['route files', '/api/v1/namespaces/team-a/configmaps/invoices-routes'],
    ['all ConfigMaps', '/api/v1/configmaps'],
    ['Pods', '/api/v1/pods'],
  ])('do not suffice to read %s', async (_, path) => {
    expect((await own.send('GET', path)).status).toBe(403)
  })
  test('do not suffice to change what a team made', async () => {
    await cluster.kube.must('POST', '/api/v1/namespaces/team-b/configmaps', named('portcullis-ca', {}))
    expect(await label('team-b', 'enabled')).toMatchObject({ status: 200 })
    await until(async () => log.includes('ConfigMap team-b/portcullis-ca'), 30)
    const found = await cluster.kube.must('GET', copyIn('team-b'))
    expect(found.data).toEqual({ 'ca.crt': 'x' })
    expect([403, 422]).toContain((await own.send('PUT', copyIn('team-b'), { ...found, data: {} })).status)
  })
})

describe('a policy that the chart no longer wants', () => {
  const made = (name: string, labels: JsonObject): JsonObject => ({
    metadata: { name, labels },
    spec: { podSelector: {}, policyTypes: ['Ingress'], ingress: [{ ports: [{ port: 9100 }] }] },
  })
  const specOf = async (name: string): Promise<JsonObject> =>
    objectAt((await cluster.kube.must('GET', policyIn('team-a', name))).spec, 'spec')
  test('admits nothing from then on, and one of the team stays', async () => {
    const path = policyIn('team-a', '')
    await cluster.kube.must('POST', path.slice(0, -1), made('of-the-team', {}))
    await cluster.kube.must(
      'POST',
      path.slice(0, -1),
      made('portcullis-unprotected-9100', { 'portcullis.dev/part': 'onboarding' }),
    )
    await until(async () => (await specOf('portcullis-unprotected-9100')).ingress === undefined, 90)
    expect(await specOf('portcullis-unprotected-9100')).toEqual({ podSelector: {}, policyTypes: ['Ingress'] })
    expect((await specOf('of-the-team')).ingress).toHaveLength(1)
    expect(listAt((await specOf('portcullis-sidecars')).ingress, 'ingress').length).toBeGreaterThan(0)
  })
  test('cannot be opened again with its rights, nor can it close that of the team', async () => {
    for (const [name, spec] of [
      ['portcullis-unprotected-9100', { podSelector: {}, ingress: [{}] }],
      // A Pod that no policy selects is open.
      ['portcullis-unprotected-9100', { podSelector: { matchLabels: { a: 'b' } }, policyTypes: ['Ingress'] }],
      ['portcullis-unprotected-9100', { podSelector: {}, policyTypes: ['Egress'] }],
      ['of-the-team', { podSelector: {}, policyTypes: ['Ingress'] }],
    ] as const) {
      const found = await cluster.kube.must('GET', policyIn('team-a', name))
      const { status } = await own.send('PUT', policyIn('team-a', name), { ...found, spec })
      expect([name, spec, status]).toEqual([name, spec, 422])
    }
    for (const name of ['portcullis-unprotected-9100', 'of-the-team'])
      await cluster.kube.must('DELETE', policyIn('team-a', name))
  })
})

test('check-cluster accepts the policies, and finds a namespace that lost its own', async () => {
  await cluster.kube.must('POST', '/api/v1/namespaces/team-a/pods', podWith({}))
  const found = (): string => cluster.check('-n', 'team-a').stdout
  expect(found()).not.toMatch(/backstop|policy_missing/)
  await stopOnboarding()
  await cluster.kube.must('DELETE', policyIn('team-a', 'portcullis-sidecars'))
  // Another policy still closes the Pod.
  expect(found()).not.toContain('policy_missing')
  await cluster.kube.must('DELETE', policyIn('team-a', 'portcullis-sidecars-only'))
  expect(found()).toContain('policy_missing')
  await startOnboarding()
  for (const name of ['portcullis-sidecars', 'portcullis-sidecars-only'])
    await until(() => exists(policyIn('team-a', name)), 30)
  expect(found()).not.toContain('policy_missing')
})

/** What it takes until a Deployment of a namespace is protected; what helm does is the operator's work. */
function journeyOf(namespace: string, before: readonly (readonly string[])[]): readonly (readonly string[])[] {
  const annotations = { 'portcullis.dev/ports': 'http', 'portcullis.dev/routes': 'invoices-routes' }
  const patch = JSON.stringify({ spec: { template: { metadata: { annotations } } } })
  return [
    ...before,
    ['kubectl', 'create', 'configmap', 'invoices-routes', `--from-file=http.yaml=${file('http.yaml')}`],
    ['kubectl', 'label', 'configmap', 'invoices-routes', 'portcullis.dev/route-file=true'],
    ['kubectl', 'label', 'namespace', namespace, `${INJECT}=enabled`],
    ['kubectl', 'patch', 'deployment', 'invoices', '-p', patch],
  ].map(([program = '', ...words]) => [program, ...words, '--namespace', program === 'helm' ? NAMESPACE : namespace])
}

test('a namespace takes four commands of its team, where it takes seven without its bounds, two of them upgrades of the platform', async () => {
  writeFileSync(file('http.yaml'), ROUTES)
  const upgrade = (choice: string) => [
    'helm',
    ...installWords('upgrade', authority, ['--reuse-values', '--set', choice]),
  ]
  const long = journeyOf('old', [
    upgrade('pdp.grpc.serviceAccounts.callers={old/*}'),
    upgrade('protectedNamespaces[0].name=old'),
    ['kubectl', 'create', 'configmap', 'portcullis-ca', `--from-file=ca.crt=${authority}`],
  ])
  const short = journeyOf('team-new', [])
  expect([long.length, short.length]).toEqual([7, 4])
  for (const [namespace, journey] of [
    ['old', long],
    ['team-new', short],
  ] as const) {
    await cluster.namespace(namespace, { tier: 'tenant' })
    const { spec = {} } = podWith({})
    const app = {
      selector: { matchLabels: { app: 'invoices' } },
      template: { metadata: { labels: { app: 'invoices' } }, spec },
    }
    const path = `/apis/apps/v1/namespaces/${namespace}/deployments`
    await cluster.kube.must('POST', path, { metadata: { name: 'invoices' }, spec: app })
    for (const [program, ...words] of journey) {
      const { [program === 'helm' ? 'helm' : 'kubectl']: path } = inject('binaries')
      const env = { ...process.env, KUBECONFIG: cluster.kubeconfig }
      // Typed at once, a command may come before the API server has taken up what the one before it changed.
      await until(async () => spawnSync(path, words, { env, stdio: ['ignore', 'ignore', 'inherit'] }).status === 0)
    }
    await until(() => exists(policyIn(namespace, 'portcullis-sidecars')), 60)
    await until(() => exists(copyIn(namespace)), 60)
    await until(async () => JSON.stringify((await makePod(namespace)).body.spec).includes('"portcullis-sidecar"'), 60)
  }
  await until(async () => (await callers()).includes('team-new/*'), 60)
}, 400_000)

test('an upgrade of the chart keeps who may ask, and no upgrade was needed for a namespace that onboards itself', async () => {
  const before = await callers()
  expect(before).toContain('team-a/*')
  cluster.helm(...installWords('upgrade', authority, ['--reuse-values', '--set', 'labels.a=b']))
  expect(await callers()).toBe(before)
  const history = execFileSync(inject('binaries').helm, ['history', 'portcullis', '-n', NAMESPACE, '-o', 'json'], {
    encoding: 'utf8',
    env: { ...process.env, KUBECONFIG: cluster.kubeconfig },
  })
  // The install, this upgrade, and the two for the namespace that did not onboard itself.
  expect(JSON.parse(history)).toHaveLength(4)
}, 180_000)
