/** The chart with real controllers: what becomes of Deployments, Jobs, drains and upgrades. Pods run in name only. */
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest'
import { type JsonObject, listAt, objectAt } from '../../sidecar/injector/pod/json.ts'
import { installWords, NAMESPACE, until } from './cluster.ts'
import { type ActingCluster, type SeenPod, startActingCluster, template } from './controllers/acting-cluster.ts'
import { storeRoutes } from './objects.ts'

const { controllers } = inject('binaries')
const INJECTOR = `/apis/apps/v1/namespaces/${NAMESPACE}/deployments/portcullis-injector`
const BUDGET = `/apis/policy/v1/namespaces/${NAMESPACE}/poddisruptionbudgets/portcullis-injector`
const IN_ORDER = ['portcullis-sidecar', 'migrate']
let cluster: ActingCluster
let authority = ''

/** `vault` requires sidecars, `shop` allows them. */
async function install(): Promise<void> {
  cluster = await startActingCluster(inject('binaries'))
  await cluster.namespace(NAMESPACE)
  await cluster.namespace('shop', { 'portcullis.dev/inject': 'enabled' })
  await cluster.namespace('vault', { 'portcullis.dev/inject': 'required' })
  await storeRoutes(cluster.kube, 'vault')
  authority = await cluster.certify('first')
  cluster.helm(...words('install'))
  await cluster.serve()
  await until(async () => (await cluster.tryPod('shop')).status === 201, 30)
}

function words(verb: 'install' | 'upgrade', ...more: readonly string[]): readonly string[] {
  const choices = [
    `injector.webhook.port=${cluster.webhookPort}`,
    'protectedNamespaces[0].name=shop',
    'protectedNamespaces[1].name=vault',
    'protectedNamespaces[1].required=true',
    ...more,
  ]
  return installWords(
    verb,
    authority,
    choices.flatMap((choice) => ['--set', choice]),
  )
}

const deployment = (name: string, replicas: number, over: JsonObject = {}): JsonObject => ({
  metadata: { name },
  spec: { replicas, selector: { matchLabels: { app: name } }, template: template(name, over) },
})
const apps = (namespace: string, kinds = 'deployments'): string => `/apis/apps/v1/namespaces/${namespace}/${kinds}`
const namesOf = (pods: readonly SeenPod[]): readonly string[] => pods.map(({ name }) => name)
const bare = (pods: readonly SeenPod[]): readonly SeenPod[] =>
  pods.filter(({ inits }) => inits[0] !== 'portcullis-sidecar')

/** The Service of the Deployment's Pods in `vault`. */
const serve = (name: string, targetPort: number | string): Promise<JsonObject> =>
  cluster.kube.must('POST', '/api/v1/namespaces/vault/services', {
    metadata: { name },
    spec: { selector: { app: 'deployment' }, ports: [{ port: 80, targetPort }] },
  })

/** What the Deployment says about Pods that it cannot make; null: nothing. */
async function failureOf(namespace: string, name: string): Promise<string | null> {
  const { status } = await cluster.kube.must('GET', `${apps(namespace)}/${name}`)
  const conditions = listAt(objectAt(status, 'status').conditions, 'conditions').map((item) => objectAt(item, 'item'))
  const failure = conditions.find(({ type, status: said }) => type === 'ReplicaFailure' && said === 'True')
  return failure === undefined ? null : String(failure.message)
}

