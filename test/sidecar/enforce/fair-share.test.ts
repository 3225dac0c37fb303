/** One client of each unpleasant kind, while another is served. The clients are told apart by what a trusted proxy says of them. */
import type { ServerResponse } from 'node:http'
import { connect, type Socket } from 'node:net'
import { afterEach, describe, expect, test } from 'vitest'
import type { SidecarLimits } from '../../../sidecar/route-file/default-limits.ts'
import { field, type RawAnswer } from '../../support/peers/raw-http.ts'
import { tuples } from '../../support/peers/scripted-pdp.ts'
import { until } from '../../support/until.ts'
import { type Harness, startHarness } from '../support/harness.ts'
import { ask, openSession } from '../support/http2-client.ts'

const ROUTES = `
GET /slow/{id}: public
POST /slow/{id}: public
GET /own/{id}: viewer doc:{id}
GET /other/{id}: public
GET /shadow/{id}: {check: "viewer doc:{id}", mode: shadow}
GET /socket: {check: public, upgrade: [websocket]}`.trim()

let h: Harness | null = null
const closers: (() => void)[] = []
afterEach(async () => {
  for (const close of closers.splice(0)) close()
  for (const res of held.splice(0)) res.end()
  await h?.close()
  h = null
})
/** Answers that the upstream keeps back. */
const held: ServerResponse[] = []

async function start(limits: Partial<SidecarLimits> = {}, extra = 'trusted_proxies: [127.0.0.1]'): Promise<Harness> {
  const script = tuples(['alice viewer doc:1', 'bob viewer doc:1'])
  const harness = await startHarness({ routes: ROUTES, script, limits, extra })
  h = harness
  harness.upstream.handle = (req, res) => {
    if (/^\/(?:slow|own|shadow)/.test(req.url ?? '')) held.push(res)
    else res.end('ok')
  }
  return harness
}
const from = (address: string): string => `X-Forwarded-For: ${address}`
const ATTACKER = '203.0.113.66'

/** Of somebody else, at once: nobody answers what is held. */
async function othersAreServed(harness: Harness): Promise<void> {
  for (const address of ['203.0.113.1', '2001:db8::1']) {
    const answer = await harness.send('GET /other/1', { token: null, fields: [from(address)] })
    expect([answer.status, answer.body]).toEqual([200, 'ok'])
  }
}

const slow = (harness: Harness, { address = ATTACKER, line = 'GET /slow/1', token = null as string | null } = {}) =>
  harness.send(line, { token, fields: [from(address)] })
/** Resolves when the upstream has so many at once, which nobody answers. */
const underWay = (harness: Harness, count: number): Promise<void> =>
  until(() => harness.upstream.reached.length >= count)

function expectBusy(answer: RawAnswer, whose: string): void {
  expect([answer.status, field(answer, 'retry-after')]).toEqual([503, '1'])
  expect(JSON.parse(answer.body)).toMatchObject({
    code: 'busy',
    detail: `Too many requests ${whose}are open`,
  })
}

describe('one client that', () => {
  test('sends 100 requests at once on one connection has one under way', async () => {
    const harness = await start()
    const socket = openSocket(harness.port)
    socket.write(`GET /slow/1 HTTP/1.1\r\nHost: app.test\r\n${from(ATTACKER)}\r\n\r\n`.repeat(100))
    await underWay(harness, 1)
    await othersAreServed(harness)
    expect(held.length).toBe(1)
  })

  test('sends 3,000 requests at once on one connection loses it', async () => {
    const harness = await start()
    const socket = openSocket(harness.port)
    socket.write(`GET /slow/1 HTTP/1.1\r\nHost: app.test\r\n${from(ATTACKER)}\r\n\r\n`.repeat(3_000))
    await othersAreServed(harness)
    expect(held.length).toBeLessThan(2)
    await until(() => socket.destroyed)
    expect(harness.log).toContainEqual(expect.objectContaining({ reason: 'busy', client_address: '127.0.0.1' }))
  })

  test('uploads a byte each on 100 streams of 11 connections leaves places for others', async () => {
    const harness = await start()
    const headers = { 'x-forwarded-for': ATTACKER }
    const statuses: number[] = []
    for (let at = 0; at < 11; at += 1) {
      const session = openSession(harness.port)
      closers.push(() => session.destroy())
      for (let stream = 0; stream < 100; stream += 1) {
        const upload = session.request({ ':method': 'POST', ':path': '/slow/1', ':authority': 'app.test', ...headers })
        upload.on('response', (got) => statuses.push(got[':status'] ?? 0)).on('error', () => undefined)
        upload.write('x')
      }
    }
    // All that find no place are told so.
    await until(() => statuses.length === 1_100 - 256)
    await othersAreServed(harness)
    expect([harness.upstream.reached.filter(({ method }) => method === 'POST').length, new Set(statuses)]).toEqual([
      256,
      new Set([503]),
    ])
  })

  test('has many addresses in one /64 is one client', async () => {
    const harness = await start({ clientRequestsMax: 2, waitingMax: 0 })
    void slow(harness, { address: '2001:db8:6:6::1' })
    void slow(harness, { address: '2001:db8:6:6:ffff::2' })
    await underWay(harness, 2)
    expectBusy(await slow(harness, { address: '2001:db8:6:6::3' }), 'of this client ')
    await othersAreServed(harness)
  })

  test('opens many connections keeps nobody else from opening one', async () => {
    const harness = await start({ clientConnectionsMax: 5 }, '')
    const sockets = Array.from({ length: 20 }, () => openSocket(harness.port))
    await until(() => sockets.filter(({ destroyed }) => destroyed).length === 15)
    expect(
      harness.log.filter((line) => 'detail' in line && /client_connections_max/.test(`${line.detail}`)).length,
    ).toBe(15)
    const other = openSocket(harness.port, '127.0.0.2')
    other.write('GET /other/1 HTTP/1.1\r\nHost: app.test\r\n\r\n')
    await until(() => other.bytesRead > 0)
    // A place is free again when one of its own ends.
    sockets.find(({ destroyed }) => !destroyed)?.destroy()
    await until(async () => (await harness.send('GET /other/1', { token: null })).status === 200)
  })

  test('opens WebSockets that are never accepted leaves places for others, and for requests', async () => {
    const harness = await start({ clientWebsocketsMax: 2, waitingMax: 0 })
    harness.upstream.onUpgrade = () => undefined
    const key = ['Connection: Upgrade', 'Upgrade: websocket', 'Sec-WebSocket-Version: 13']
    const fields = [...key, 'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==']
    const shake = (address: string): Promise<RawAnswer> =>
      harness.send('GET /socket', { token: null, fields: [...fields, from(address)] })
    void shake(ATTACKER)
    void shake(ATTACKER)
    await underWay(harness, 2)
    expectBusy(await shake(ATTACKER), 'of this client ')
    expect((await harness.send('GET /other/1', { token: null, fields: [from(ATTACKER)] })).status).toBe(200)
    void shake('203.0.113.1')
    await underWay(harness, 4)
  })
})

