/** Whoever may write Pods, against the API server alone: no injector runs, and the webhook fails open. */
import { afterAll, beforeAll, describe, expect, inject as given, test } from 'vitest'
import { type InjectorConfig, parseInjectorConfig } from '../../sidecar/injector/pod/config.ts'
import { inject } from '../../sidecar/injector/pod/inject.ts'
import { type Json, type JsonObject, listAt, objectAt, textsAt } from '../../sidecar/injector/pod/json.ts'
import { applyPatch, type PatchOperation } from '../../sidecar/injector/pod/patch.ts'
import { podWith } from '../sidecar/injector/pod/pods.ts'
import { type Cluster, installWords, NAMESPACE, startCluster, until } from './cluster.ts'
import type { KubeAnswer } from './kube-client.ts'

let cluster: Cluster
let config: InjectorConfig
let authority = ''

beforeAll(async () => {
  cluster = await startCluster(given('binaries'))
  await cluster.namespace(NAMESPACE)
  authority = await cluster.certify('first')
  cluster.helm(
    ...installWords('install', authority, [
      '--set',
      'injector.webhook.failurePolicy=Ignore,injector.sidecar.nativeSidecars=true',
    ]),
  )
  await readSettings()
  await cluster.namespace('invoices', { 'portcullis.dev/inject': 'enabled' })
  await cluster.namespace('payments', { 'portcullis.dev/inject': 'required' })
  // The API server takes up each policy after a moment of its own.
  await until(async () => (await send('payments', podWith({ annotations: {} }))).status !== 201, 30)
})
afterAll(() => cluster?.close())

async function readSettings(): Promise<void> {
  const map = await cluster.kube.must('GET', `/api/v1/namespaces/${NAMESPACE}/configmaps/portcullis-injector`)
  config = parseInjectorConfig(textsAt(map.data, 'data').get('injector.yaml') ?? '', 'injector.yaml')
}

let count = 0
function send(namespace: string, pod: JsonObject): Promise<KubeAnswer> {
  count += 1
  const metadata = { ...objectAt(pod.metadata, 'metadata'), name: `pod-${count}` }
  const path = `/api/v1/namespaces/${namespace}/pods?fieldValidation=Strict`
  return cluster.kube.send('POST', path, { ...pod, metadata })
}
const message = ({ body }: KubeAnswer): string => String(body.message)

type Over = Parameters<typeof podWith>[0]
/** A Pod as the injector would have made it, which its author writes down to the last member, and then changes. */
function forged(over: Over = {}, changes: readonly PatchOperation[] = []) {
  const pod = podWith(over)
  const injection = inject(pod, { config, mode: 'enabled' })
  if (injection.verdict !== 'inject') throw new Error(JSON.stringify(injection))
  return applyPatch(applyPatch(pod, injection.operations), changes)
}
const SIDECAR = '/spec/initContainers/0'
const add = (path: string, value: Json): PatchOperation => ({ op: 'add', path, value })
const put = (path: string, value: Json): PatchOperation => ({ op: 'replace', path, value })

const ANNOTATION = '/metadata/annotations/portcullis.dev~1ports'
const TWO = {
  annotations: { 'portcullis.dev/ports': 'http,grpc', 'portcullis.dev/routes': 'invoices-routes' },
  container: {
    ports: [
      { name: 'http', containerPort: 8080 },
      { name: 'grpc', containerPort: 9090 },
    ],
  },
}

describe('during an update', () => {
  /** As an injector of the version before makes it: the ports of its probes begin at 15090. */
  const former = (pod: JsonObject): JsonObject =>
    JSON.parse(JSON.stringify(pod).replaceAll(/\b1509([4-7])\b/g, (_, last: string) => `1509${Number(last) - 4}`))

  test.each([
    ['one sidecar', {}],
    ['two sidecars', TWO],
  ])('%s of the version before passes', async (_what, over) => {
    for (const namespace of ['invoices', 'payments']) {
      const answer = await send(namespace, former(forged(over)))
      expect([answer.status, answer.body.message]).toEqual([201, undefined])
    }
  })

  test.each<[what: string, of: Over, change: PatchOperation]>([
    ['a probe', {}, put(`${SIDECAR}/readinessProbe/httpGet/port`, 15_094)],
    ['the port', {}, put(`${SIDECAR}/ports/1/containerPort`, 15_094)],
    ['the second sidecar', TWO, put('/spec/initContainers/1/ports/1/containerPort', 15_095)],
    ['a port of the app', {}, add('/spec/containers/0/ports/-', { name: 'x', containerPort: 15_091 })],
  ])('a mixture of both is refused: %s', async (_what, over, change) => {
    expect((await send('invoices', applyPatch(former(forged(over)), [change]))).status).toBe(422)
  })
})

