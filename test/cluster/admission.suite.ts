/** What a real API server stores, and what it refuses, with the chart installed. */
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest'
import { isObject, type JsonObject, listAt, objectAt } from '../../sidecar/injector/pod/json.ts'
import { parsePod } from '../../sidecar/injector/pod/pod.ts'
import { type Cluster, installWords, NAMESPACE, startCluster, until } from './cluster.ts'
import type { KubeAnswer } from './kube-client.ts'

const ASKING = { 'portcullis.dev/ports': 'http', 'portcullis.dev/routes': 'invoices-routes' }
const RESTRICTED = {
  allowPrivilegeEscalation: false,
  capabilities: { drop: ['ALL'] },
  runAsNonRoot: true,
  seccompProfile: { type: 'RuntimeDefault' },
}
let cluster: Cluster
let authority = ''

beforeAll(async () => {
  cluster = await startCluster(inject('binaries'))
  await cluster.namespace(NAMESPACE)
  authority = await cluster.certify('first')
  cluster.helm(...installWords('install', authority))
  await cluster.serve()
  await cluster.namespace('invoices', { 'portcullis.dev/inject': 'enabled' })
  await cluster.namespace('payments', {
    'portcullis.dev/inject': 'required',
    'pod-security.kubernetes.io/enforce': 'restricted',
  })
  await cluster.namespace('others')
})
afterAll(() => cluster?.close())

let count = 0
type Over = { annotations?: JsonObject; labels?: JsonObject; container?: JsonObject; spec?: JsonObject }
function pod({ annotations = ASKING, labels = {}, container = {}, spec = {} }: Over = {}): JsonObject {
  count += 1
  return {
    metadata: { name: `pod-${count}`, annotations, labels },
    spec: {
      containers: [
        {
          name: 'app',
          image: 'example/app:1',
          ports: [{ name: 'http', containerPort: 8080 }],
          readinessProbe: { httpGet: { path: '/ready', port: 'http' } },
          securityContext: RESTRICTED,
          ...container,
        },
      ],
      ...spec,
    },
  }
}
const create = (namespace: string, object: JsonObject): Promise<KubeAnswer> =>
  cluster.kube.send('POST', `/api/v1/namespaces/${namespace}/pods?fieldValidation=Strict`, object)
const patch = (namespace: string, name: string, operations: readonly JsonObject[]): Promise<KubeAnswer> =>
  cluster.kube.send('PATCH', `/api/v1/namespaces/${namespace}/pods/${name}`, operations)
const nameOf = (object: JsonObject): string => String(objectAt(object.metadata, 'metadata').name)
const message = ({ body }: KubeAnswer): string => String(body.message)

async function stored(namespace: string, object: JsonObject): Promise<JsonObject> {
  const answer = await create(namespace, object)
  if (answer.status !== 201) throw new Error(message(answer))
  return cluster.kube.must('GET', `/api/v1/namespaces/${namespace}/pods/${nameOf(object)}`)
}
function sidecarOf(object: JsonObject): JsonObject {
  const [sidecar] = parsePod(object).containers.filter(({ name }) => name === 'portcullis-sidecar')
  if (sidecar === undefined) throw new Error('no sidecar')
  return sidecar.raw
}

/** As the ReplicaSet and Job controllers make a Pod of a template. */
async function fromTemplate(namespace: string, path: string, object: JsonObject): Promise<JsonObject> {
  const made = await cluster.kube.must('POST', `${path}?fieldValidation=Strict`, object)
  const template = objectAt(objectAt(made.spec, 'spec').template, 'template')
  count += 1
  const metadata = { ...objectAt(template.metadata, 'metadata'), name: `pod-${count}` }
  return stored(namespace, { metadata, spec: template.spec ?? {} })
}

