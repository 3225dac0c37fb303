import { X509Certificate } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { type RequestOptions, request } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Writable } from 'node:stream'
import { setTimeout as delay } from 'node:timers/promises'
import { connect, type TLSSocket } from 'node:tls'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createLog } from '../../../../pdp/shared/process/log.ts'
import { createShutdown } from '../../../../pdp/shared/process/shutdown.ts'
import { checkText } from '../../../../sidecar/commands/file-report.ts'
import { type MadeCertificate, makeCertificate } from '../../../../sidecar/injector/certificate/certificate.ts'
import { isObject, type Json, type JsonObject, objectAt } from '../../../../sidecar/injector/pod/json.ts'
import { startInjector } from '../../../../sidecar/injector/start.ts'
import { askInjector } from '../../../../sidecar/injector/webhook/ask.ts'
import { REVIEW_BYTES_MAX, REVIEW_TIMEOUT_MS, startWebhook } from '../../../../sidecar/injector/webhook/webhook.ts'
import { effort } from '../../../support/effort.ts'
import { ASKING, anyPod, CONFIG, podWith } from '../pod/pods.ts'

const NAME = 'portcullis-injector.portcullis.svc'
const folder = mkdtempSync(join(tmpdir(), 'portcullis-injector-'))
const lines: string[] = []
const destination = new Writable({
  write(chunk, _encoding, done) {
    lines.push(String(chunk))
    done()
  },
})
const log = createLog({ service: 'test', level: 'info', destination })
const shutdown = createShutdown({ log, timeoutMs: 5_000 })
let port = 0
let adminPort = 0
let made = await makeCertificate({ names: [NAME, 'localhost'], days: 1, nowMs: Date.now() })

function store(certificate: MadeCertificate): void {
  writeFileSync(join(folder, 'tls.crt'), certificate.certificate)
  writeFileSync(join(folder, 'tls.key'), certificate.key)
}

beforeAll(async () => {
  store(made)
  const listen = { host: '127.0.0.1', port: 0 }
  const started = await startInjector(
    {
      config: CONFIG,
      certificateFolder: folder,
      certificateCheckMs: 50,
      listen,
      adminListen: listen,
      checkRoutes: async (text) => checkText(text, null),
    },
    { log, shutdown },
  )
  port = started.address.port
  adminPort = started.adminAddress.port
})
afterAll(async () => {
  await shutdown.run('test')
  rmSync(folder, { recursive: true })
})

type Answer = { readonly status: number; readonly body: string }
function send(body: string | Buffer, over: RequestOptions = {}): Promise<Answer> {
  const { promise, resolve, reject } = Promise.withResolvers<Answer>()
  const options = { host: '127.0.0.1', port, servername: NAME, ca: made.authority, agent: false, method: 'POST' }
  const req = request({ ...options, path: '/inject/enabled', ...over }, (res) => {
    const chunks: Buffer[] = []
    res.on('data', (chunk: Buffer) => chunks.push(chunk))
    res.on('end', () => resolve({ status: res.statusCode ?? 0, body: Buffer.concat(chunks).toString() }))
    res.on('error', reject)
  })
  req.on('error', reject)
  req.end(body)
  return promise
}

function review(object: Json, over: JsonObject = {}): string {
  const request = {
    uid: 'u1',
    operation: 'CREATE',
    resource: { group: '', version: 'v1', resource: 'pods' },
    object,
    ...over,
  }
  return JSON.stringify({ apiVersion: 'admission.k8s.io/v1', kind: 'AdmissionReview', request })
}

function responseOf({ body }: Answer): JsonObject {
  const parsed: unknown = JSON.parse(body)
  if (isObject(parsed) && isObject(parsed.response)) return parsed.response
  throw new Error(body)
}

