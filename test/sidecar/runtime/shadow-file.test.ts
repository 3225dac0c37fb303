/** `mode: shadow` of a route file: what HTTP allows reaches the service, whatever the sidecar would have said. */

import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { connect } from 'node:net'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { PROBLEM_TITLES, type ProblemCode } from '../../../pdp/shared/base/problems.ts'
import { NO_CERTIFICATES } from '../../../sidecar/config/certificates.ts'
import { denialStatus } from '../../../sidecar/enforce/denial-response.ts'
import { PdpUnavailable, RequestError } from '../../../sidecar/request/errors.ts'
import { parseRouteFile } from '../../../sidecar/route-file/route-file.ts'
import { fileWarnings } from '../../../sidecar/route-file/warnings.ts'
import { sendRaw } from '../../support/peers/raw-http.ts'
import { until } from '../../support/until.ts'
import { busy, type Case, DENIED, run } from '../support/enforcing.ts'
import { type Harness, routeFile, startHarness } from '../support/harness.ts'

const ROUTES = `GET /docs/{id}: viewer doc:{id}
POST /docs: {check: "editor doc:{body.id}", body_bytes_max: 64}
GET /pages/{x}: public
GET /both/{x}/a: viewer doc:1
GET /both/b/{y}: editor doc:1`

/** Name, lines of the request after which an empty one is added, and the code that is recorded. */
const ODD: readonly (readonly [name: string, lines: readonly string[], code: ProblemCode])[] = [
  ['no token', ['GET /docs/1 HTTP/1.1', 'Host: app.test'], 'token_missing'],
  ['another scheme', ['GET /docs/1 HTTP/1.1', 'Host: app.test', 'Authorization: Basic YTpi'], 'token_missing'],
  ['a path without a route', ['GET /nothing HTTP/1.1', 'Host: app.test'], 'route_unknown'],
  ['a method without a route', ['DELETE /docs/1 HTTP/1.1', 'Host: app.test'], 'method_unsupported'],
  ['a method of its own', ['PROPFIND /docs/1 HTTP/1.1', 'Host: app.test'], 'method_unsupported'],
  ['OPTIONS', ['OPTIONS /docs/1 HTTP/1.1', 'Host: app.test'], 'method_unsupported'],
  [
    'a preflight',
    ['OPTIONS /docs/1 HTTP/1.1', 'Host: app.test', 'Origin: https://a.test', 'Access-Control-Request-Method: GET'],
    'method_unsupported',
  ],
  ['a name of the cluster', ['GET /docs/1 HTTP/1.1', 'Host: docs.shop.svc.cluster.local:8080'], 'host_unknown'],
  ['the address of the Pod', ['GET /metrics HTTP/1.1', 'Host: 10.4.2.17:8080'], 'host_unknown'],
  ['a host in odd characters', ['GET /docs/1 HTTP/1.1', 'Host: a!b%41.test'], 'request_invalid'],
  ['HTTP/1.0 without a host', ['GET /docs/1 HTTP/1.0'], 'request_invalid'],
  ['two names of the host', ['GET http://one.test/docs/1 HTTP/1.1', 'Host: two.test'], 'request_invalid'],
  ['a dot segment', ['GET /a/../docs/1 HTTP/1.1', 'Host: app.test'], 'request_invalid'],
  ['an empty segment', ['GET //docs//1 HTTP/1.1', 'Host: app.test'], 'request_invalid'],
  ['an encoded slash', ['GET /docs/a%2fb HTTP/1.1', 'Host: app.test'], 'request_invalid'],
  ['a needless encoding', ['GET /%64ocs/1 HTTP/1.1', 'Host: app.test'], 'request_invalid'],
  ['a percent sign alone', ['GET /docs/100% HTTP/1.1', 'Host: app.test'], 'request_invalid'],
  ['a quote in the query', ['GET /docs/1?q="a" HTTP/1.1', 'Host: app.test'], 'request_invalid'],
  ['a semicolon', ['GET /docs/1;v=2 HTTP/1.1', 'Host: app.test'], 'request_invalid'],
  ['a path of 300 segments', [`GET ${'/a'.repeat(300)} HTTP/1.1`, 'Host: app.test'], 'path_too_complex'],
  ['a long target', [`GET /docs/${'a'.repeat(9_000)} HTTP/1.1`, 'Host: app.test'], 'target_too_long'],
  ['routes that overlap', ['GET /both/b/a HTTP/1.1', 'Host: app.test'], 'route_ambiguous'],
  [
    '150 fields',
    ['GET /docs/1 HTTP/1.1', 'Host: app.test', ...Array.from({ length: 150 }, (_, at) => `X-${at}: 1`)],
    'headers_too_large',
  ],
  ['an odd expectation', ['GET /docs/1 HTTP/1.1', 'Host: app.test', 'Expect: tea'], 'request_invalid'],
  [
    'Connection naming a cookie',
    ['GET /docs/1 HTTP/1.1', 'Host: app.test', 'Connection: cookie', 'Cookie: a=b'],
    'request_invalid',
  ],
]