describe.skipIf(controllers === null)('with real controllers', () => {
  beforeAll(install)
  afterAll(() => cluster?.close())

  test('the Deployments of the chart roll out, the Pods of each on different nodes', async () => {
    for (const part of ['pdp', 'injector']) {
      await cluster.rollOut(NAMESPACE, `deployment/portcullis-${part}`)
      const pods = await cluster.pods(NAMESPACE, `app.kubernetes.io/component=${part}`)
      expect(pods).toHaveLength(2)
      expect(new Set(pods.map(({ node }) => node)).size).toBe(2)
    }
  })

  test.each<[kind: string, over: JsonObject, count: number]>([
    ['deployment', { replicas: 3 }, 3],
    ['statefulset', { replicas: 2, serviceName: 'statefulset' }, 2],
    ['daemonset', {}, 3],
  ])('each Pod of a %s has its sidecar before all else, and becomes ready', async (kind, over, count) => {
    const spec = { selector: { matchLabels: { app: kind } }, template: template(kind), ...over }
    await cluster.kube.must('POST', apps('vault', `${kind}s`), { metadata: { name: kind }, spec })
    await cluster.rollOut('vault', `${kind}/${kind}`)
    const pods = await cluster.pods('vault', `app=${kind}`)
    expect(pods.map(({ inits, isReady }) => ({ inits, isReady }))).toEqual(
      Array.from({ length: count }, () => ({ inits: IN_ORDER, isReady: true })),
    )
  })

  test('a Service that names the port leads to the sidecar of each Pod, and no way past one is found', async () => {
    await serve('deployment', 'http')
    await until(async () => (await cluster.endpoints('vault', 'deployment')).addresses.length === 3)
    expect((await cluster.endpoints('vault', 'deployment')).ports).toEqual([15_080])
    expect(cluster.check('--namespace', 'vault')).toMatchObject({
      status: 0,
      stdout: expect.stringMatching(/^0 findings\n/),
    })
  })

  test('a Service that names the number of the app is found once, with the endpoints that it really has', async () => {
    await serve('by-number', 8080)
    await until(async () => (await cluster.endpoints('vault', 'by-number')).addresses.length === 3)
    const { status, stdout } = cluster.check('--namespace', 'vault')
    expect([status, stdout.match(/service_bypass .*/g)]).toEqual([
      1,
      [expect.stringContaining('service_bypass  vault/Service/by-number')],
    ])
    await cluster.kube.must('DELETE', '/api/v1/namespaces/vault/services/by-number')
  })

  test('a rolling update replaces all Pods, and at no moment is there one without its sidecar', async () => {
    const before = namesOf(await cluster.pods('vault', 'app=deployment'))
    const image = { op: 'replace', path: '/spec/template/spec/containers/0/image', value: 'example/app:2' }
    await cluster.kube.must('PATCH', `${apps('vault')}/deployment`, [image])
    const seen = await cluster.podsUntil(cluster.rollOut('vault', 'deployment/deployment'), 'vault', 'app=deployment')
    expect(bare(seen)).toEqual([])
    const after = namesOf(await cluster.pods('vault', 'app=deployment'))
    expect(after.filter((name) => before.includes(name))).toEqual([])
    expect(seen.length).toBeGreaterThan(after.length)
  })

  test.each([
    [
      'forges the sidecar',
      'shop',
      { initContainers: [{ name: 'portcullis-sidecar', image: 'example/forged:1', restartPolicy: 'Always' }] },
      /container portcullis-sidecar has a reserved name .*; rename or remove it/,
    ],
    ['would have its Pods in the network of the node', 'vault', { hostNetwork: true }, /remove hostNetwork/],
    ['shares processes', 'vault', { shareProcessNamespace: true }, /shareProcessNamespace or hostPID .*; remove both/],
  ])('a Deployment that %s gets no Pod, and its status says what to do', async (what, namespace, over, said) => {
    const name = `refused-${what.split(' ')[0]}`
    await cluster.kube.must('POST', apps(namespace), deployment(name, 2, over))
    await until(async () => (await failureOf(namespace, name)) !== null)
    expect(await failureOf(namespace, name)).toMatch(said)
    expect(await cluster.pods(namespace, `app=${name}`)).toEqual([])
    await cluster.kube.must('DELETE', `${apps(namespace)}/${name}`)
  })

  test('the PodDisruptionBudget of the injector keeps its second Pod until the first has a successor', async () => {
    const allowed = async (): Promise<unknown> =>
      objectAt((await cluster.kube.must('GET', BUDGET)).status, 'status').disruptionsAllowed
    await until(async () => (await allowed()) === 1)
    const [first = '', second = ''] = namesOf(await cluster.pods(NAMESPACE, 'app.kubernetes.io/component=injector'))
    await cluster.kubectl('cordon', '--selector=kubernetes.io/hostname')
    expect(await cluster.evict(NAMESPACE, first)).toMatchObject({ status: 201 })
    expect(await cluster.evict(NAMESPACE, second)).toMatchObject({ status: 429 })
    await cluster.kubectl('uncordon', '--selector=kubernetes.io/hostname')
    await until(async () => (await allowed()) === 1)
    expect(await cluster.evict(NAMESPACE, second)).toMatchObject({ status: 201 })
    await until(async () => (await allowed()) === 1)
  })

  test('kubectl drain empties a node, and the injector and the app go on elsewhere', async () => {
    const [first] = await cluster.pods(NAMESPACE, 'app.kubernetes.io/component=injector')
    const node = first?.node ?? ''
    const drained = cluster.kubectl('drain', node, '--ignore-daemonsets', '--delete-emptydir-data', '--timeout=50s')
    const seen = await cluster.podsUntil(drained, 'vault', 'app=deployment')
    expect(bare(seen)).toEqual([])
    for (const [namespace, name] of [
      [NAMESPACE, 'portcullis-injector'],
      [NAMESPACE, 'portcullis-pdp'],
      ['vault', 'deployment'],
    ] as const) {
      await cluster.rollOut(namespace, `deployment/${name}`)
      const left = (await cluster.pods(namespace)).filter((pod) => pod.node === node && pod.owner !== 'DaemonSet')
      expect(left).toEqual([])
    }
    await cluster.kubectl('uncordon', node)
  })

  test('a Job ends although its Pod has a sidecar, because that is a native one', async () => {
    const job = { metadata: { name: 'report' }, spec: { template: template('report', { restartPolicy: 'Never' }) } }
    await cluster.kube.must('POST', '/apis/batch/v1/namespaces/vault/jobs', job)
    await cluster.kubectl('wait', 'job/report', '--for=condition=Complete', '--namespace=vault', '--timeout=50s')
    const [pod] = await cluster.pods('vault', 'app=report')
    expect(pod).toMatchObject({ phase: 'Succeeded', inits: IN_ORDER })
  })

  test('an upgrade and a restart give each Pod the new sidecar, and none is listed as outdated', async () => {
    cluster.helm(...words('upgrade', 'injector.image.tag=0.2.0'))
    await cluster.silence()
    await cluster.serve()
    await cluster.rollOut(NAMESPACE, 'deployment/portcullis-injector')
    expect(cluster.check('--namespace', 'vault').stdout).toContain('sidecar_outdated')
    const kinds = ['deployment', 'statefulset', 'daemonset']
    for (const kind of kinds) await cluster.kubectl('rollout', 'restart', `${kind}/${kind}`, '--namespace=vault')
    for (const kind of kinds) await cluster.rollOut('vault', `${kind}/${kind}`)
    // The Pod of the Job has the former sidecar, and has ended.
    expect(cluster.check('--namespace', 'vault')).toMatchObject({
      status: 0,
      stdout: expect.stringMatching(/^0 findings\n/),
    })
  })

  describe('while the injector is away', () => {
    const scale = (replicas: number): Promise<JsonObject> =>
      cluster.kube.must('PATCH', INJECTOR, [{ op: 'replace', path: '/spec/replicas', value: replicas }])
    beforeAll(async () => {
      await scale(0)
      await cluster.silence()
      await until(async () => (await cluster.tryPod('shop')).status === 500)
    })

    test('a Deployment of a required namespace gets no Pod, and all it asked for when the injector is back', async () => {
      await cluster.kube.must('POST', apps('vault'), deployment('late', 2))
      await until(async () => (await failureOf('vault', 'late')) !== null)
      expect(await failureOf('vault', 'late')).toContain('failed calling webhook')
      await cluster.kube.must('DELETE', '/api/v1/namespaces/vault/pods?labelSelector=app%3Ddeployment')
      await until(async () => (await cluster.pods('vault', 'app=deployment')).length === 0)
      expect(await cluster.pods('vault', 'app=late')).toEqual([])
      await scale(2)
      await cluster.serve()
      const seen = await cluster.podsUntil(cluster.rollOut('vault', 'deployment/late'), 'vault', 'app=late')
      expect(bare([...seen, ...(await cluster.pods('vault'))])).toEqual([])
      await cluster.rollOut('vault', 'deployment/deployment')
    })
  })

  test('a required namespace is deleted to the end, also while the injector is away', async () => {
    await cluster.silence()
    await cluster.kubectl('delete', 'namespace', 'vault', '--timeout=50s')
    expect(await cluster.kube.send('GET', '/api/v1/namespaces/vault')).toMatchObject({ status: 404 })
  })
})
