import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import type { ClientHttp2Session } from 'node:http2'
import { request } from 'node:https'
import { connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { connect as connectTls } from 'node:tls'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { NO_CERTIFICATES } from '../../../sidecar/config/certificates.ts'
import { makeCertificate } from '../../../sidecar/injector/certificate/certificate.ts'
import { sendRaw } from '../../support/peers/raw-http.ts'
import { until } from '../../support/until.ts'
import { type Harness, startHarness } from '../support/harness.ts'
import { ask, openSession } from '../support/http2-client.ts'
import { fieldOf } from '../support/upstream.ts'

const ROUTES = `GET /public/**: public
POST /public/**: public
GET /invoices/{id}: viewer invoice:{id}`

let shared: Harness
let h: Harness
let session: ClientHttp2Session
const closers: (() => unknown)[] = []
beforeAll(async () => {
  shared = await startHarness({ routes: ROUTES })
})
afterAll(() => shared.close())
beforeEach(() => {
  h = shared
  h.upstream.reached.length = 0
  h.upstream.handle = null
  open()
})
afterEach(async () => {
  for (const close of closers.splice(0)) await close()
})

function open(options: Parameters<typeof openSession>[1] = {}): void {
  session = openSession(h.port, options)
  const opened = session
  closers.unshift(() => opened.destroy())
}
/** Another sidecar than the one that most tests share. */
async function restart(options: Partial<Parameters<typeof startHarness>[0]>): Promise<void> {
  h = await startHarness({ routes: ROUTES, ...options })
  closers.push(h.close)
  if (options.certificates === undefined) open()
}

describe('the data port', () => {
  test('serves both versions in plain text, whatever pieces the preface comes in', async () => {
    expect((await h.send('GET /public/x', { token: null })).status).toBe(200)
    const socket = connect(h.port, '127.0.0.1')
    closers.push(() => socket.destroy())
    const preface = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0')
    const settings = once(socket, 'data')
    for (const byte of preface) {
      socket.write(Buffer.from([byte]))
      await sleep(1)
    }
    const [answer] = (await settings) as [Buffer]
    expect(answer[3]).toBe(4)
  })

  test.each([
    'PRI * HTTP/2.0\r\n\r\n',
    'PRI * HTTP/2.0\r\n\r\nXX\r\n\r\n',
    'PRI /public/x HTTP/1.1\r\nHost: app.test\r\n\r\n',
    'PRI * HTTP/1.1\r\nHost: app.test\r\n\r\n',
    '\x16\x03\x01\x02\x00\x01\x00\x01',
  ])('takes %j for no HTTP', async (bytes) => {
    await restart({ limits: { headersTimeoutMs: 300 } })
    expect([400, 408]).toContain((await sendRaw(h.port, bytes)).status)
    expect(h.upstream.reached).toEqual([])
  })

  test('does not wait long for the first bytes of a connection', async () => {
    await restart({ limits: { headersTimeoutMs: 200 } })
    for (const bytes of ['', 'P', 'PRI * HT']) expect((await sendRaw(h.port, bytes)).status).toBe(408)
  })

  test('ends a connection that closes before it has said what it speaks', async () => {
    const socket = connect({ port: h.port, allowHalfOpen: true })
    socket.end('PRI')
    socket.resume()
    await once(socket, 'close')
  })

  test('serves both versions over TLS, as ALPN says', async () => {
    const made = await makeCertificate({ names: ['localhost'], days: 1, nowMs: Date.now() })
    const tls = { ca: null, cert: Buffer.from(made.certificate), key: Buffer.from(made.key) }
    await restart({ certificates: { ...NO_CERTIFICATES, tls } })
    open({ ca: made.authority, servername: 'localhost' })
    const secure = await ask(session, 'GET /public/x')
    expect([secure.status, fieldOf(h.upstream.reached[0], 'x-forwarded-proto')]).toEqual([200, 'https'])
    expect((await ask(session, 'GET /public/x', { headers: { ':scheme': 'http' } })).status).toBe(400)
    const options = { port: h.port, host: '127.0.0.1', servername: 'localhost', ca: made.authority, agent: false }
    const [res] = await once(
      request({ ...options, path: '/public/x', headers: { host: 'app.test' } }).end(),
      'response',
    )
    expect(res.statusCode).toBe(200)
    const strange = connectTls({ ...options, ALPNProtocols: ['spdy/3'] })
    const [err] = await once(strange, 'error')
    expect(err.code).toMatch(/NO_APPLICATION_PROTOCOL|ECONNRESET/)
  })

  test.skipIf(spawnSync('curl', ['--version']).status !== 0)('serves curl with prior knowledge', async () => {
    const url = `http://127.0.0.1:${h.port}/public/x`
    const curl = spawn('curl', ['-s', '--http2-prior-knowledge', '-H', 'Host: app.test', '-w', '%{http_version}', url])
    let out = ''
    curl.stdout.on('data', (chunk) => {
      out += chunk
    })
    await once(curl, 'close')
    expect(out).toMatch(/"target":"\/public\/x".*\}2$/s)
  })

  test.skipIf(spawnSync('h2load', ['--version']).status !== 0)('serves h2load without an error', async () => {
    const load = spawn('h2load', [
      '-n2000',
      '-c4',
      '-m25',
      '-H:authority: app.test',
      `http://127.0.0.1:${h.port}/public/x`,
    ])
    let out = ''
    load.stdout.on('data', (chunk) => {
      out += chunk
    })
    await once(load, 'close')
    expect(out).toMatch(/2000 succeeded, 0 failed, 0 errored, 0 timeout/)
    expect(h.upstream.reached.length).toBe(2_000)
  })
})