describe('a review', () => {
  test('of a Pod that asks is answered with a patch', async () => {
    const response = responseOf(await send(review(podWith({}))))
    expect(response).toMatchObject({ uid: 'u1', allowed: true, patchType: 'JSONPatch' })
    expect(JSON.parse(Buffer.from(String(response.patch), 'base64').toString())).toContainEqual(
      expect.objectContaining({ path: '/spec/containers/0/ports/0/name', value: 'app-http' }),
    )
  })

  test('is logged with the Pod that it is of, cut short', async () => {
    const said = (): unknown[] => lines.map((line) => JSON.parse(line)).map(({ event, pod }) => [event, pod])
    const { metadata, ...rest } = podWith({})
    const unnamed = { ...rest, metadata: { ...objectAt(metadata, ''), name: null, generateName: 'invoices-' } }
    await send(review(unnamed, { namespace: 'shop' }))
    expect(said()).toContainEqual(['review', 'shop/invoices-'])
    await send(review(podWith({}), { namespace: 'x'.repeat(100_000) }))
    expect(said()).toContainEqual(['review', `${'x'.repeat(253)}/invoices`])
  })

  test('of a Pod that asks for nothing is allowed with a warning, and refused where a sidecar is required', async () => {
    const bare = review(podWith({ annotations: {} }))
    expect(responseOf(await send(bare))).toMatchObject({
      allowed: true,
      warnings: [expect.stringContaining('unprotected ports: http')],
    })
    expect(responseOf(await send(bare, { path: '/inject/required?timeout=5s' }))).toMatchObject({
      allowed: false,
      status: { code: 403, message: expect.stringContaining('(ports_missing)') },
    })
  })

  test.each([
    ['an update', { operation: 'UPDATE' }],
    ['another resource', { resource: { group: 'apps', version: 'v1', resource: 'pods' } }],
    ['no object', { object: null }],
    ['a list for an object', { object: [] }],
  ])('of %s is refused', async (_what, over) => {
    expect(responseOf(await send(review(podWith({}), over)))).toMatchObject({ allowed: false })
  })

  test('of any Pod has an answer', async () => {
    await fc.assert(
      fc.asyncProperty(anyPod, async (pod) => {
        const response = responseOf(await send(review(pod)))
        expect(response.uid).toBe('u1')
        expect(typeof response.allowed).toBe('boolean')
      }),
      { numRuns: effort({ short: 50, long: 200 }), seed: 6 },
    )
  })
})

describe('refuses', () => {
  const deep = `{"request":${'['.repeat(500_000)}`
  test.each([
    ['rubbish', 'not json', 400],
    ['nothing', '', 400],
    ['a list', '[]', 400],
    ['JSON that is no review', '{}', 400],
    ['a review of another version', JSON.stringify({ apiVersion: 'admission.k8s.io/v1beta1', request: {} }), 400],
    ['a review without uid', review(podWith({}), { uid: 7 }), 400],
    ['a review whose resource is text', review(podWith({}), { resource: 'pods' }), 400],
    ['a nesting without end', deep, 400],
  ])('%s', async (_what, body, status) => {
    expect(await send(body)).toMatchObject({ status })
  })

  test('other paths and methods', async () => {
    expect(await send('', { path: '/' })).toMatchObject({ status: 404 })
    expect(await send('', { path: '/inject/other' })).toMatchObject({ status: 404 })
    expect(await send('', { method: 'PUT' })).toMatchObject({ status: 405 })
  })

  test('a body past 3 MiB, said or chunked, and takes one of exactly 3 MiB (K8S-019)', async () => {
    const text = review(podWith({}))
    const full = Buffer.from(text + ' '.repeat(REVIEW_BYTES_MAX - text.length))
    expect(await send(full)).toMatchObject({ status: 200 })
    expect((await send(Buffer.concat([full, Buffer.from(' ')])).catch(cut)).status).toBe(413)
    const chunked = { headers: { 'transfer-encoding': 'chunked' } }
    expect((await send(Buffer.concat([full, Buffer.from(' ')]), chunked).catch(cut)).status).toBe(413)
  })

  test('TLS 1.2', async () => {
    await expect(send('{}', { maxVersion: 'TLSv1.2' })).rejects.toThrow()
  })

  test('a connection that is slow with its body, within its time', async () => {
    const begin = Date.now()
    const text = await converse((socket) =>
      socket.write('POST /inject/enabled HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n{'),
    )
    expect(text).toContain('408')
    expect(Date.now() - begin).toBeLessThan(REVIEW_TIMEOUT_MS + 10_000)
  })
})

