/** Routes that lead to services of their own: each is reached in its way, and none stops the others. */
import { createHash } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer as createHttp2 } from 'node:http2'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { fileSignature, readCertificates } from '../../../sidecar/config/certificates.ts'
import { makeCertificate } from '../../../sidecar/injector/certificate/certificate.ts'
import { fileWarnings } from '../../../sidecar/route-file/warnings.ts'
import { openedRoutes } from '../../../sidecar/runtime/opened-routes.ts'
import { openedSettings } from '../../../sidecar/runtime/opened-settings.ts'
import { tuples } from '../../support/peers/scripted-pdp.ts'
import { until } from '../../support/until.ts'
import { type Harness, loadFile, routeFile, type SendOptions, startHarness } from '../support/harness.ts'
import { fieldOf, startUpstream, type Upstream } from '../support/upstream.ts'

const folder = mkdtempSync(join(tmpdir(), 'portcullis-services-'))
const closers: (() => unknown)[] = [() => rmSync(folder, { recursive: true })]
const EXTRA = 'hosts: [app.test]\ntrusted_proxies: [127.0.0.1]'
let h: Harness
let billing: Upstream
let secure: Upstream
let path: string
beforeAll(async () => {
  billing = await startUpstream()
  const made = await makeCertificate({ names: ['inner.test'], days: 1, nowMs: Date.now() })
  secure = await startUpstream({ cert: Buffer.from(made.certificate), key: Buffer.from(made.key) })
  writeFileSync(join(folder, 'ca.pem'), made.authority)
  path = join(folder, 'socket')
  const http2 = createHttp2(
    (req, res) => void req.resume().on('end', () => res.end(`by socket ${req.headers[':authority']}`)),
  )
  await new Promise<void>((resolve) => http2.listen(path, resolve))
  closers.push(
    () => billing.close(),
    () => secure.close(),
    () => http2.close(),
  )
  h = await startHarness({
    routes: routes(),
    extra: EXTRA,
    script: tuples(['alice viewer invoice:1']),
    limits: { upstreamHeadersMs: 300, requestsMax: 4, waitingMs: 100 },
    certificatesOf: readCertificates,
  })
})
afterAll(async () => {
  await h.close()
  for (const close of closers.reverse()) await close()
})

const ca = () => `ca_file: ${join(folder, 'ca.pem')}`
function routes(): string {
  return `"* /**": public
GET billing.test/invoices/{id}: {check: "viewer invoice:{id}", upstream: ${billing.origin}}
"* billing.test/**": {check: public, upstream: ${billing.origin}}
GET billing.test/ws: {check: public, upgrade: [websocket], upstream: ${billing.origin}}
GET billing.test/slow: {check: public, upstream_headers_ms: 50, upstream: ${billing.origin}}
GET socket.test/x: {check: public, upstream: {url: "http://service.invalid", socket: ${path}, http2: true, host: inner.test}}
GET secure.test/named: {check: public, upstream: {url: "${secure.origin}", ${ca()}, server_name: inner.test}}
GET secure.test/misnamed: {check: public, upstream: {url: "${secure.origin}", ${ca()}, server_name: other.test}}
GET secure.test/unknown: {check: public, upstream: {url: "${secure.origin}", server_name: inner.test}}
GET down.test/x: {check: public, upstream: "http://127.0.0.1:1"}`
}
const get = (target: string, host: string, options: SendOptions = { token: null }) =>
  h.send(`GET ${target}`, { host, ...options })