describe('a Pod that asks for a sidecar', () => {
  test('is stored with the sidecar in front of its port, last of the init containers', async () => {
    const mesh = { name: 'mesh', image: 'example/mesh:1', restartPolicy: 'Always' }
    const made = parsePod(await stored('invoices', pod({ spec: { initContainers: [mesh] } })))
    expect(made.containers.map(({ list, name }) => `${list}/${name}`)).toEqual([
      'initContainers/mesh',
      'initContainers/portcullis-sidecar',
      'containers/app',
    ])
    const [, sidecar, app] = made.containers
    expect(sidecar?.ports[0]).toMatchObject({ name: 'http', number: 15_080 })
    expect(app?.ports[0]).toMatchObject({ name: 'app-http', number: 8080 })
    expect(app?.raw).toMatchObject({ readinessProbe: { httpGet: { port: 8080 } } })
    expect(made.labels.get('portcullis.dev/injected')).toBe('1')
  })

  test('has a sidecar that holds no token of the app for the API server (K8S-021)', async () => {
    const made = await stored('invoices', pod())
    const mounts = listAt(sidecarOf(made).volumeMounts, 'volumeMounts').filter(isObject)
    expect(mounts.map(({ name }) => name)).toEqual([
      'portcullis-routes',
      'portcullis-token',
      'portcullis-token',
      'portcullis-control',
    ])
    const volumes = listAt(objectAt(made.spec, 'spec').volumes, 'volumes').filter(isObject)
    expect(volumes.find(({ name }) => name === 'portcullis-token')).toMatchObject({
      projected: { sources: [{ serviceAccountToken: { audience: 'portcullis-pdp' } }] },
    })
  })

  test('passes Pod Security restricted', async () => {
    expect(sidecarOf(await stored('payments', pod()))).toMatchObject({ restartPolicy: 'Always' })
  })
})

describe('a Pod that asks for a sidecar in its own way', () => {
  test('is protected when a Deployment makes it', async () => {
    const labels = { app: 'invoices' }
    const { metadata, spec } = pod({ labels })
    const made = await fromTemplate('payments', '/apis/apps/v1/namespaces/payments/deployments', {
      metadata: { name: 'invoices' },
      spec: {
        selector: { matchLabels: labels },
        template: { metadata: { ...objectAt(metadata, ''), name: null }, spec: spec ?? {} },
      },
    })
    expect(sidecarOf(made)).toMatchObject({ ports: [{ name: 'http' }, { name: 'sidecar-admin' }] })
  })

  test('is protected when a Job makes it, by a sidecar that ends with it', async () => {
    const { metadata, spec } = pod({ spec: { restartPolicy: 'Never' } })
    const made = await fromTemplate('payments', '/apis/batch/v1/namespaces/payments/jobs', {
      metadata: { name: 'nightly' },
      spec: { template: { metadata: { ...objectAt(metadata, ''), name: null }, spec: spec ?? {} } },
    })
    expect(sidecarOf(made)).toMatchObject({ restartPolicy: 'Always' })
  })

  test('with several ports gets a sidecar for each, and HTTPS probes stay HTTPS', async () => {
    const annotations = { ...ASKING, 'portcullis.dev/ports': 'https,grpc' }
    const container = {
      ports: [
        { name: 'https', containerPort: 8443 },
        { name: 'grpc', containerPort: 9090 },
      ],
      readinessProbe: { httpGet: { path: '/', port: 'https', scheme: 'HTTPS' } },
      livenessProbe: { grpc: { port: 9090 } },
    }
    const { containers } = parsePod(await stored('invoices', pod({ annotations, container })))
    expect(containers.map(({ name }) => name)).toEqual(['portcullis-sidecar', 'portcullis-sidecar-2', 'app'])
    expect(containers[2]?.raw).toMatchObject({
      readinessProbe: { httpGet: { port: 8443, scheme: 'HTTPS' } },
      livenessProbe: { grpc: { port: 9090 } },
    })
  })

  test('is warned of what stays open', async () => {
    const container = {
      ports: [
        { name: 'http', containerPort: 8080 },
        { name: 'metrics', containerPort: 9100 },
      ],
    }
    expect((await create('invoices', pod({ container }))).warnings).toEqual([
      expect.stringContaining('unprotected ports: metrics of app'),
    ])
  })

  test('is injected whatever its status annotation claims (K8S-009)', async () => {
    const annotations = { ...ASKING, 'portcullis.dev/status': '{}' }
    expect(sidecarOf(await stored('invoices', pod({ annotations })))).toMatchObject({ name: 'portcullis-sidecar' })
  })

  test('keeps its sidecar unchanged when others inject after us (K8S-016)', async () => {
    const first = await stored('invoices', pod())
    const { metadata, spec } = first
    const kept = objectAt(metadata, 'metadata')
    const late = { name: 'late', image: 'example/late:1' }
    const again = {
      metadata: { name: `${kept.name}-again`, annotations: kept.annotations ?? {}, labels: kept.labels ?? {} },
      spec: { ...objectAt(spec, 'spec'), containers: [...listAt(objectAt(spec, 'spec').containers, ''), late] },
    }
    const second = await stored('invoices', again)
    expect(sidecarOf(second)).toEqual(sidecarOf(first))
    expect(parsePod(second).containers.map(({ name }) => name)).toEqual(['portcullis-sidecar', 'app', 'late'])
  })
})