// A server that answers before the body was sent may end the connection under the sender.
const cut = (): Answer => ({ status: 413, body: '' })

function converse(start: (socket: TLSSocket) => void): Promise<string> {
  const { promise, resolve } = Promise.withResolvers<string>()
  let text = ''
  const socket = connect({ host: '127.0.0.1', port, servername: NAME, ca: made.authority }, () => start(socket))
  socket.on('data', (chunk: Buffer) => {
    text += chunk.toString()
  })
  socket.on('close', () => resolve(text))
  socket.on('error', () => undefined)
  return promise
}

test('a flood of full reviews is answered or refused, and the next review is answered', async () => {
  const full = Buffer.from(`${review(podWith({}))}${' '.repeat(REVIEW_BYTES_MAX - 4_096)}`)
  const before = process.memoryUsage.rss()
  const answers = await Promise.all(
    Array.from({ length: 40 }, () => send(full).catch(() => ({ status: 503, body: '' }))),
  )
  expect(new Set(answers.map(({ status }) => status)).difference(new Set([200, 503, 408]))).toEqual(new Set())
  expect(process.memoryUsage.rss() - before).toBeLessThan(600 * 1024 * 1024)
  expect(await send(review(podWith({})))).toMatchObject({ status: 200 })
})

test('asked by the own test of the chart, it gives the example its sidecar', async () => {
  await expect(askInjector(`https://localhost:${port}`, Buffer.from(made.authority))).resolves.toBeUndefined()
  const other = await makeCertificate({ names: ['localhost'], days: 1, nowMs: Date.now() })
  await expect(askInjector(`https://localhost:${port}`, Buffer.from(other.authority))).rejects.toThrow(
    'does not answer',
  )
})

test('a failure of its own is an error, which the API server takes for a refusal (K8S-006)', async () => {
  const pair = { cert: Buffer.from(made.certificate), key: Buffer.from(made.key) }
  const onReview = (): never => {
    throw new Error('broken')
  }
  const checkRoutes = async (text: string) => checkText(text, null)
  const deps = { config: CONFIG, log, onReview, onCheck: () => undefined, checkRoutes }
  const broken = await startWebhook({ host: '127.0.0.1', port: 0 }, pair, deps)
  const answer = await send(review(podWith({})), { port: broken.address.port })
  expect(answer).toEqual({ status: 500, body: 'failed\n' })
  await broken.close()
})