describe('what the injector makes passes', () => {
  test.each([
    ['one sidecar', {}],
    ['two sidecars', TWO],
    ['two sidecars with a Secret', { ...TWO, annotations: { ...TWO.annotations, 'portcullis.dev/secrets': 'keys' } }],
  ])('%s', async (_what, over) => {
    for (const namespace of ['invoices', 'payments']) {
      const answer = await send(namespace, forged(over))
      expect([answer.status, answer.body.message]).toEqual([201, undefined])
    }
  })

  test('forty containers with twenty ports each beside it', async () => {
    const beside = Array.from({ length: 40 }, (_, at) => ({
      name: `c${at}`,
      image: 'x',
      ports: Array.from({ length: 20 }, (_port, n) => ({ containerPort: 1 + at * 20 + n })),
    }))
    const pod = forged(
      {},
      beside.map((container) => add('/spec/containers/-', container)),
    )
    expect(message(await send('invoices', pod))).toBe('undefined')
  })
})

const FORGERIES: readonly (readonly [string, string, readonly PatchOperation[], Over?])[] = [
  [
    'take an image from a registry named like ours',
    'image of a sidecar',
    [put(`${SIDECAR}/image`, 'portcullis-sidecar:5000/evil/sidecar')],
  ],
  [
    'put the sidecar in front of another name, and keep the port',
    'as the injector makes it',
    [
      put(`${SIDECAR}/ports/0/name`, 'other'),
      put(`${SIDECAR}/args/1`, '--file=/etc/portcullis/routes/other.yaml'),
      put('/spec/containers/0/ports/0/name', 'http'),
    ],
  ],
  [
    'keep the protected name beside the sidecar',
    'name of a protected port',
    [put('/spec/containers/0/ports/0/name', 'http')],
  ],
  [
    'give the sidecar the route file of another port',
    'as the injector makes it',
    [put(`${SIDECAR}/args/1`, '--file=/etc/portcullis/routes/open.yaml')],
  ],
  ['mount another file as the routes', 'as the injector makes it', [add(`${SIDECAR}/volumeMounts/0/subPath`, 'x')]],
  [
    'choose the nonce secret of the sidecar',
    'as the injector makes it',
    [
      add(`${SIDECAR}/env/-`, {
        name: 'PORTCULLIS_DPOP_NONCE_SECRET',
        valueFrom: { fieldRef: { fieldPath: 'metadata.name' } },
      }),
    ],
  ],
  [
    'choose the Redis of the sidecar',
    'as the injector makes it',
    [add(`${SIDECAR}/env/-`, { name: 'REDIS_URL', value: 'redis://evil' })],
  ],
  [
    'let the sidecar load code',
    'as the injector makes it',
    [add(`${SIDECAR}/env/-`, { name: 'NODE_OPTIONS', value: '--require=/x' })],
  ],
  [
    'bring a route file of its own',
    'volumes of a sidecar',
    [put('/spec/volumes/0', { name: 'portcullis-routes', emptyDir: {} })],
  ],
  [
    'bring a route file of its own, and name none',
    'volumes of a sidecar',
    [
      put('/spec/volumes/0', { name: 'portcullis-routes', emptyDir: {} }),
      { op: 'remove', path: '/metadata/annotations/portcullis.dev~1routes' },
    ],
  ],
  [
    'take the routes of another ConfigMap than it says',
    'volumes of a sidecar',
    [put('/spec/volumes/0/configMap/name', 'open')],
  ],
  [
    'give the sidecar a token for the API server',
    'volumes of a sidecar',
    [put('/spec/volumes/1/projected/sources/0/serviceAccountToken/audience', 'api')],
  ],
  [
    "mount the sidecar's volumes",
    'volumes of a sidecar',
    [add('/spec/containers/0/volumeMounts', [{ name: 'portcullis-token', mountPath: '/token' }])],
  ],
  [
    'have a sidecar for one port and serve another',
    'a port is not protected',
    [add('/spec/containers/0/ports/-', { name: 'web', containerPort: 8081 })],
  ],
  ['have a sidecar and say that it asks for none', 'one sidecar for each port', [put(ANNOTATION, 'none')]],
  ['have fewer sidecars than it says', 'one sidecar for each port', [put(ANNOTATION, 'http,grpc')]],
  [
    'have two sidecars for one port',
    'as the injector makes it',
    [
      put('/spec/initContainers/1/ports/0/name', 'http'),
      put('/spec/initContainers/1/args/1', '--file=/etc/portcullis/routes/http.yaml'),
    ],
    TWO,
  ],
  ['say that it has more sidecars', 'how many sidecars', [put('/metadata/labels/portcullis.dev~1injected', '4')]],
  ['reach into the sidecar as a process', 'processes', [add('/spec/shareProcessNamespace', true)]],
  ['see the processes of the node', 'processes', [add('/spec/hostPID', true)]],
  ['open a port on the node', 'hostPort', [add('/spec/containers/0/ports/0/hostPort', 80)]],
]
describe('an author cannot', () => {
  for (const [what, said, changes, over] of FORGERIES)
    test(what, async () => {
      const answer = await send('payments', forged(over, changes))
      expect(message(answer)).toContain(said)
      expect(answer.status).toBe(422)
    })

  test('call a port unprotected instead of having a sidecar', async () => {
    const annotations = { 'portcullis.dev/ports': 'none', 'portcullis.dev/unprotected-ports': 'http' }
    expect(message(await send('payments', podWith({ annotations })))).toContain('requires a sidecar')
  })
})

