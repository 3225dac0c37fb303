/** `open_paths`, `add_path` and `assertion`, attacked byte by byte: nobody else reads what is open, leaves what is added, or says who calls. */
import { createLocalJWKSet, jwtVerify } from 'jose'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { NO_CERTIFICATES } from '../../../sidecar/config/certificates.ts'
import { sendRaw } from '../../support/peers/raw-http.ts'
import { tuples } from '../../support/peers/scripted-pdp.ts'
import { type Harness, startHarness } from '../support/harness.ts'
import { block, FLAGS, frame, headers, type Pair, pseudo, sendFrames, TYPES } from '../support/raw-http2.ts'
import { fieldOf } from '../support/upstream.ts'

const EXTRA = `open_paths: {/app/metrics: [127.0.0.1]}
assertion: {header: X-Assertion, audience: billing, keys_file: a.keys}`
const certificates = { ...NO_CERTIFICATES, assertion: [Buffer.from('k'.repeat(32))] as const }
const FORGED = 'eyJhbGciOiJub25lIn0.eyJzdWIiOiJtYWxsb3J5In0.'
let h: Harness
let bearer = ''
let trailers: string[] = []
beforeAll(async () => {
  const routes = `GET /app/**: signed_in
POST /app/in: signed_in
GET /app/open: public`
  h = await startHarness({ routes, extra: EXTRA, script: tuples([]), certificates })
  const { origin } = h.upstream
  h.upstream.origin = `{url: "${origin}", strip_path: /app, add_path: /base}`
  h.apply(routes)
  h.upstream.origin = origin
  bearer = `Authorization: Bearer ${await h.issuer.token()}`
  h.upstream.handle = (req, res) => {
    trailers = [...req.rawTrailers]
    res.end('{}')
  }
})
afterAll(() => h.close())
beforeEach(() => {
  h.upstream.reached.length = 0
  trailers = []
})

const raw = (line: string, fields: readonly string[] = [], body = '') =>
  sendRaw(h.port, Buffer.from([line, 'Host: app.test', ...fields, '', body].join('\r\n'), 'latin1'))
const targets = (): readonly string[] => h.upstream.reached.map(({ method, target }) => `${method} ${target}`)
const everything = (): string => JSON.stringify([h.upstream.reached.map(({ rawHeaders }) => rawHeaders), trailers])