describe('a check', () => {
  const GOOD =
    'portcullis: v1\nresource: https://a.test\nissuers: [{issuer: https://as.test}]\nupstream: http://127.0.0.1:1\npdp: {address: "127.0.0.1:1", insecure: true}\nroutes: {GET /a: public}\n'
  const workload = (annotations: JsonObject): JsonObject => ({
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name: 'invoices' },
    spec: { template: podWith({ annotations }) },
  })
  const asked = async (path: string, object: Json, over: JsonObject = {}) =>
    responseOf(await send(review(object, { namespace: 'shop', name: 'x', ...over }), { path }))

  test('of a workload says what will become of its Pods, and refuses none', async () => {
    const wrong = { 'portcullis.dev/ports': '8080' }
    expect(await asked('/workloads/enabled', workload(wrong))).toEqual({
      uid: 'u1',
      allowed: true,
      warnings: [expect.stringMatching(/^portcullis: its Pods will be refused: annotation portcullis.dev\/ports must/)],
    })
    expect(await asked('/workloads/required', workload({}))).toMatchObject({
      allowed: true,
      warnings: [expect.anything()],
    })
    expect(await asked('/workloads/enabled', workload(ASKING))).toEqual({ uid: 'u1', allowed: true })
    for (const odd of [{}, { apiVersion: 'v1', kind: 'Secret' }, { ...workload({}), spec: { template: 'x' } }])
      expect(await asked('/workloads/required', odd)).toEqual({ uid: 'u1', allowed: true })
  })

  test('of a StatefulSet says where the names of its Pods lead', async () => {
    const set = { ...workload(ASKING), kind: 'StatefulSet', spec: { serviceName: 'db', template: podWith({}) } }
    expect(await asked('/workloads/enabled', set)).toMatchObject({
      allowed: true,
      warnings: [expect.stringMatching(/Service db\) dial the app's port past the sidecar/)],
    })
  })

  test.each<[string, Json, boolean, RegExp | null]>([
    ['a good file', { 'http.yaml': GOOD }, true, null],
    [
      'a mistake, with its place',
      { 'http.yaml': GOOD.replace('public', 'viewer') },
      false,
      /^portcullis: http.yaml:6:\d+: /,
    ],
    ['no file', { 'notes.txt': 'x' }, false, /has no key such as http.yaml/],
    ['no data', null, false, /has no key such as http.yaml/],
    ['a mistake in the second file', { 'http.yaml': GOOD, 'grpc.yaml': 'x' }, false, /^portcullis: grpc.yaml:1:1: /],
  ])('of a ConfigMap with %s', async (_name, data, allowed, message) => {
    const response = await asked('/routes', { apiVersion: 'v1', kind: 'ConfigMap', data })
    expect(response.allowed).toBe(allowed)
    if (message !== null) expect(objectAt(response.status, '').message).toMatch(message)
  })

  test('names no more than eight of many mistakes, and warns as `check` does', async () => {
    const many = `${GOOD.replace('routes: {GET /a: public}', 'routes:')}${Array.from({ length: 30 }, (_, at) => `  GET /${at}: viewer\n`).join('')}`
    const response = await asked('/routes', { data: { 'http.yaml': many } })
    expect(String(objectAt(response.status, '').message)).toMatch(/; and \d+ more$/)
    const similar = GOOD.replace('{GET /a: public}', '{GET /a/**: public}')
    expect(await asked('/routes', { data: { 'http.yaml': similar } })).toMatchObject({
      allowed: true,
      warnings: [expect.anything()],
    })
  })

  test('that is no AdmissionReview is refused as one', async () => {
    for (const path of ['/routes', '/workloads/enabled']) {
      expect((await send('{}', { path })).status).toBe(400)
      expect((await send(review(null), { path })).status).toBe(400)
    }
    expect((await send(review({}), { path: '/workloads/other' })).status).toBe(404)
  })
})

describe('the certificate', () => {
  const offered = (): Promise<string> => {
    const { promise, resolve, reject } = Promise.withResolvers<string>()
    const socket = connect({ host: '127.0.0.1', port, servername: NAME, ca: made.authority }, () => {
      resolve(new X509Certificate(socket.getPeerCertificate().raw).fingerprint256)
      socket.destroy()
    })
    socket.on('error', reject)
    return promise
  }

  test('is changed without a restart, and a broken one is not taken', async () => {
    const first = await offered()
    writeFileSync(join(folder, 'tls.crt'), 'broken')
    await delay(200)
    expect(await offered()).toBe(first)
    made = await makeCertificate({ names: [NAME, 'localhost'], days: 2, nowMs: Date.now() })
    store(made)
    const wanted = new X509Certificate(made.certificate).fingerprint256
    await expect.poll(() => offered().catch(() => '')).toBe(wanted)
  })

  test('has its end and the reviews in the metrics', async () => {
    const text = await (await fetch(`http://127.0.0.1:${adminPort}/metrics`)).text()
    expect(text).toMatch(/portcullis_injector_certificate_not_after_seconds \d{10}/)
    expect(text).toContain('portcullis_injector_reviews_total{mode="enabled",verdict="inject",reason=""}')
  })

  test('is one that a strict verifier accepts', () => {
    const [authority, leaf] = [new X509Certificate(made.authority), new X509Certificate(made.certificate)]
    expect(leaf.checkIssued(authority)).toBe(true)
    expect(leaf.verify(authority.publicKey)).toBe(true)
    expect(authority.ca).toBe(true)
    expect(leaf.ca).toBe(false)
    expect(leaf.checkHost(NAME)).toBe(NAME)
    expect(leaf.checkHost('other.portcullis.svc')).toBeUndefined()
  })
})