describe('one subject with many addresses', () => {
  test('leaves places for others on the same route', async () => {
    const harness = await start({ subjectRequestsMax: 2, waitingMax: 0 })
    const [token, other] = [await harness.issuer.token(), await harness.issuer.token({ sub: 'bob' })]
    const address = (at: number): string => `203.0.113.${at}`
    for (let at = 1; at <= 2; at += 1) void slow(harness, { address: address(at), line: 'GET /own/1', token })
    await underWay(harness, 2)
    const asked = harness.pdp.asked.length
    expectBusy(await slow(harness, { address: address(3), line: 'GET /own/1', token }), 'of this subject ')
    // The PDP has no work with it.
    expect(harness.pdp.asked.length).toBe(asked)
    void slow(harness, { address: address(4), line: 'GET /own/1', token: other })
    await underWay(harness, 3)
    await othersAreServed(harness)
  })
})

describe('one slow route, asked by many', () => {
  test('leaves places for other routes', async () => {
    const harness = await start({ routeRequestsMax: 2, waitingMax: 0 })
    for (let at = 1; at <= 2; at += 1) void slow(harness, { address: `203.0.113.${at}` })
    await underWay(harness, 2)
    expectBusy(await slow(harness, { address: '203.0.113.3' }), 'of this route ')
    await othersAreServed(harness)
  })

  test.each([
    ['requests_max', 'limits: {requests_max: 2, waiting_max: 0}'],
    ['the connections to the upstream', 'limits: {upstream_connections_max: 2, waiting_max: 0}'],
  ])('and all others, beyond %s of the route file, are told at once', async (_name, extra) => {
    const harness = await start({}, `trusted_proxies: [127.0.0.1]\n${extra}`)
    for (let at = 1; at <= 2; at += 1) void slow(harness, { address: `203.0.113.${at}` })
    await underWay(harness, 2)
    expectBusy(await harness.send('GET /other/1', { token: null, fields: [from('203.0.113.3')] }), '')
    held.splice(0, 1)[0]?.end()
    await until(async () => (await harness.send('GET /other/1', { token: null })).status === 200)
  })
})

