/** What holds while parts are down, and while certificates and versions change. */
import { readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest'
import { makeCertificate } from '../../sidecar/injector/certificate/certificate.ts'
import { type JsonObject, listAt, objectAt } from '../../sidecar/injector/pod/json.ts'
import { parsePod } from '../../sidecar/injector/pod/pod.ts'
import { type Cluster, installWords, NAMESPACE, startCluster, until } from './cluster.ts'
import type { KubeAnswer } from './kube-client.ts'

const ASKING = { 'portcullis.dev/ports': 'http', 'portcullis.dev/routes': 'invoices-routes' }
const WEBHOOKS = '/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations'
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
})
afterAll(() => cluster?.close())

let count = 0
const podOf = (annotations: JsonObject, spec: JsonObject = {}): JsonObject => {
  count += 1
  const container = { name: 'app', image: 'example/app:1', ports: [{ name: 'http', containerPort: 8080 }] }
  return { metadata: { name: `pod-${count}`, annotations }, spec: { containers: [container], ...spec } }
}
const create = (namespace: string, object: JsonObject): Promise<KubeAnswer> =>
  cluster.kube.send('POST', `/api/v1/namespaces/${namespace}/pods?fieldValidation=Strict`, object)
const asking = (): Promise<KubeAnswer> => create('invoices', podOf(ASKING))
const message = ({ body }: KubeAnswer): string => String(body.message)
const imageOf = ({ body }: KubeAnswer): unknown =>
  parsePod(body).containers.find(({ name }) => name === 'portcullis-sidecar')?.raw.image

const made = await makeCertificate({ names: ['localhost'], days: 1, nowMs: Date.now() })

describe('another injector that runs after ours', () => {
  const added: JsonObject[] = []
  const server = createServer({ cert: made.certificate, key: made.key }, async (req, res) => {
    const { request } = JSON.parse((await req.setEncoding('utf8').toArray()).join(''))
    const names = request.object.spec.containers.map(({ name }: { name: string }) => name)
    const patch = added
      .filter(({ name }) => !names.includes(name))
      .map((value) => ({ op: 'add', path: '/spec/containers/-', value }))
    const encoded = Buffer.from(JSON.stringify(patch)).toString('base64')
    const response = { uid: request.uid, allowed: true, patchType: 'JSONPatch', patch: encoded }
    res.end(JSON.stringify({ apiVersion: 'admission.k8s.io/v1', kind: 'AdmissionReview', response }))
  })
  beforeAll(async () => {
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const url = `https://localhost:${(server.address() as AddressInfo).port}/`
    const hook = {
      name: 'late.example.com',
      admissionReviewVersions: ['v1'],
      sideEffects: 'None',
      clientConfig: { url, caBundle: Buffer.from(made.authority).toString('base64') },
      namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': 'invoices' } },
      rules: [{ apiGroups: [''], apiVersions: ['v1'], operations: ['CREATE'], resources: ['pods'] }],
    }
    await cluster.kube.must('POST', WEBHOOKS, { metadata: { name: 'zzz-late' }, webhooks: [hook] })
  })
  afterAll(async () => {
    await cluster.kube.must('DELETE', `${WEBHOOKS}/zzz-late`)
    server.closeAllConnections()
    server.close()
    await delay(1_000)
  })

  test('makes the API server call ours once more, which changes nothing (K8S-016)', async () => {
    added.splice(0, 1, { name: 'late', image: 'example/late:1' })
    let answer = await asking()
    await until(async () => {
      answer = await asking()
      return parsePod(answer.body).containers.some(({ name }) => name === 'late')
    })
    const pod = parsePod(answer.body)
    expect(pod.containers.map(({ name }) => name)).toEqual(['portcullis-sidecar', 'app', 'late'])
    const [sidecar] = pod.containers
    expect(listAt(sidecar?.raw.volumeMounts, '')).toHaveLength(4)
  })

  test('cannot put a second port of the protected name beside the sidecar', async () => {
    added.splice(0, 1, { name: 'thief', image: 'evil', ports: [{ name: 'http', containerPort: 6666 }] })
    const answer = await asking()
    expect(answer.status).toBe(403)
    expect(message(answer)).toContain('port_repeated')
  })
})

/** The API server's webhook client has this bundle. */
async function told(bundle: string): Promise<void> {
  const wanted = Buffer.from(readFileSync(bundle, 'utf8')).toString('base64')
  await until(async () => {
    const config = await cluster.kube.must('GET', `${WEBHOOKS}/zz-portcullis-injector`)
    const [hook] = listAt(config.webhooks, 'webhooks')
    return objectAt(objectAt(hook, '').clientConfig, '').caBundle === wanted
  })
  await delay(1_000)
}