/** Those that need a token, and what reaches the service of their bodies. */
const BODIES: readonly (readonly [name: string, fields: readonly string[], body: string, code: ProblemCode])[] = [
  ['a form', ['Content-Type: application/x-www-form-urlencoded'], 'id=7', 'media_type_unsupported'],
  ['a compressed body', ['Content-Type: application/json', 'Content-Encoding: gzip'], 'id=7', 'media_type_unsupported'],
  ['broken JSON', ['Content-Type: application/json'], '{"id":', 'request_invalid'],
  ['JSON without the value', ['Content-Type: application/json'], '{"name":"a"}', 'request_invalid'],
  ['a repeated key', ['Content-Type: application/json'], '{"id":"1","id":"2"}', 'request_invalid'],
  ['too large a body', ['Content-Type: application/json'], `{"id":"${'a'.repeat(200)}"}`, 'request_too_large'],
]

describe('while the whole file is in shadow mode', () => {
  let gate: Harness
  beforeAll(async () => {
    gate = await startHarness({ routes: ROUTES, extra: 'mode: shadow', limits: { bodyReadMs: 300 } })
  })
  afterAll(() => gate.close())

  const lastLine = (): object => gate.log.findLast((line) => 'event' in line && line.event === 'decision') ?? {}
  async function reaches(bytes: string, code: ProblemCode): Promise<void> {
    const before = gate.upstream.reached.length
    const answer = await sendRaw(gate.port, bytes)
    expect([answer.status, answer.body]).toEqual([200, expect.any(String)])
    expect(gate.upstream.reached).toHaveLength(before + 1)
    expect(lastLine()).toMatchObject({ decision: 'shadow', reason: code, status: 200 })
  }

  test.each(ODD)('the service gets %s', async (_name, lines, code) => {
    await reaches(`${lines.join('\r\n')}\r\n\r\n`, code)
    const [, target = ''] = lines[0]?.split(' ') ?? []
    expect(gate.upstream.reached.at(-1)?.target).toBe(target.replace('http://one.test', ''))
  })

  test.each(BODIES)('the service gets %s byte for byte', async (_name, fields, body, code) => {
    const token = `Authorization: Bearer ${await gate.issuer.token()}`
    const head = ['POST /docs HTTP/1.1', 'Host: app.test', token, ...fields]
    await reaches([...head, `Content-Length: ${body.length}`, '', body].join('\r\n'), code)
    expect(gate.upstream.reached.at(-1)?.body).toBe(body)
    const half = body.length >> 1
    const chunks = [body.slice(0, half), body.slice(half)].map((part) => `${part.length.toString(16)}\r\n${part}\r\n`)
    await reaches([...head, 'Transfer-Encoding: chunked', '', `${chunks.join('')}0\r\n\r\n`].join('\r\n'), code)
    expect(gate.upstream.reached.at(-1)?.body).toBe(body)
  })
})

/** Nobody is asked: places are bounds, and these requests have two readings or no way to the service. */
const STAYS = new Set([
  'too many requests of the client',
  'too many requests of a public route',
  'too many requests of the subject',
  'two Host fields',
  'CONNECT',
])
const RECORDED = DENIED.filter(([name]) => !STAYS.has(name)).map(([name, one, code]) => [name, one, code] as const)
const MORE: readonly (readonly [name: string, one: Case, code: ProblemCode])[] = [
  ['an issuer of another name', { pdp: new PdpUnavailable('another', 'issuer_mismatch') }, 'issuer_mismatch'],
  [
    'sessions that cannot be read',
    { token: new RequestError('session_unavailable', 'no memory') },
    'session_unavailable',
  ],
  ['too many questions', { turn: busy }, 'busy'],
  ['a handshake without its key', { line: 'GET /docs/1', upgrade: true }, 'route_unknown'],
]
const SHADOW = { extra: 'mode: shadow' }

