/** Other webhooks that change every container, as workload identities of clouds do, beside the injector in a real API server. */
import { createServer, type Server } from 'node:https'
import { afterAll, afterEach, beforeAll, expect, inject as given, test } from 'vitest'
import { makeCertificate } from '../../sidecar/injector/certificate/certificate.ts'
import { isObject, type Json, type JsonObject, listAt, objectAt, textAt } from '../../sidecar/injector/pod/json.ts'
import { parsePod } from '../../sidecar/injector/pod/pod.ts'
import { podWith } from '../sidecar/injector/pod/pods.ts'
import { freePort } from '../support/free-port.ts'
import { type Cluster, installWords, NAMESPACE, startCluster, until } from './cluster.ts'
import type { KubeAnswer } from './kube-client.ts'

const CONFIGURATIONS = '/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations'
const ADDED = { name: 'AWS_ROLE_ARN', value: 'arn:aws:iam::1:role/x' }
let cluster: Cluster
let identity: Server
let port = 0
let authority = ''

beforeAll(async () => {
  cluster = await startCluster(given('binaries'))
  await cluster.namespace(NAMESPACE)
  cluster.helm(...installWords('install', await cluster.certify('first')))
  await cluster.serve()
  for (const mode of ['enabled', 'required']) await cluster.namespace(mode, { 'portcullis.dev/inject': mode })
  const made = await makeCertificate({ names: ['localhost'], days: 1, nowMs: Date.now() })
  authority = made.authority
  port = await freePort()
  identity = createServer({ key: made.key, cert: made.certificate }, (req, res) => {
    let text = ''
    req.setEncoding('utf8').on('data', (piece: string) => {
      text += piece
    })
    req.on('end', () =>
      res.setHeader('content-type', 'application/json').end(JSON.stringify(addIdentity(JSON.parse(text)))),
    )
  })
  await new Promise<void>((resolve) => identity.listen(port, '127.0.0.1', resolve))
})
afterAll(async () => {
  identity?.close()
  await cluster?.close()
})
afterEach(async () => {
  for (const name of ['aws-identity', 'zzz-identity']) await cluster.kube.send('DELETE', `${CONFIGURATIONS}/${name}`)
  // The API server goes on calling a deleted webhook for a moment, and the next test registers one of another name.
  await until(async () => !(await addsIdentity()))
})

/** A variable and a mount for every container that has none, but for those that an annotation of the Pod leaves out. */
function addIdentity(review: JsonObject): JsonObject {
  const request = objectAt(review.request, 'request')
  const pod = objectAt(request.object, 'object')
  const annotations = objectAt(objectAt(pod.metadata, 'metadata').annotations, 'annotations')
  const left = String(annotations['eks.amazonaws.com/skip-containers'] ?? '').split(',')
  const operations = parsePod(pod).containers.flatMap(({ list, index, name, raw }) => {
    const env = listAt(raw.env, 'env').filter(isObject)
    if (left.includes(name) || env.some((one) => one.name === ADDED.name)) return []
    const path = `/spec/${list}/${index}/env`
    return [{ op: 'add', path, value: [...env, ADDED] as Json }]
  })
  const patch = Buffer.from(JSON.stringify(operations)).toString('base64')
  const response = { uid: textAt(request.uid, 'uid') ?? '', allowed: true, patchType: 'JSONPatch', patch }
  return { apiVersion: 'admission.k8s.io/v1', kind: 'AdmissionReview', response }
}

async function register(name: string): Promise<void> {
  const webhook = {
    name: 'identity.example.com',
    admissionReviewVersions: ['v1'],
    sideEffects: 'None',
    failurePolicy: 'Fail',
    reinvocationPolicy: 'IfNeeded',
    rules: [{ apiGroups: [''], apiVersions: ['v1'], operations: ['CREATE'], resources: ['pods'] }],
    namespaceSelector: { matchExpressions: [{ key: 'portcullis.dev/inject', operator: 'Exists' }] },
    clientConfig: { url: `https://localhost:${port}/`, caBundle: Buffer.from(authority).toString('base64') },
  }
  await cluster.kube.must('POST', CONFIGURATIONS, { metadata: { name }, webhooks: [webhook] })
  await until(addsIdentity)
}

/** Whether the API server calls a webhook that adds the variable, asked with a Pod that gets no sidecar. */
async function addsIdentity(): Promise<boolean> {
  const bare = podWith({ annotations: { 'portcullis.dev/ports': 'none' }, container: { ports: [] } })
  return JSON.stringify((await create('required', bare)).body).includes(ADDED.name)
}

let count = 0
function create(namespace: string, pod: JsonObject): Promise<KubeAnswer> {
  count += 1
  const metadata = { ...objectAt(pod.metadata, 'metadata'), name: `pod-${count}` }
  return cluster.kube.send('POST', `/api/v1/namespaces/${namespace}/pods`, { ...pod, metadata })
}
const variables = (pod: JsonObject): readonly (readonly [string, boolean])[] =>
  parsePod(pod).containers.map(({ name, raw }) => [name, JSON.stringify(raw.env ?? []).includes(ADDED.name)])

test.each(['enabled', 'required'])(
  'a webhook that adds a variable to all containers adds it to the app, and not to the sidecar (%s)',
  async (mode) => {
    await register('aws-identity')
    const answer = await create(mode, podWith({}))
    expect([answer.status, answer.body.message]).toEqual([201, undefined])
    expect(variables(answer.body)).toEqual([
      ['portcullis-sidecar', false],
      ['app', true],
    ])
    expect(answer.warnings).toEqual([expect.stringContaining('another webhook changed env of portcullis-sidecar')])
    await until(async () => cluster.injectorLog().includes('another webhook changed env of portcullis-sidecar'))
  },
)

test('one that has the last word is refused by the backstop, which names what differs, until it leaves the sidecar out', async () => {
  await register('zzz-identity')
  // The API server takes up policies a moment after the chart is installed, and no test above needs one.
  await until(async () => (await create('required', podWith({}))).status !== 201)
  const refused = await create('required', podWith({}))
  expect(String(refused.body.message)).toContain('these fields differ: portcullis-sidecar: env')
  const annotations = {
    'portcullis.dev/ports': 'http',
    'portcullis.dev/routes': 'invoices-routes',
    'eks.amazonaws.com/skip-containers': 'portcullis-sidecar',
  }
  const answer = await create('required', podWith({ annotations }))
  expect(variables(answer.body)).toEqual([
    ['portcullis-sidecar', false],
    ['app', true],
  ])
  expect(answer.warnings).toEqual([])
})