describe('the certificate', () => {
  test('is replaced while Pods go on being made: both authorities, the new pair, the old authority away', async () => {
    const both = join(cluster.folder, 'both.pem')
    const next = cluster.issue('second')
    writeFileSync(both, readFileSync(authority, 'utf8') + readFileSync(next.authority, 'utf8'))
    cluster.helm(...installWords('upgrade', both))
    await told(both)
    expect((await asking()).status).toBe(201)
    await cluster.mount(next.secret)
    const log = (): string => cluster.injectorLog()
    await until(async () => {
      expect((await asking()).status).toBe(201)
      return log().includes('certificate_renewed')
    })
    cluster.helm(...installWords('upgrade', next.authority))
    authority = next.authority
    await told(authority)
    for (let tries = 0; tries < 5; tries += 1) expect((await asking()).status).toBe(201)
  })

  test('of an authority that the cluster was not told of is not believed: Pods are refused', async () => {
    const wrong = await cluster.certify('wrong')
    await until(async () => cluster.injectorLog().split('certificate_renewed').length > 2)
    // Connections that are open stay; a new one meets the new certificate.
    await cluster.silence()
    await cluster.serve()
    const refused = await asking()
    expect(refused.status).toBe(500)
    expect(message(refused)).toContain('certificate signed by unknown authority')
    cluster.helm(...installWords('upgrade', wrong))
    authority = wrong
    await until(async () => (await asking()).status === 201)
  })
})

describe('an upgrade', () => {
  test('gives new Pods the new sidecar, and lets old ones live and change', async () => {
    const before = await asking()
    const name = String(objectAt(before.body.metadata, '').name)
    cluster.helm(...installWords('upgrade', authority, ['--set', 'injector.image.tag=0.2.0']))
    // Between the two, the old injector still runs against the new chart, whose backstop knows one image.
    await until(async () => message(await asking()).includes('the image of a sidecar must be portcullis-sidecar:0.2.0'))
    await cluster.silence()
    await cluster.serve()
    const after = await asking()
    expect([after.status, after.body.message]).toEqual([201, undefined])
    expect(imageOf(after)).toBe('portcullis-sidecar:0.2.0')
    const label = [{ op: 'add', path: '/metadata/labels/note', value: 'x' }]
    expect(await cluster.kube.send('PATCH', `/api/v1/namespaces/invoices/pods/${name}`, label)).toMatchObject({
      status: 200,
    })
  })
})

describe('while the injector is down', () => {
  const bare = podOf({})
  test('Pods are refused where they ask for a sidecar, and everywhere in a required namespace (K8S-005)', async () => {
    await cluster.silence()
    for (const answer of [await asking(), await create('payments', bare)]) {
      expect(answer.status).toBe(500)
      expect(message(answer)).toContain('failed calling webhook')
    }
  })

  test('kube-system and the namespace of the chart are not touched, whatever their labels say (K8S-013)', async () => {
    await cluster.namespace('kube-system').catch(() => undefined)
    for (const namespace of ['kube-system', NAMESPACE]) {
      const label = [{ op: 'add', path: '/metadata/labels/portcullis.dev~1inject', value: 'required' }]
      await cluster.kube.must('PATCH', `/api/v1/namespaces/${namespace}`, label)
      const accounts = `/api/v1/namespaces/${namespace}/serviceaccounts`
      await cluster.kube.send('POST', accounts, { metadata: { name: 'default' } })
      await delay(500)
      expect(await create(namespace, podOf({}))).toMatchObject({ status: 201 })
    }
  })

  test('Pods that exist can be changed and deleted', async () => {
    const { items } = await cluster.kube.must('GET', '/api/v1/namespaces/invoices/pods')
    const [first] = listAt(items, 'items')
    const name = objectAt(objectAt(first, '').metadata, '').name
    const label = [{ op: 'add', path: '/metadata/labels/note', value: 'y' }]
    expect(await cluster.kube.send('PATCH', `/api/v1/namespaces/invoices/pods/${name}`, label)).toMatchObject({
      status: 200,
    })
    expect(await cluster.kube.send('DELETE', `/api/v1/namespaces/invoices/pods/${name}`)).toMatchObject({ status: 200 })
  })

  test('and the webhook made to fail open, the API server itself refuses every bare Pod', async () => {
    cluster.helm(...installWords('upgrade', authority, ['--set', 'injector.webhook.failurePolicy=Ignore']))
    await until(async () => (await asking()).status !== 500)
    const squatter = {
      initContainers: [
        { name: 'portcullis-sidecar', image: 'portcullis-sidecar:0.1.0', restartPolicy: 'Always', command: ['sh'] },
      ],
    }
    // The API server takes up the chart's image, which is the first again, after a moment.
    await until(async () => !message(await create('payments', podOf(ASKING, squatter))).includes('0.2.0'))
    const cases: readonly (readonly [KubeAnswer, string])[] = [
      [await asking(), 'one sidecar for each port'],
      [await create('payments', podOf({})), 'requires a sidecar'],
      [await create('payments', podOf({ 'portcullis.dev/ports': 'none' })), 'requires a sidecar'],
      [await create('payments', podOf(ASKING, squatter)), 'as the injector makes it'],
      [await create('payments', podOf({}, { hostNetwork: true })), 'hostNetwork cannot have a sidecar'],
    ]
    for (const [answer, said] of cases) {
      expect(answer.status).toBe(422)
      expect(message(answer)).toContain(said)
    }
    expect(await create('invoices', podOf({}))).toMatchObject({ status: 201 })
  })
})

test('uninstalling leaves nothing that stops a Pod', async () => {
  cluster.helm('uninstall', 'portcullis', '--namespace', NAMESPACE)
  await until(async () => (await asking()).status === 201)
  expect(await create('payments', podOf({}))).toMatchObject({ status: 201 })
})
