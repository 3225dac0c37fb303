import { createServer } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { afterEach, describe, expect, test } from 'vitest'
import { WebSocket, WebSocketServer } from 'ws'
import { sendRaw } from '../../support/peers/raw-http.ts'
import { tuples } from '../../support/peers/scripted-pdp.ts'
import { until } from '../../support/until.ts'
import { type Harness, PROMPT_MS, startHarness } from '../support/harness.ts'
import { fieldOf } from '../support/upstream.ts'

const ROUTES = `GET /feed/{id}: {check: "viewer feed:{id}", upgrade: [websocket], origins: [https://app.test]}
GET /open: {check: public, upgrade: [websocket]}
GET /events/{id}: viewer feed:{id}`
const ALLOWED = ['alice viewer feed:1']

let h: Harness | null = null
const closers: (() => void)[] = []
afterEach(async () => {
  for (const close of closers.splice(0)) close()
  await h?.close()
  h = null
})

/** The upstream takes WebSocket connections and echoes; `push` sends from its side. */
async function start(options: Partial<Parameters<typeof startHarness>[0]> = {}) {
  const harness = await startHarness({ routes: ROUTES, script: tuples(ALLOWED), ...options })
  h = harness
  const sockets: WebSocket[] = []
  const server = new WebSocketServer({ noServer: true })
  harness.upstream.onUpgrade = (req, socket, head) =>
    server.handleUpgrade(req, socket, head, (opened) => {
      sockets.push(opened)
      opened.on('message', (data, binary) => opened.send(data, { binary }))
    })
  return { ...harness, sockets }
}

type Closed = { readonly code: number; readonly reason: string }

/** Resolves when the connection is open, or with the status that refused it. */
async function open(
  { port }: Harness,
  { path = '/feed/1', token, headers = {} }: { path?: string; token?: string | null; headers?: object },
): Promise<{ socket: WebSocket; closed: Promise<Closed> } | number> {
  const authorization = token === null ? {} : { Authorization: `Bearer ${token ?? (await h?.issuer.token())}` }
  const socket = new WebSocket(`ws://127.0.0.1:${port}${path}`, {
    headers: { Host: 'app.test', ...authorization, ...headers },
  })
  closers.push(() => socket.terminate())
  const closed = new Promise<Closed>((resolve) =>
    socket.on('close', (code, reason) => resolve({ code, reason: reason.toString() })),
  )
  return new Promise((resolve) => {
    socket.on('open', () => resolve({ socket, closed }))
    socket.on('unexpected-response', (_req, res) => resolve(res.statusCode ?? 0))
    socket.on('error', () => undefined)
  })
}

async function opened(harness: Harness, options: Parameters<typeof open>[1] = {}) {
  const result = await open(harness, options)
  if (typeof result === 'number') throw new Error(`refused with ${result}`)
  return result
}

const answerOf = (socket: WebSocket, text: string | Buffer): Promise<Buffer> =>
  new Promise((resolve) => {
    socket.once('message', (data: Buffer) => resolve(data))
    socket.send(text)
  })