describe('an open path is open', () => {
  test.each([
    ['GET /app/metrics HTTP/1.1'],
    ['GET http://app.test/app/metrics HTTP/1.1'],
    ['GET /app/metrics HTTP/1.0'],
  ])('to its peer by %s, which reaches the service below its path', async (line) => {
    expect((await raw(line)).status).toBe(200)
    expect(targets()).toEqual(['GET /base/metrics'])
  })

  test.each([
    ...['/app/metrics;', '/app/metrics;a=b', '/app/metrics;/..', '/app;x/metrics', '/app/metrics/', '/app/metrics/.'],
    ...[
      '/app/./metrics',
      '/app//metrics',
      '//app/metrics',
      '/app/x/../metrics',
      '/app/x/..;/metrics',
      '/app/metrics/..',
    ],
    ...[
      '/app/%6detrics',
      '/app/metrics%00',
      '/app/metrics%2F',
      '/app%2Fmetrics',
      '/app/metrics%3Fx',
      '/app/metrics%23',
    ],
    ...[
      '/app/metrics%20',
      '/app/%2e/metrics',
      '/app/x/%2e%2e/metrics',
      '/app/x/%252e%252e/metrics',
      '/app/%256detrics',
    ],
    ...[
      '/app/metrics%c0%af',
      '/app/metrics%E2%80%8B',
      '/app/METRICS',
      '/app/metrics#x',
      '/app\\metrics',
      '\\app\\metrics',
    ],
    ...['/app/metrics/../admin', '/app/metrics/%2e%2e/admin', '/app/metrics/..%2fadmin', '/app/metrics.json'],
    ...['app/metrics', 'http:///app/metrics', 'http:app/metrics', 'https://a@app.test/app/metrics', '*', '/metrics'],
    ...['http://app.test/app/%6detrics', 'http://app.test//app/metrics', 'http://app.test:80:80/app/metrics'],
    ...['/base/metrics', '/app/base/metrics', '/app/metrics\t', '/app/metrics\x00', '/app/metrics\xe9'],
  ])('not as GET %j', async (target) => {
    const { status } = await raw(`GET ${target} HTTP/1.1`)
    expect([status >= 400 && status < 500, targets()]).toEqual([true, []])
  })

  test.each<[line: string, fields: readonly string[], body?: string]>([
    ['get /app/metrics HTTP/1.1', []],
    ['GET /app/metrics', []],
    ['GET  /app/metrics HTTP/1.1', []],
    ['GET /app/metrics HTTP/1.2', []],
    ['POST /app/metrics HTTP/1.1', ['Content-Length: 0']],
    ['TRACE /app/metrics HTTP/1.1', []],
    ['CONNECT /app/metrics HTTP/1.1', []],
    ['PROPFIND /app/metrics HTTP/1.1', []],
    ['GET /app/metrics HTTP/1.1', ['Host: app.test']],
    ['GET /app/metrics HTTP/1.1', ['Content-Length: 1'], 'a'],
    ['GET /app/metrics HTTP/1.1', ['Transfer-Encoding: chunked'], '0\r\n\r\n'],
    ['GET /app/metrics HTTP/1.1', ['Content-Length: 0', 'Transfer-Encoding: chunked'], '0\r\n\r\n'],
    ['GET /app/metrics HTTP/1.1', ['X-Forwarded-For: 127.0.0.1']],
    ['GET /app/metrics HTTP/1.1', ['x-FORWARDED-host: app.test']],
    ['GET /app/metrics HTTP/1.1', ['Forwarded: for=127.0.0.1']],
    ['GET /app/metrics HTTP/1.1', ['Connection: X-Forwarded-For', 'X-Forwarded-For: 127.0.0.1']],
    ['GET /app/metrics HTTP/1.1', ['Via: 1.1 a']],
    ['GET /app/metrics HTTP/1.1', ['X-Forwarded-For : 127.0.0.1']],
    ['GET /app/metrics HTTP/1.1', ['X-A: b\nX-Auth-Subject: mallory']],
    ['GET /app/metrics HTTP/1.1', ['X-A: b', ' X-Auth-Subject: mallory']],
  ])('not by %j with %j', async (line, fields, body) => {
    const { status } = await raw(line, fields, body)
    expect([status >= 400, targets()]).toEqual([true, []])
  })

  test.each(['X-HTTP-Method-Override', 'X-HTTP-Method', 'X-Method-Override', 'X-Original-URL', 'X-Rewrite-URL'])(
    'without %s, by which a service could take the request for another',
    async (name) => {
      await raw('GET /app/metrics HTTP/1.1', [`${name}: /base/admin`])
      expect(everything()).not.toContain('/base/admin')
    },
  )

  test('as it is, without an upgrade, and OPTIONS never reaches the service', async () => {
    await raw('OPTIONS /app/metrics HTTP/1.1')
    expect(targets()).toEqual([])
    await raw('GET /app/metrics HTTP/1.1', ['Upgrade: websocket', 'Connection: Upgrade', 'Sec-WebSocket-Version: 13'])
    expect(targets()).toEqual(['GET /base/metrics'])
    expect(everything().toLowerCase()).not.toContain('upgrade')
  })

  test.each<[pairs: readonly Pair[]]>([
    [pseudo('GET', '/app/./metrics')],
    [pseudo('GET', '/app/metrics#x')],
    [pseudo('GET', 'app/metrics')],
    [pseudo('GET', 'http://app.test/app/metrics')],
    [pseudo('GET', '/app/metrics HTTP/1.1\r\nHost: x')],
    [pseudo('GET', '/app/%6detrics')],
    [pseudo('POST', '/app/metrics')],
    [[...pseudo('GET', '/app/metrics'), ['host', 'evil.test']]],
    [[...pseudo('GET', '/app/metrics'), [':path', '/app/open']]],
    [[...pseudo('GET', '/app/metrics'), ['x-forwarded-for', '127.0.0.1']]],
    [[...pseudo('GET', '/app/metrics'), ['content-length', '1']]],
    [[...pseudo('GET', '/app/metrics'), ['transfer-encoding', 'chunked']]],
    [[...pseudo('GET', '/app/metrics'), ['connection', 'x-forwarded-for']]],
    [pseudo('GET', '/app/metrics', { authority: 'a@app.test' })],
  ])('not over HTTP/2 as %j', async (pairs) => {
    const { status } = await sendFrames(h.port, headers(1, pairs))
    expect([status === 200, targets()]).toEqual([false, []])
  })
})