describe('the end of a connection', () => {
  test('comes with GOAWAY while requests under way finish', async () => {
    await restart({})
    const finishing: (() => void)[] = []
    h.upstream.handle = (_req, res) => {
      res.write('first')
      finishing.push(() => res.end(' last'))
    }
    const asked = ask(session, 'GET /public/x')
    await until(() => finishing.length > 0)
    const goaway = once(session, 'goaway')
    const closed = h.sidecar.close()
    const [code] = await goaway
    expect(code).toBe(0)
    for (const finish of finishing) finish()
    expect(await asked).toMatchObject({ status: 200, body: 'first last', reset: 0 })
    await closed
  })

  test('comes when nobody has asked for a while, PING or not', async () => {
    await restart({ limits: { keepAliveMs: 300 } })
    const startedMs = performance.now()
    await ask(session, 'GET /public/x')
    const pinging = setInterval(() => void (session.closed || session.ping(() => undefined)), 50)
    await once(session, 'close')
    clearInterval(pinging)
    expect(performance.now() - startedMs).toBeGreaterThan(250)
  })

  test('does not wait for a client that takes nothing of its answer', async () => {
    await restart({ limits: { bodyIdleMs: 300 } })
    let closedCount = 0
    h.upstream.handle = (_req, res) => {
      res.on('close', () => {
        closedCount += 1
      })
      res.write(Buffer.alloc(32 * 1024 * 1024))
    }
    open({ settings: { initialWindowSize: 0 } })
    const small = ask(session, 'GET /nothing')
    const large = ask(session, 'GET /public/x')
    const socket = connect(h.port, '127.0.0.1').pause()
    closers.push(() => socket.destroy())
    socket.write('GET /public/x HTTP/1.1\r\nHost: app.test\r\n\r\n')
    expect([(await small).reset, (await large).reset]).toEqual([2, 2])
    await until(() => closedCount === 2)
  })

  test('does not wait for a silent body that says it is gRPC, where the upstream speaks none', async () => {
    await restart({ limits: { bodyIdleMs: 300 } })
    const headers = {
      ':method': 'POST',
      ':path': '/public/x',
      ':authority': 'app.test',
      'content-type': 'application/grpc',
    }
    const stream = session.request(headers, { endStream: false })
    closers.push(() => stream.destroy())
    const [answer] = await once(stream, 'response')
    expect([answer[':status'], answer['grpc-status']]).toEqual([200, '4'])
  })

  test('does not come while a request is under way', async () => {
    await restart({ limits: { keepAliveMs: 100 } })
    h.upstream.handle = (_req, res) => void setTimeout(() => res.end('late'), 400)
    expect(await ask(session, 'GET /public/x')).toMatchObject({ status: 200, body: 'late', reset: 0 })
  })
})

describe('a sidecar that withdraws', () => {
  test('serves the first request of a new HTTP/2 connection and then sends GOAWAY, so that no client stays', async () => {
    await restart({})
    h.sidecar.withdraw()
    for (let count = 0; count < 2; count += 1) {
      open()
      expect((await ask(session, 'GET /public/x')).status).toBe(200)
      await until(() => session.closed)
    }
  })

  test('sends GOAWAY to connections that are open, and finishes what they have begun', async () => {
    await restart({})
    let finish = (): void => undefined
    h.upstream.handle = (_req, res) => {
      finish = () => void res.end('done')
    }
    const asked = ask(session, 'GET /public/x')
    await until(() => h.upstream.reached.length === 1)
    h.sidecar.withdraw()
    await until(() => session.closed)
    finish()
    expect(await asked).toMatchObject({ status: 200, body: 'done' })
  })
})