describe('is left alone', () => {
  test('a Pod that asks for nothing, with a warning of its ports', async () => {
    const answer = await create('invoices', pod({ annotations: {} }))
    expect(answer).toMatchObject({ status: 201, warnings: [expect.stringContaining('unprotected ports: http')] })
  })
  test('a Pod that opts out where it may', async () => {
    expect(
      parsePod(await stored('invoices', pod({ labels: { 'portcullis.dev/inject': 'disabled' } }))).containers,
    ).toHaveLength(1)
  })
  test('a Pod of a namespace without the label', async () => {
    expect(parsePod(await stored('others', pod())).containers).toHaveLength(1)
  })
  test('a worker that serves nothing, where a sidecar is required', async () => {
    const worker = pod({
      annotations: { 'portcullis.dev/ports': 'none' },
      container: { ports: [], readinessProbe: null },
    })
    expect(parsePod(await stored('payments', worker)).containers).toHaveLength(1)
  })
})

const evil = { name: 'portcullis-sidecar', image: 'evil', ports: [{ name: 'http', containerPort: 15_080 }] }
describe('is refused by the injector', () => {
  test.each([
    [
      'K8S-007: the way out in a required namespace',
      'payments',
      { labels: { 'portcullis.dev/inject': 'disabled' } },
      'opted_out',
    ],
    ['K8S-008: the network of the node', 'payments', { spec: { hostNetwork: true } }, 'host_network|PodSecurity'],
    ['K8S-010: a container that squats on the name', 'invoices', { spec: { initContainers: [evil] } }, 'name_taken'],
    [
      'K8S-011: an annotation that chooses the image',
      'invoices',
      { annotations: { ...ASKING, 'portcullis.dev/image': 'evil' } },
      'wish_invalid',
    ],
    [
      'K8S-012: routes of another place',
      'invoices',
      { annotations: { ...ASKING, 'portcullis.dev/routes': '../other/cm' } },
      'wish_invalid',
    ],
    ['no word about ports in a required namespace', 'payments', { annotations: {} }, 'ports_missing'],
    [
      'two ports of the same name',
      'invoices',
      { spec: { initContainers: [{ name: 'x', image: 'x', ports: [{ name: 'http', containerPort: 1 }] }] } },
      'port_repeated',
    ],
    [
      'a port on the node',
      'invoices',
      { container: { ports: [{ name: 'http', containerPort: 8080, hostPort: 80 }] } },
      'port_unfit',
    ],
  ])('%s', async (_what, namespace, over, code) => {
    const answer = await create(namespace, pod(over))
    expect(answer.status).toBe(403)
    expect(message(answer)).toMatch(new RegExp(code))
  })
})

describe('a stored Pod', () => {
  test('cannot get another image into its sidecar, and keeps its labels changeable (K8S-015)', async () => {
    const name = nameOf(await stored('invoices', pod()))
    const image = (value: string, query = ''): Promise<KubeAnswer> =>
      patch('invoices', `${name}${query}`, [{ op: 'replace', path: '/spec/initContainers/0/image', value }])
    // The API server takes up policies after a moment; until then this one is only tried.
    await until(async () => (await image('portcullis-sidecar:0.0.1', '?dryRun=All')).status !== 200)
    expect(message(await image('portcullis-sidecar:0.0.1'))).toContain('cannot change')
    const answer = await image('evil/sidecar:1')
    expect(answer).toMatchObject({ status: 422 })
    expect(message(answer)).toContain('the image of a sidecar')
    expect(await patch('invoices', name, [{ op: 'add', path: '/metadata/labels/note', value: 'x' }])).toMatchObject({
      status: 200,
    })
    expect(
      await patch('invoices', name, [{ op: 'replace', path: '/spec/containers/0/image', value: 'example/app:2' }]),
    ).toMatchObject({ status: 200 })
  })

  test('cannot get the mark of a sidecar that it does not have', async () => {
    const name = nameOf(await stored('invoices', pod({ annotations: {} })))
    const answer = await patch('invoices', name, [
      { op: 'add', path: '/metadata/labels', value: { 'portcullis.dev/injected': 'true' } },
    ])
    expect(message(answer)).toContain('only the injector may set')
  })
})