describe('an added path is not left', () => {
  test.each([
    ...[
      '/app/../admin',
      '/app/%2e%2e/admin',
      '/app/%252e%252e/admin',
      '/app/..;/admin',
      '/app/..%2fadmin',
      '/app/..%5cadmin',
    ],
    ...[
      '/app/..\\admin',
      '/app/.%2e/admin',
      '/app/x/../../admin',
      '/app/%2e%2e%2fadmin',
      '/app/..%252fadmin',
      '/app%2f..%2fadmin',
    ],
    ...[
      '/app/%c0%ae%c0%ae/admin',
      '/app/%u002e%u002e/admin',
      '/app/..%00/admin',
      '/app/..;a=b/admin',
      '/app/;/../admin',
    ],
    ...['http://app.test/app/../admin', 'http://app.test/app/%2e%2e/admin', 'http://app.test/../app/admin'],
    ...[
      '/app//admin',
      '/app///evil.test/',
      '/app/http://evil.test/',
      '/app@evil.test/',
      '/app?/../admin#',
      '/app#/../admin',
    ],
    ...['/App/x', '/application', '/app.json', '/app%20/x', '/admin', '//evil.test/app/x', 'http://evil.test/app/x'],
  ])('GET %j', async (target) => {
    await raw(`GET ${target} HTTP/1.1`, [bearer])
    for (const reached of targets()) expect(reached).toMatch(/^GET \/base(?:[/?]|$)(?!.*(?:\.\.|%2e|%25|\/\/|#))/i)
  })

  test.each([
    '/app/../admin',
    '/app/%2e%2e/admin',
    '/app/..;/admin',
    '/app/..%2fadmin',
    '/app//admin',
    'app/x',
    '/app/x\r\nA: b',
  ])('GET %j over HTTP/2', async (path) => {
    const token = ['authorization', bearer.slice(15)] as const
    const { status } = await sendFrames(h.port, headers(1, [...pseudo('GET', path), token]))
    expect([status === 200, targets()]).toEqual([false, []])
  })
})

describe('the assertion of the sidecar is the only one, where the client', () => {
  const FORGERIES: readonly (readonly string[])[] = [
    [`X-Assertion: ${FORGED}`],
    [`X-Assertion: ${FORGED}`, `x-assertion: ${FORGED}`],
    [`X_Assertion: ${FORGED}`],
    [`X-ASSERTION: ${FORGED}`, `X.Assertion: ${FORGED}`],
    [`HTTP_X_ASSERTION: ${FORGED}`],
    [`Connection: X-Assertion`],
    [`Connection: close, x-assertion`, `X-Assertion: ${FORGED}`],
    [`Connection: X_Assertion`, `X_Assertion: ${FORGED}`],
    [`Keep-Alive: X-Assertion`],
  ]
  test.each(FORGERIES)('sends %s', async (...fields) => {
    await raw('GET /app/x HTTP/1.1', [bearer, ...fields])
    expect(targets()).toEqual(['GET /base/x'])
    const [reached] = h.upstream.reached
    const names = (reached?.rawHeaders ?? []).filter((_, at) => at % 2 === 0)
    expect(names.filter((name) => /^x.assertion$/i.test(name))).toHaveLength(1)
    expect(reached?.rawHeaders.filter((value) => value === FORGED)).toEqual([])
    const keys = createLocalJWKSet(JSON.parse(h.sidecar.assertionKeys() ?? ''))
    const { payload } = await jwtVerify(fieldOf(reached, 'x-assertion') ?? '', keys, { audience: 'billing' })
    expect(payload.sub).toBe('alice')
  })

  test.each(FORGERIES)('sends %s without a token, at a public and at an open path', async (...fields) => {
    for (const path of ['/app/open', '/app/metrics']) await raw(`GET ${path} HTTP/1.1`, fields)
    expect(targets()).toEqual(['GET /base/open', 'GET /base/metrics'])
    expect(everything()).not.toContain(FORGED)
    expect(everything()).not.toMatch(/x.assertion/i)
  })

  test.each([
    [`X-Assertion : ${FORGED}`],
    [`X-Assertion\t: ${FORGED}`],
    [`X-A: b\nX-Assertion: ${FORGED}`],
    [`X-A: b`, ` X-Assertion: ${FORGED}`],
    [`X-Assertion\x00: ${FORGED}`],
    [`X-Asserti\xf6n: ${FORGED}`],
    [`: ${FORGED}`],
  ])('spells it so that a reader could take it for one: %j', async (...fields) => {
    await raw('GET /app/x HTTP/1.1', [bearer, ...fields])
    expect(everything()).not.toContain(FORGED)
  })

  test.each(['X-Assertion', 'x_assertion', 'X-Auth-Subject', 'Authorization'])(
    'hides %s in the trailers of a body',
    async (name) => {
      const fields = [bearer, 'Transfer-Encoding: chunked', 'TE: trailers', `Trailer: ${name}`]
      await raw('POST /app/in HTTP/1.1', fields, `1\r\na\r\n0\r\n${name}: ${FORGED}\r\n\r\n`)
      expect(everything()).not.toContain(FORGED)
    },
  )

  test('hides it in the trailers of HTTP/2', async () => {
    const head = headers(1, [...pseudo('POST', '/app/in'), ['authorization', bearer.slice(15)], ['te', 'trailers']], {
      end: false,
    })
    const data = frame(TYPES.data, FLAGS.none, 1, Buffer.from('a'))
    const last = frame(TYPES.headers, FLAGS.endHeaders | FLAGS.endStream, 1, block([['x-assertion', FORGED]]))
    await sendFrames(h.port, Buffer.concat([head, data, last]))
    expect(everything()).not.toContain(FORGED)
  })

  test('replays one of the sidecar as its own token, which is good at the service only', async () => {
    await raw('GET /app/x HTTP/1.1', [bearer])
    const token = fieldOf(h.upstream.reached[0], 'x-assertion') ?? ''
    h.upstream.reached.length = 0
    const { status } = await raw('GET /app/x HTTP/1.1', [`Authorization: Bearer ${token}`])
    expect([status, targets()]).toEqual([401, []])
  })
})