test.each([...RECORDED, ...MORE])('in shadow, %s is only recorded', async (_name, one, code) => {
  const { outcome } = await run({ ...one, ...SHADOW })
  expect(outcome).toMatchObject({ kind: 'permit', basis: null, shadowed: { kind: 'denial', code } })
})

test.each(DENIED.filter(([name]) => STAYS.has(name)))('in shadow, %s is refused', async (_name, one, code) => {
  expect((await run({ ...one, ...SHADOW })).outcome).toMatchObject({ kind: 'denial', code })
})

test('every code of a refusal is among these, but for those of the service and of the end', () => {
  const played = new Set<string>([...ODD, ...BODIES, ...RECORDED, ...MORE].map((row) => row.findLast(isCode) ?? ''))
  const left = REFUSAL_CODES.filter((code) => !played.has(code))
  expect(left.toSorted()).toEqual(['draining', 'upstream_timeout', 'upstream_unavailable'])
})

const REFUSAL_CODES = (Object.keys(PROBLEM_TITLES) as ProblemCode[]).filter(
  (code) => code === 'internal' || denialStatus(code) !== 500,
)
const isCode = (value: unknown): value is string =>
  typeof value === 'string' && REFUSAL_CODES.some((code) => code === value)

describe('a file in shadow mode with a route that enforces', () => {
  const MIXED = {
    routes: `GET /docs/{id}: viewer doc:{id}\nGET /admin: {check: admin doc:1, mode: enforce}`,
    ...SHADOW,
  }
  test.each<[string, Case, string]>([
    ['that route without a token', { line: 'GET /admin', authorization: null }, 'token_missing'],
    ['another spelling of it', { line: 'GET /%61dmin' }, 'request_invalid'],
    ['a path around it', { line: 'GET /docs/../admin' }, 'request_invalid'],
    ['another host', { line: 'GET /admin', host: 'other.test' }, 'host_unknown'],
    ['a path without a route', { line: 'GET /Admin' }, 'route_unknown'],
    ['a path without a route, whatever it is', { line: 'GET /nothing' }, 'route_unknown'],
  ])('refuses %s', async (_name, one, code) => {
    expect((await run({ ...MIXED, ...one })).outcome).toMatchObject({ kind: 'denial', code })
  })
  test('records the denials of its other routes', async () => {
    expect((await run({ ...MIXED, authorization: null })).outcome).toMatchObject({ kind: 'permit' })
  })
})

test.each([
  ['two lengths', ['Content-Length: 1', 'Content-Length: 2'], 'ab'],
  ['a length and chunks', ['Content-Length: 3', 'Transfer-Encoding: chunked'], '0\r\n\r\n'],
  ['two codings', ['Transfer-Encoding: gzip, chunked'], '0\r\n\r\n'],
  ['a Connection field that lists the length', ['Connection: content-length', 'Content-Length: 1'], 'a'],
])('in shadow, %s are refused: two servers could find two messages', async (_name, fields, body) => {
  const gate = await startHarness({ routes: ROUTES, extra: 'mode: shadow' })
  try {
    const answer = await sendRaw(gate.port, ['POST /x HTTP/1.1', 'Host: app.test', ...fields, '', body].join('\r\n'))
    expect(answer.status).toBe(400)
    expect(gate.upstream.reached).toEqual([])
  } finally {
    await gate.close()
  }
})

