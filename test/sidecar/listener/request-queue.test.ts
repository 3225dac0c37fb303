/** Requests that come on one HTTP/1.1 connection: one after the other, and none behind a message whose end is in doubt. */
import { connect, type Socket } from 'node:net'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { tuples } from '../../support/peers/scripted-pdp.ts'
import { until } from '../../support/until.ts'
import { type Harness, startHarness } from '../support/harness.ts'

const ROUTES = `
"* /public/**": public
GET /admin: admin system:main
GET /socket: {check: viewer feed:1, upgrade: [websocket]}`.trim()
let h: Harness
let socket: Socket
let text = ''
let ended = false
beforeEach(async () => {
  h = await startHarness({ routes: ROUTES, script: tuples([]), limits: { pipelinedMax: 5 } })
  text = ''
  ended = false
  socket = connect(h.port, '127.0.0.1')
  socket.on('data', (chunk) => {
    text += chunk
  })
  socket.on('error', () => undefined)
  socket.on('close', () => {
    ended = true
  })
})
afterEach(async () => {
  socket.destroy()
  await h.close()
})
const get = (path: string, fields = ''): string => `GET ${path} HTTP/1.1\r\nHost: app.test\r\n${fields}\r\n`
const targets = (): string[] => h.upstream.reached.map(({ target }) => target)
const statuses = (): number[] => [...text.matchAll(/HTTP\/1\.1 (\d{3})/g)].map(([, status]) => Number(status))
const refusals = () =>
  h.log.flatMap((line) =>
    'http_version' in line && line.http_version === null && 'reason' in line && 'detail' in line
      ? [[line.reason, line.detail]]
      : [],
  )

describe('pipelined requests', () => {
  test('are answered in order, each when the one before it is', async () => {
    let atOnce = 0
    let most = 0
    h.upstream.handle = (req, res) => {
      atOnce += 1
      most = Math.max(most, atOnce)
      setTimeout(() => {
        atOnce -= 1
        res.end(req.url)
      }, 20)
    }
    socket.write([1, 2, 3, 4, 5].map((at) => get(`/public/${at}`)).join(''))
    await until(() => text.includes('/public/5'))
    expect([most, targets(), statuses().length]).toEqual([1, [1, 2, 3, 4, 5].map((at) => `/public/${at}`), 5])
    expect([...text.matchAll(/\/public\/(\d)/g)].map(([, at]) => at)).toEqual(['1', '2', '3', '4', '5'])
  })

  test('beyond as many as may wait end the connection, with a line in the log', async () => {
    h.upstream.handle = () => undefined
    socket.write([1, 2, 3, 4, 5, 6, 7].map((at) => get(`/public/${at}`)).join(''))
    await until(() => ended)
    expect(refusals()).toEqual([['busy', 'the client exceeded pipelined_max']])
    expect(targets().length).toBeLessThan(2)
  })

  test('beyond as many as may wait are one line in the log, however many they are', async () => {
    h.upstream.handle = () => undefined
    socket.write(Array.from({ length: 700 }, (_, at) => get(`/public/${at}`)).join(''))
    await until(() => ended)
    expect(refusals()).toEqual([['busy', 'the client exceeded pipelined_max']])
  })

  test('behind one that ends the connection never run', async () => {
    socket.write(get('/public/1', 'Connection: close\r\n') + get('/public/2'))
    await until(() => ended)
    expect([targets(), statuses()]).toEqual([['/public/1'], [200]])
  })

  test('never run when the client left before their turn', async () => {
    let answer = (): void => undefined
    h.upstream.handle = (_req, res) => {
      answer = () => void res.end()
    }
    socket.write(get('/public/1') + get('/public/2'))
    await until(() => targets().length === 1)
    socket.destroy()
    await until(() => h.log.length > 0)
    answer()
    await until(async () => (await h.send('OPTIONS /admin', { token: null })).status === 204)
    expect(targets()).toEqual(['/public/1'])
  })

  test.each([
    ['what is no request', 'garbage\r\n\r\n', 'HPE_INVALID_METHOD'],
    ['CONNECT', 'CONNECT app.test:1 HTTP/1.1\r\nHost: app.test:1\r\n\r\n', 'CONNECT'],
    ['a request that is malformed', 'GET /public/2 HTTP/1.1\r\n: x\r\n\r\n', 'HPE_INVALID_HEADER_TOKEN'],
  ])('are answered before %s behind them is refused', async (_name, last, detail) => {
    h.upstream.handle = (req, res) => void setTimeout(() => res.end(req.url), 30)
    socket.write(get('/public/1') + get('/public/2') + last)
    await until(() => ended)
    expect(statuses().slice(0, 2)).toEqual([200, 200])
    expect(statuses()[2]).toBeGreaterThanOrEqual(400)
    expect([targets(), refusals()[0]?.[1]]).toEqual([['/public/1', '/public/2'], detail])
  })

  test('whose body is malformed are never forwarded in part behind another', async () => {
    h.upstream.handle = (req, res) => void setTimeout(() => res.end(req.url), 30)
    const post = 'POST /public/2 HTTP/1.1\r\nHost: app.test\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nZZ\r\n'
    socket.write(get('/public/1') + post)
    await until(() => ended)
    expect([targets(), statuses()]).toEqual([['/public/1'], [200, 400]])
  })
})