describe('a route with a service of its own', () => {
  test('leads there, and every other route to that of the file', async () => {
    const before = [h.upstream.reached.length, billing.reached.length]
    expect((await get('/invoices/1', 'billing.test', {})).status).toBe(200)
    expect((await get('/invoices/2', 'billing.test', {})).status).toBe(403)
    expect((await get('/invoices/1', 'app.test')).status).toBe(200)
    expect(billing.reached.slice(before[1]).map(({ target }) => target)).toEqual(['/invoices/1'])
    expect(h.upstream.reached.slice(before[0]).map(({ target }) => target)).toEqual(['/invoices/1'])
  })

  test('reaches it by unix socket, HTTP version and Host field of its own', async () => {
    expect((await get('/x', 'socket.test')).body).toBe('by socket inner.test')
  })

  test.each([
    ['/named', 200],
    ['/misnamed', 502],
    ['/unknown', 502],
  ])('verifies the certificate by what it says: %s', async (target, status) => {
    expect((await get(target, 'secure.test')).status).toBe(status)
  })

  test('opens WebSocket connections there', async () => {
    const key = 'dGhlIHNhbXBsZSBub25jZQ=='
    const accept = createHash('sha1').update(`${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest('base64')
    billing.onUpgrade = (_, socket) =>
      void socket.end(
        `HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${accept}\r\n\r\n`,
      )
    const fields = [
      'Upgrade: websocket',
      'Connection: Upgrade',
      'Sec-WebSocket-Version: 13',
      `Sec-WebSocket-Key: ${key}`,
    ]
    expect((await h.send('GET /ws', { host: 'billing.test', token: null, fields })).status).toBe(101)
    billing.onUpgrade = null
  })

  test('has the time-outs of the file and of the route', async () => {
    billing.handle = () => undefined
    expect((await get('/slow', 'billing.test')).status).toBe(504)
    expect((await get('/x', 'billing.test')).status).toBe(504)
    billing.handle = null
    expect((await get('/x', 'billing.test')).status).toBe(200)
  })

  test('is 502 while it is down; the others answer, and the sidecar stays ready', async () => {
    expect((await get('/x', 'down.test')).status).toBe(502)
    expect((await get('/x', 'billing.test')).status).toBe(200)
    expect((await get('/x', 'app.test')).status).toBe(200)
    expect(h.sidecar.notReady()).toBe(null)
  })

  test('leaves half of the places to others when it does not answer', async () => {
    const held: (() => void)[] = []
    billing.handle = (_, res) => void held.push(() => res.end())
    const waiting = [1, 2, 3].map((at) =>
      get('/x', 'billing.test', { token: null, fields: [`X-Forwarded-For: 192.0.2.${at}`] }),
    )
    await until(() => held.length === 2)
    expect((await get('/x', 'app.test')).status).toBe(200)
    await until(() => h.log.some((line) => 'detail' in line && /to this service are open/.test(String(line.detail))))
    for (const answer of held) answer()
    billing.handle = null
    expect((await Promise.all(waiting)).map(({ status }) => status).sort()).toEqual([200, 200, 503])
  })

  test('moves with a reload, as the log of the reload says', async () => {
    const other = await startUpstream()
    closers.push(() => other.close())
    const [former, next] = [
      h.file(),
      loadFile(
        routeFile(routes().replaceAll(billing.origin, other.origin), { extra: EXTRA })
          .replace('UPSTREAM', h.upstream.origin)
          .replace('PDP', h.pdp.address),
      ),
    ]
    const read = (file: typeof next) => ({ file, certificates: readCertificates(file) })
    expect(openedSettings(read(former), read(next))).toEqual([`upstream: ${other.origin} gets the requests now`])
    expect((await openedRoutes(former.routes, next.routes)).map(({ route, now }) => [route, now])).toEqual([
      ['GET billing.test/invoices/{id}', 'allows'],
    ])
    h.sidecar.apply({ ...read(next), hash: 'moved' })
    await get('/moved', 'billing.test')
    expect(other.reached.map(({ target }) => target)).toEqual(['/moved'])
    h.sidecar.apply({ ...read(former), hash: 'back' })
  })

  test('has its authorities read again when their file changes', () => {
    const file = h.file()
    const before = fileSignature('none', file)
    writeFileSync(join(folder, 'ca.pem'), `${readFileSync(join(folder, 'ca.pem'), 'utf8')}\n`)
    expect(fileSignature('none', file)).not.toBe(before)
  })
})

const load = (text: string, extra = '') =>
  loadFile(routeFile(text, { extra }).replace('UPSTREAM', 'http://127.0.0.1:1').replace('PDP', '127.0.0.1:1'))

test.each([
  ['upstream: orders', /upstream must be an http or https URL without a path/],
  ['upstream: "http://a.test/base"', /upstream must be an http or https URL without a path/],
  ['upstream: {http2: true}', /upstream needs url/],
  ['upstream: {url: "http://a.test", server_name: a.test}', /only with an https URL/],
  ['upstream: {url: "http://a.test", ca_file: a.pem}', /only with an https URL/],
  ['upstream: {url: "http://a.test", weight: 2}', /upstream has the unknown key "weight"/],
  ['upstream: [a, b]', /upstream must be a string/],
  ['upstream:', /upstream must not be empty/],
  ['to: "http://a.test"', /unknown key "to"; did you mean upstream\?/],
])('a route with %s is refused', (text, says) => {
  expect(() => load(`GET /x: {check: public, ${text}}`)).toThrow(says)
})

test('a route to a service over HTTP/2 cannot accept WebSocket, and one beside it can', () => {
  const to = (http2: boolean) =>
    `GET /ws: {check: public, upgrade: [websocket], upstream: {url: "http://a.test", http2: ${http2}}}\nGET /x: {check: public, upstream: {url: "http://b.test", http2: true}}`
  expect(() => load(to(true))).toThrow(/http2 does not support WebSocket, but the route GET \/ws accepts it/)
  expect(load(to(false)).routes).toHaveLength(2)
})

test('a door refuses it, because the gateway chooses the service', () => {
  const doors = 'doors: [{profile: envoy, listen: "unix:/run/door"}]'
  expect(() => load('GET /x: {check: signed_in, upstream: "http://a.test"}', doors)).toThrow(
    /the route GET \/x has upstream, but the gateway chooses the service/,
  )
})

test('the 65th service is refused', () => {
  const to = (count: number) =>
    Array.from(
      { length: count },
      (_, at) =>
        `GET /${at}: {check: public, upstream: "http://a.test:${at + 1}"}\nPUT /${at}: {check: public, upstream: "http://a.test:${at + 1}"}`,
    ).join('\n')
  expect(load(to(64)).routes).toHaveLength(128)
  expect(() => load(to(65))).toThrow(/routes name more than 64 services/)
})

describe('another reading of a path', () => {
  test.each([
    [
      'another service with an equal check',
      'GET /a/**: signed_in\nGET /a/b/: {check: signed_in, upstream: "http://b.test"}',
      'GET /a/b',
    ],
    [
      'a public path of another service',
      'GET /a/{x}: viewer a:{x}\nGET /a/b/: {check: public, upstream: "http://b.test"}',
      'GET /a/b',
    ],
  ])('that leads to %s is refused', async (_, text, line) => {
    const before = h.upstream.reached.length
    h.apply(text)
    expect((await h.send(line)).status).toBe(400)
    expect(h.upstream.reached.length).toBe(before)
  })

  test('paths that overlap, with equal checks but two services, are 400', async () => {
    h.apply('GET /a/{x}/c: signed_in\nGET /a/b/{y}: {check: signed_in, upstream: "http://b.test"}')
    expect((await h.send('GET /a/b/c')).status).toBe(400)
  })
})

describe('check warns', () => {
  test('where a route of a host lacks the service that the others of the host name', () => {
    const text = 'GET b.test/x: {check: signed_in, upstream: "http://b.test"}\nGET b.test/y: signed_in'
    expect(fileWarnings(load(text))).toEqual([
      expect.stringMatching(/^GET b\.test\/y leads to the upstream of the file/),
    ])
  })

  test('not where hosts differ, or every route names its service', () => {
    const text =
      'GET b.test/x: {check: signed_in, upstream: "http://b.test"}\nGET c.test/y: signed_in\nGET /z: signed_in'
    expect(fileWarnings(load(text))).toEqual([])
  })
})

describe('assertions', () => {
  const assertion = 'assertion: {header: X-Assertion, audience: main, keys_file: k}'
  const own = (more: string) => `GET /own: {check: signed_in, upstream: {url: "${billing.origin}"${more}}}`
  const loaded = (text: string, extra = '') =>
    loadFile(routeFile(text, { extra }).replace('UPSTREAM', 'http://a.test').replace('PDP', '127.0.0.1:1'))

  test('are for the service that gets them, each signed once in its time', async () => {
    const keysFile = join(folder, 'assertion.keys')
    writeFileSync(keysFile, 'k'.repeat(32))
    const other = `GET /file: signed_in\n${own(', assertion_audience: ledger')}`
    h.apply(other, `${EXTRA}\n${assertion.replace('keys_file: k', `keys_file: ${keysFile}`)}`)
    const token = await h.issuer.token()
    const got: string[] = []
    for (const [target, service] of [
      ...([
        ['/file', h.upstream],
        ['/own', billing],
        ['/own', billing],
        ['/file', h.upstream],
      ] as const),
    ]) {
      expect((await get(target, 'app.test', { token })).status).toBe(200)
      got.push(fieldOf(service.reached.at(-1), 'x-assertion') ?? '')
    }
    h.apply(routes(), EXTRA)
    expect(got.map((jwt) => JSON.parse(Buffer.from(jwt.split('.')[1] ?? '', 'base64url').toString()).aud)).toEqual([
      ...['main', 'ledger', 'ledger', 'main'],
    ])
    expect(new Set(got).size).toBe(2)
  })

  test.each([
    [
      'of a file that signs none',
      () => loaded(own(', assertion_audience: ledger')),
      /GET \/own has assertion_audience, but the file has no assertion/,
    ],
    ['without a name', () => loaded(own(', assertion_audience: ""'), assertion), /assertion_audience must be the name/],
    [
      'at a route itself',
      () => loaded('GET /x: {check: signed_in, assertion_audience: a}', assertion),
      /did you mean upstream\?/,
    ],
    [
      'of the service of the file',
      () =>
        loadFile(
          routeFile('GET /x: signed_in', { extra: assertion })
            .replace('UPSTREAM', '{url: "http://a.test", assertion_audience: b}')
            .replace('PDP', '127.0.0.1:1'),
        ),
      /audience of assertion is for this one/,
    ],
  ])('with an audience %s are refused', (_, load, says) => {
    expect(load).toThrow(says)
  })

  test('for the service of the file, sent to another one, are warned of', () => {
    const warned = (more: string, check = 'signed_in') =>
      fileWarnings(loaded(own(more).replace('signed_in', check), assertion)).filter((one) => one.includes('assertion'))
    expect(warned('')).toEqual([expect.stringContaining('GET /own sends assertions for main to a service of its own')])
    expect(warned(', assertion_audience: ledger')).toEqual([])
    expect(warned('', 'public')).toEqual([])
  })
})