describe('a Pod that is there', () => {
  async function stored(): Promise<string> {
    const answer = await send('payments', forged())
    return `/api/v1/namespaces/payments/pods/${objectAt(answer.body.metadata, '').name}`
  }
  const MARK = '/metadata/labels/portcullis.dev~1injected'
  const without = { op: 'remove', path: MARK } as const
  beforeAll(async () => {
    const path = await stored()
    await until(async () => (await cluster.kube.send('PATCH', `${path}?dryRun=All`, [without])).status === 422, 30)
  })
  test.each([
    ['the Pod', '', [without]],
    ['its status', '/status', [without]],
    ['its status, in part', '/status', [{ op: 'replace', path: MARK, value: 'x' }]],
  ] as const)(
    'keeps the mark that network policies select, whoever writes to %s',
    async (_what, subresource, change) => {
      const path = await stored()
      const answer = await cluster.kube.send('PATCH', `${path}${subresource}`, change)
      const now = textsAt(objectAt((await cluster.kube.must('GET', path)).metadata, '').labels, '')
      expect([answer.status, now.get('portcullis.dev/injected')]).toEqual([422, '1'])
    },
  )

  test('keeps its mark when it is bound to a node', async () => {
    const path = await stored()
    const labels = { 'portcullis.dev/injected': '', 'topology.kubernetes.io/zone': 'a' }
    const bind = (metadata: JsonObject): Promise<KubeAnswer> =>
      cluster.kube.send('POST', `${path}/binding`, {
        metadata: { name: path.split('/').at(-1) ?? '', ...metadata },
        target: { apiVersion: 'v1', kind: 'Node', name: 'node-1' },
      })
    expect(message(await bind({ labels }))).toContain('no label of portcullis.dev')
    expect(await bind({})).toMatchObject({ status: 201 })
    const now = textsAt(objectAt((await cluster.kube.must('GET', path)).metadata, '').labels, '')
    expect(now.get('portcullis.dev/injected')).toBe('1')
  })

  test('keeps its sidecar when it is resized, or given a container to debug it with', async () => {
    const path = await stored()
    const change = [{ op: 'add', path: '/spec/initContainers/0/image', value: 'evil/sidecar:1' }]
    await cluster.kube.send('PATCH', `${path}/resize`, change)
    await cluster.kube.send('PATCH', `${path}/ephemeralcontainers`, [
      ...change,
      { op: 'add', path: '/spec/ephemeralContainers', value: [{ name: 'shell', image: 'example/shell:1' }] },
    ])
    const { spec } = await cluster.kube.must('GET', path)
    const images = listAt(objectAt(spec, 'spec').initContainers, '').map((item) => objectAt(item, '').image)
    expect(images).toEqual([config.image])
  })

  test('takes status from its kubelet', async () => {
    const path = await stored()
    const phase = [{ op: 'replace', path: '/status/phase', value: 'Running' }]
    expect(await cluster.kube.send('PATCH', `${path}/status`, phase)).toMatchObject({ status: 200 })
  })
})

test('a misspelt mode on a namespace is refused, since nothing would be protected there', async () => {
  const name = { 'portcullis.dev/inject': 'require' }
  const answer = await cluster.kube.send('POST', '/api/v1/namespaces', { metadata: { name: 'shop', labels: name } })
  expect(message(answer)).toMatch(/enabled, required or disabled/)
  const label = [{ op: 'add', path: '/metadata/labels/portcullis.dev~1inject', value: 'Required' }]
  expect(message(await cluster.kube.send('PATCH', '/api/v1/namespaces/payments', label))).toMatch(/enabled, required/)
})

describe('with other settings of the chart, what the injector makes passes and what it does not is refused:', () => {
  const digest = `sha256:${'a'.repeat(64)}`
  test.each([
    ['an image by digest', [`injector.image.registry=registry.example.com:5000,injector.image.digest=${digest}`]],
    ['an ordinary container', ['injector.sidecar.nativeSidecars=false']],
    [
      'everything',
      [
        'injector.sidecar.authorities=house-ca,injector.sidecar.logLevel=warn,injector.sidecar.runAsUser=null',
        'injector.sidecar.redis.secretName=redis,injector.sidecar.dpopNonces.secretName=nonces',
      ],
    ],
  ])('%s', async (_what, set) => {
    const before = forged()
    const words = ['injector.webhook.failurePolicy=Ignore', ...set].flatMap((value) => ['--set', value])
    cluster.helm(...installWords('upgrade', authority, words))
    await readSettings()
    // The API server takes up policies after a moment.
    await until(async () => (await send('invoices', before)).status !== 201, 30)
    for (const over of [{}, TWO]) {
      const pod = podWith(over)
      const injection = inject(pod, { config, mode: 'required' })
      if (injection.verdict !== 'inject') throw new Error(JSON.stringify(injection))
      const answer = await send('payments', applyPatch(pod, injection.operations))
      expect([answer.status, answer.body.message]).toEqual([201, undefined])
    }
    expect(message(await send('payments', before))).toContain('ValidatingAdmissionPolicy')
  })
})