describe('an upgrade that is not made ends the connection, so that nothing behind it is read as a request', () => {
  const H2C = 'Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n'
  const SOCKET =
    'Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n'
  const BODY = get('/public/smuggled')
  test.each<[string, string, number]>([
    ['h2c', get('/public/1', H2C), 200],
    [
      'h2c with a body',
      `POST /public/1 HTTP/1.1\r\nHost: app.test\r\n${H2C}Content-Length: ${BODY.length}\r\n\r\n${BODY}`,
      200,
    ],
    [
      'h2c with a body in pieces',
      `POST /public/1 HTTP/1.1\r\nHost: app.test\r\n${H2C}Transfer-Encoding: chunked\r\n\r\n${BODY.length.toString(16)}\r\n${BODY}\r\n0\r\n\r\n`,
      200,
    ],
    ['h2c that Connection does not list', get('/public/1', 'Upgrade: h2c\r\n'), 200],
    ['an upgrade to TLS', get('/public/1', 'Connection: Upgrade\r\nUpgrade: TLS/1.0\r\n'), 200],
    ['a WebSocket on a route without them', get('/public/1', SOCKET), 200],
    ['a WebSocket that is refused', get('/socket', SOCKET), 401],
    ['a WebSocket with a body', get('/socket', `${SOCKET}Content-Length: 5\r\n`), 400],
    ['two protocols', get('/public/1', 'Connection: Upgrade\r\nUpgrade: websocket, h2c\r\n'), 200],
  ])('%s', async (_name, request, status) => {
    socket.write(request + get('/public/2'))
    // Also what comes in a piece of its own, which the parser takes for the start of a message.
    await until(() => statuses().length === 1)
    socket.write(get('/public/3'))
    await until(() => ended)
    expect([statuses(), /connection: close/i.test(text)]).toEqual([[status], true])
    expect(targets().filter((target) => target !== '/public/1')).toEqual([])
  })

  test('a body that comes in pieces of its own is a body', async () => {
    socket.write(`POST /public/1 HTTP/1.1\r\nHost: app.test\r\n${H2C}Content-Length: ${BODY.length}\r\n\r\n`)
    // Nothing tells from outside that the head was judged: the line of the log comes with the end of the answer.
    await new Promise((resolve) => setTimeout(resolve, 100))
    socket.write(BODY)
    await until(() => ended)
    expect([targets(), h.upstream.reached[0]?.body, statuses()]).toEqual([['/public/1'], BODY, [200]])
  })

  test('a WebSocket behind a request that is under way is none', async () => {
    h.upstream.handle = (_req, res) => void setTimeout(() => res.end('first'), 30)
    h.upstream.onUpgrade = () => undefined
    socket.write(get('/public/1') + get('/public/2', SOCKET) + get('/public/3'))
    await until(() => ended)
    expect([targets(), statuses()]).toEqual([
      ['/public/1', '/public/2'],
      [200, 200],
    ])
  })
})

describe('what the parser refuses', () => {
  test.each([
    ['garbage\r\n\r\n', 400, 'request_invalid', 'HPE_INVALID_METHOD'],
    [`GET / HTTP/1.1\r\nX: ${'a'.repeat(40_000)}\r\n\r\n`, 431, 'headers_too_large', 'HPE_HEADER_OVERFLOW'],
    ['CONNECT a.test:1 HTTP/1.1\r\nHost: a.test:1\r\n\r\n', 405, 'method_unsupported', 'CONNECT'],
  ])('leaves a line in the log with the address of the client: case %#', async (bytes, status, reason, detail) => {
    socket.write(bytes)
    await until(() => ended)
    expect(statuses()).toEqual([status])
    const id = /urn:portcullis:request:([\w-]+)/.exec(text)?.[1]
    const line = { event: 'decision', decision: 'deny', method: 'other', client_address: '127.0.0.1', request_id: id }
    expect(h.log).toContainEqual(expect.objectContaining({ ...line, status, reason, detail }))
  })

  test('also after an answer on the same connection', async () => {
    socket.write(get('/public/1'))
    await until(() => statuses().length === 1)
    socket.write('garbage\r\n\r\n')
    await until(() => ended)
    expect([statuses(), refusals()]).toEqual([[200, 400], [['request_invalid', 'HPE_INVALID_METHOD']]])
  })
})

describe('the Connection field', () => {
  test.each(['Authorization', 'DPoP', 'cookie', 'Content-Type', 'If-Match', 'Origin', 'Traceparent', 'HOST', 'range'])(
    'may not list %s',
    async (name) => {
      const fields = [`Connection: close, ${name}`]
      const answer = await h.send('GET /public/1', { token: null, fields })
      expect([answer.status, targets()]).toEqual([400, []])
    },
  )

  test.each(['keep-alive', 'close', 'TE', 'X-Hop'])('may list %s', async (name) => {
    expect((await h.send('GET /public/1', { token: null, fields: [`Connection: ${name}`] })).status).toBe(200)
  })
})