test('without an issuer and a PDP, a sidecar in shadow mode is ready, and says of each request what it lacked', async () => {
  const gate = await startHarness({ routes: ROUTES, extra: 'mode: shadow' })
  try {
    const token = await gate.issuer.token()
    const good = gate.issuer.jwks
    gate.issuer.jwks = { keys: Array.from({ length: 100 }, () => ({})) }
    const file = gate.file()
    const issuers = file.issuers.map((entry) => ({ ...entry, jwksUri: `${gate.issuer.issuer}/jwks` }))
    const pdp = { ...file.pdp, addresses: ['127.0.0.1:1'] }
    gate.sidecar.apply({ file: { ...file, issuers, pdp }, certificates: NO_CERTIFICATES, hash: 'alone' })
    expect(gate.sidecar.notReady()).toEqual({ note: `no keys yet of ${gate.issuer.issuer}` })
    expect((await gate.send('GET /docs/1', { token })).status).toBe(200)
    expect(gate.log).toContainEqual(expect.objectContaining({ decision: 'shadow', reason: 'keys_unavailable' }))
    gate.issuer.jwks = good
    await until(() => /PDP/.test(JSON.stringify(gate.sidecar.notReady())))
    expect((await gate.send('GET /docs/1', { token })).status).toBe(200)
    expect(gate.log).toContainEqual(expect.objectContaining({ decision: 'shadow', reason: 'pdp_unavailable' }))
  } finally {
    await gate.close()
  }
})

test('a WebSocket is opened on a path without a route, and stays open when the rules change within shadow mode', async () => {
  const gate = await startHarness({ routes: ROUTES, extra: 'mode: shadow' })
  try {
    gate.upstream.onUpgrade = (req, socket) => {
      const accept = createHash('sha1').update(`${req.headers['sec-websocket-key']}${GUID}`).digest('base64')
      socket.write(
        `HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${accept}\r\n\r\n`,
      )
    }
    const key = Buffer.alloc(16).toString('base64')
    const fields = [
      'Connection: Upgrade',
      'Upgrade: websocket',
      'Sec-WebSocket-Version: 13',
      `Sec-WebSocket-Key: ${key}`,
    ]
    const socket = connect(gate.port, '127.0.0.1')
    socket.write(`${['GET /live HTTP/1.1', 'Host: 10.4.2.17', ...fields].join('\r\n')}\r\n\r\n`)
    const [head] = await once(socket, 'data')
    expect(String(head)).toMatch(/^HTTP\/1.1 101 /)
    gate.apply('GET /docs/{id}: viewer doc:{id}')
    gate.apply('GET /docs/{id}: viewer doc:{id}', '')
    await once(socket, 'close')
    expect(gate.log).toContainEqual(expect.objectContaining({ event: 'cut', reason: 'host_unknown' }))
  } finally {
    await gate.close()
  }
})

test.each([
  ['its own mode', 'GET /docs/{id}: {check: "viewer doc:{id}", mode: enforce}', '', false],
  ['the file in shadow', 'GET /docs/{id}: viewer doc:{id}', '', true],
  ['a file that says no', 'GET /docs/{id}: viewer doc:{id}', 'forward_token: false', false],
  ['a route that says no', 'GET /docs/{id}: {check: "viewer doc:{id}", forward_token: false}', '', false],
])('by %s the service gets the token: %s %s: %j', (_name, routes, extra, forwards) => {
  const source = routeFile(routes, { extra: `mode: shadow\n${extra}` })
  const { file } = parseRouteFile(source.replace('UPSTREAM', 'http://127.0.0.1:1').replace('PDP', '127.0.0.1:1'))
  expect(file?.routes[0]?.forwardToken).toBe(forwards)
  const isSaid = file !== null && fileWarnings(file).some((text) => text.includes('forward_token'))
  expect(isSaid).toBe(!extra.includes('forward_token'))
})

const GUID = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11'

test('no request of an odd kind is lost while the file is changed again and again, and each is refused once it enforces', async () => {
  const gate = await startHarness({ routes: ROUTES, extra: 'mode: shadow' })
  try {
    const send = (): Promise<readonly number[]> =>
      Promise.all(ODD.map(async ([, lines]) => (await sendRaw(gate.port, `${lines.join('\r\n')}\r\n\r\n`)).status))
    for (const routes of [ROUTES, `${ROUTES}\nGET /new: public`, ROUTES]) {
      const sending = send()
      gate.apply(routes)
      expect(new Set(await sending)).toEqual(new Set([200]))
    }
    expect(gate.upstream.reached).toHaveLength(3 * ODD.length)
    gate.apply(ROUTES, '')
    gate.upstream.reached.length = 0
    const answered = await send()
    // OPTIONS is answered by the sidecar itself.
    expect(answered.filter((status) => status < 400)).toEqual([204, 204])
    expect(gate.upstream.reached).toEqual([])
  } finally {
    await gate.close()
  }
})