describe('a WebSocket', () => {
  test('is opened for a permitted subject, and carries messages of any size both ways', async () => {
    const harness = await start()
    const { socket } = await opened(harness, { headers: { Origin: 'https://app.test', 'X-Auth-Subject': 'root' } })
    expect((await answerOf(socket, 'hello')).toString()).toBe('hello')
    const large = Buffer.alloc(3_000_000, 7)
    expect((await answerOf(socket, large)).equals(large)).toBe(true)
    const [reached] = harness.upstream.reached
    expect([fieldOf(reached, 'x-auth-subject'), fieldOf(reached, 'authorization')]).toEqual(['alice', null])
  })

  test.each([
    ['another resource', { path: '/feed/2' }, 403],
    ['no token', { token: null }, 401],
    ['a page of another origin', { headers: { Origin: 'https://evil.test' } }, 403],
    ['a route that takes none', { path: '/events/1' }, 426],
  ])('is refused for %s', async (_name, options, status) => {
    const harness = await start()
    harness.upstream.handle = (_req, res) => void res.writeHead(426).end()
    expect(await open(harness, options)).toBe(status)
    expect(harness.sockets).toEqual([])
  })

  const handshake = (...lines: string[]): string[] => ['Connection: Upgrade', 'Upgrade: websocket', ...lines]
  const KEY = 'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=='

  test.each([
    ['another version', handshake('Sec-WebSocket-Version: 99', KEY)],
    ['no version', handshake(KEY)],
    ['two versions', handshake('Sec-WebSocket-Version: 13', 'Sec-WebSocket-Version: 8', KEY)],
    ['a key that is none', handshake('Sec-WebSocket-Version: 13', 'Sec-WebSocket-Key: c2hvcnQ=')],
    [
      'two origins',
      handshake('Sec-WebSocket-Version: 13', KEY, 'Origin: https://app.test', 'Origin: https://app.test'),
    ],
  ])('is refused for %s', async (_name, fields) => {
    const harness = await start()
    expect((await harness.send('GET /feed/1', { fields })).status).toBe(400)
    expect(harness.upstream.reached).toEqual([])
  })

  test('is not opened when the upstream does not switch; its answer is passed on', async () => {
    const harness = await start()
    harness.upstream.onUpgrade = (_req, socket) => void socket.end('HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n')
    expect(await open(harness, {})).toBe(503)
    harness.upstream.onUpgrade = (_req, socket) =>
      void socket.end('HTTP/1.1 101 Yes\r\nConnection: Upgrade\r\nUpgrade: other\r\n\r\n')
    expect(await open(harness, {})).toBe(502)
  })

  test('on a public route needs no token and stays open', async () => {
    const { socket } = await opened(await start(), { path: '/open', token: null })
    expect((await answerOf(socket, 'x')).toString()).toBe('x')
  })

  test('is closed with 4401 when the token expires, and not before', async () => {
    const harness = await start()
    const exp = Math.floor(Date.now() / 1_000) + 2
    const { closed } = await opened(harness, { token: await harness.issuer.token({ exp }) })
    expect(await closed).toEqual({ code: 4401, reason: 'token_expired' })
    expect(Date.now()).toBeGreaterThanOrEqual(exp * 1_000)
    expect(Date.now()).toBeLessThan(exp * 1_000 + PROMPT_MS)
  })

  test.each([
    ['the relation', tuples([]), { code: 4403, reason: 'permission_denied' }],
    ['the token', tuplesInactive(), { code: 4401, reason: 'token_invalid' }],
  ])('is closed at once when %s is revoked, in the middle of messages', async (_name, script, expected) => {
    const harness = await start()
    const { socket, closed } = await opened(harness)
    const pushing = setInterval(() => harness.sockets[0]?.send(Buffer.alloc(100_000)), 2)
    closers.push(() => clearInterval(pushing))
    await until(() => harness.pdp.watched() === 1)
    harness.pdp.script = script
    const revokedMs = Date.now()
    harness.pdp.changed()
    expect(await closed).toEqual(expected)
    expect(Date.now() - revokedMs).toBeLessThan(PROMPT_MS)
    await until(() => harness.pdp.watched() === 0)
    expect(socket.readyState).toBe(WebSocket.CLOSED)
  })

  test('is confirmed again after the PDP was away, and closed when it stays away', async () => {
    const harness = await start({ limits: { unconfirmedMaxMs: 3_000 } })
    const { closed } = await opened(harness)
    await until(() => harness.pdp.watched() === 1)
    harness.pdp.cut()
    await until(() => harness.pdp.watched() === 0)
    await until(() => harness.pdp.watched() === 1)
    await harness.pdp.stop()
    const stoppedMs = Date.now()
    expect(await closed).toEqual({ code: 1013, reason: 'pdp_unavailable' })
    expect(Date.now() - stoppedMs).toBeGreaterThan(2_500)
  })

  test('is closed with 1001 when the sidecar drains', async () => {
    const harness = await start()
    const { closed } = await opened(harness)
    const ended = harness.sidecar.close()
    expect((await closed).code).toBe(1001)
    await ended
  })

  test('ends when either end does', async () => {
    const harness = await start()
    const first = await opened(harness)
    harness.sockets[0]?.close(1000, 'done')
    expect(await first.closed).toEqual({ code: 1000, reason: 'done' })
    const second = await opened(harness)
    const gone = new Promise((resolve) => harness.sockets[1]?.on('close', resolve))
    second.socket.terminate()
    await gone
    const third = await opened(harness)
    harness.sockets[2]?.terminate()
    expect((await third.closed).code).toBe(1006)
  })
})

function tuplesInactive() {
  return (asked: Parameters<ReturnType<typeof tuples>>[0]) => {
    const decision = tuples(ALLOWED)(asked)
    return decision === null || typeof decision === 'string' ? decision : { ...decision, active: false }
  }
}