describe('a request that finds no place', () => {
  test('has its turn as soon as there is one', async () => {
    const harness = await start({ clientRequestsMax: 1, waitingMs: 20_000 })
    const first = slow(harness)
    await underWay(harness, 1)
    const second = harness.send('GET /other/1', { token: null, fields: [from(ATTACKER)] })
    await othersAreServed(harness)
    held.splice(0, 1)[0]?.end('first')
    expect([(await first).body, (await second).body]).toEqual(['first', 'ok'])
  })

  test('is refused when there is none in time, and its log line names client, route and subject', async () => {
    const harness = await start({ subjectRequestsMax: 1, waitingMs: 100 })
    const token = await harness.issuer.token()
    void slow(harness, { line: 'GET /own/1', token })
    await underWay(harness, 1)
    expectBusy(await slow(harness, { line: 'GET /own/1', token }), 'of this subject ')
    expect(harness.log).toContainEqual(
      expect.objectContaining({
        decision: 'deny',
        reason: 'busy',
        status: 503,
        route: 'GET /own/{id}',
        subject: 'alice',
        client_address: ATTACKER,
      }),
    )
  })

  test('is refused on a shadowed route too', async () => {
    const harness = await start({ routeRequestsMax: 1, waitingMax: 0 })
    void slow(harness, { line: 'GET /shadow/1' })
    await underWay(harness, 1)
    void slow(harness, { line: 'GET /shadow/1', token: await harness.issuer.token() })
    await underWay(harness, 2)
    expectBusy(await slow(harness, { line: 'GET /shadow/1', token: await harness.issuer.token() }), 'of this route ')
  })

  test('gives up its turn when its client leaves', async () => {
    const harness = await start({ clientRequestsMax: 1, waitingMax: 1, waitingMs: 20_000 })
    void slow(harness)
    await underWay(harness, 1)
    const gone = openSocket(harness.port)
    gone.write(`GET /other/gone HTTP/1.1\r\nHost: app.test\r\n${from(ATTACKER)}\r\n\r\n`)
    await until(async () => (await slow(harness)).status === 503)
    gone.destroy()
    const third = harness.send('GET /other/1', { token: null, fields: [from(ATTACKER)] })
    await othersAreServed(harness)
    for (const res of held.splice(0)) res.end()
    await until(
      async () => (await harness.send('GET /other/1', { token: null, fields: [from(ATTACKER)] })).status === 200,
    )
    expect([200, 503]).toContain((await third).status)
    expect(harness.upstream.reached.map(({ target }) => target)).not.toContain('/other/gone')
  })
})

describe('the least rate', () => {
  const LIMITS = { bodyIdleMs: 20_000, bodyGraceMs: 300, bodyBytesPerSecondMin: 10_000 }

  test('ends an upload that drips, with 408', async () => {
    const harness = await start(LIMITS)
    const socket = openSocket(harness.port)
    let text = ''
    socket.on('data', (chunk) => {
      text += chunk
    })
    socket.write(`POST /slow/1 HTTP/1.1\r\nHost: app.test\r\nContent-Length: 100000\r\n\r\n`)
    const dripping = setInterval(() => socket.write('x'), 20)
    closers.push(() => clearInterval(dripping))
    await until(() => text.startsWith('HTTP/1.1 408'))
    expect(text).toContain('request_timeout')
    await othersAreServed(harness)
  })

  test('ends an upload that drips over HTTP/2, too', async () => {
    const harness = await start(LIMITS)
    const session = openSession(harness.port)
    closers.push(() => session.destroy())
    const upload = session.request({ ':method': 'POST', ':path': '/slow/1', ':authority': 'app.test' })
    const dripping = setInterval(() => upload.write('x'), 20)
    closers.push(() => clearInterval(dripping))
    const status = await new Promise((resolve) => upload.on('response', (got) => resolve(got[':status'])))
    clearInterval(dripping)
    expect(status).toBe(408)
    expect((await ask(session, 'GET /other/1')).status).toBe(200)
  })

  test('lets an upload pass whose service is slow to read it', async () => {
    const harness = await start(LIMITS)
    harness.upstream.handle = (_req, res, body) => void setTimeout(() => res.end(`${body.length}`), 600)
    const answer = await harness.send('POST /slow/1', { token: null, body: 'x'.repeat(1_000) })
    expect([answer.status, answer.body]).toEqual([200, '1000'])
  })

  test('ends an answer whose reader drips, and lets the upstream go', async () => {
    const harness = await start({ ...LIMITS, bodyBytesPerSecondMin: 1_000_000_000 })
    let closed = false
    harness.upstream.handle = (_req, res) => {
      res.on('close', () => {
        closed = true
      })
      const fill = (): void => {
        while (!res.destroyed && res.write(Buffer.alloc(64 * 1024)));
        res.once('drain', fill)
      }
      fill()
    }
    const socket = openSocket(harness.port)
    socket.pause()
    socket.write('GET /slow/1 HTTP/1.1\r\nHost: app.test\r\n\r\n')
    const dripping = setInterval(() => void socket.read(1), 20)
    closers.push(() => clearInterval(dripping))
    await until(() => closed)
  })
})

describe('a reload', () => {
  test('takes other limits for the requests from then on', async () => {
    const harness = await start()
    const fields = [`X-Big: ${'a'.repeat(3_000)}`]
    expect((await harness.send('GET /other/1', { token: null, fields })).status).toBe(200)
    harness.apply(ROUTES, 'limits: {header_bytes_max: 2000, client_requests_max: 1, waiting_max: 0}')
    expect((await harness.send('GET /other/1', { token: null, fields })).status).toBe(431)
    void slow(harness)
    await until(() => held.length === 1)
    expectBusy(await slow(harness), 'of this client ')
  })
})

function openSocket(port: number, localAddress = '127.0.0.1'): Socket {
  const socket = connect({ port, host: '127.0.0.1', localAddress })
  socket.on('error', () => undefined)
  socket.on('data', () => undefined)
  closers.push(() => socket.destroy())
  return socket
}