describe('a stream of events', () => {
  const stream = (harness: Harness): void => {
    harness.upstream.handle = (_req, res) => {
      res.writeHead(200, { 'content-type': 'text/event-stream' })
      res.write('data: 1\n\n')
    }
  }

  test('ends in order with the reason in a trailer when the permission ends', async () => {
    const harness = await start()
    stream(harness)
    const answer = harness.send('GET /events/1')
    await until(() => harness.pdp.watched() === 1)
    harness.pdp.script = tuples([])
    harness.pdp.changed()
    const { body, text } = await answer
    expect(body).toBe('data: 1\n\n')
    expect(text).toMatch(/\r\n0\r\nportcullis-problem: permission_denied\r\n\r\n$/)
  })

  test('ends at the expiry of the token', async () => {
    const harness = await start()
    stream(harness)
    const exp = Math.floor(Date.now() / 1_000) + 2
    const answer = await harness.send('GET /events/1', { token: await harness.issuer.token({ exp }) })
    expect(answer.text).toContain('portcullis-problem: token_expired')
  })

  test('asks nothing more once it has ended', async () => {
    const harness = await start()
    harness.upstream.handle = (_req, res) => {
      res.writeHead(200, { 'content-type': 'text/event-stream' })
      setTimeout(() => res.end('data: 1\n\n'), 700)
    }
    const answer = harness.send('GET /events/1')
    await until(() => harness.pdp.watched() === 1)
    expect((await answer).status).toBe(200)
    await until(() => harness.pdp.watched() === 0)
  })
})

describe('a long answer', () => {
  test('with a length is cut off, so that nobody takes a part for the whole', async () => {
    const harness = await start()
    harness.upstream.handle = (_req, res) => {
      res.writeHead(200, { 'content-length': '100' })
      res.write('half')
    }
    const answer = harness.send('GET /events/1')
    await until(() => harness.pdp.watched() === 1)
    harness.pdp.script = tuples([])
    harness.pdp.changed()
    expect((await answer).body).toBe('half')
  })

  test('that has not begun becomes a denial', async () => {
    const harness = await start()
    harness.upstream.handle = () => undefined
    const answer = harness.send('GET /events/1')
    await until(() => harness.pdp.watched() === 1)
    harness.pdp.script = tuples([])
    harness.pdp.changed()
    expect((await answer).status).toBe(403)
  })
})

describe('trailers of a request', () => {
  test('are passed on when they were announced and are nobody’s word for who asks', async () => {
    h = await startHarness({ routes: 'POST /up: public' })
    const trailers: string[] = []
    const server = createServer((req, res) => {
      req.resume().on('end', () => {
        trailers.push(...req.rawTrailers)
        res.end(String(req.headers.trailer))
      })
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    closers.push(
      () => server.closeAllConnections(),
      () => server.close(),
    )
    const { port } = server.address() as AddressInfo
    h.upstream.origin = `http://127.0.0.1:${port}`
    h.apply('POST /up: public')
    const head = 'POST /up HTTP/1.1\r\nHost: app.test\r\nX-Seen: 1\r\nTransfer-Encoding: chunked\r\n'
    const names = 'X-Sum, X-Auth-Subject, X_Auth_Subject, Content-Type, X-Seen, Authorization'
    const values = 'X-Sum: 7\r\nX-Auth-Subject: root\r\nX-Secret: 1\r\nContent-Type: a/b\r\nX-Seen: 2\r\n'
    const answer = await sendRaw(h.port, `${head}Trailer: ${names}\r\n\r\n3\r\nabc\r\n0\r\n${values}\r\n`)
    expect([answer.status, answer.body, trailers]).toEqual([200, 'x-sum', ['x-sum', '7']])
  })
})

test('a client that goes away in the middle of an upgrade leaves nothing behind', async () => {
  const harness = await start()
  harness.upstream.onUpgrade = () => undefined
  const token = await harness.issuer.token()
  const socket = connect(harness.port, '127.0.0.1', () =>
    socket.write(
      `GET /feed/1 HTTP/1.1\r\nHost: app.test\r\nAuthorization: Bearer ${token}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n`,
    ),
  )
  await until(() => harness.upstream.reached.length === 1)
  socket.destroy()
  await until(async () => (await harness.send('GET /events/2')).status === 403)
})
