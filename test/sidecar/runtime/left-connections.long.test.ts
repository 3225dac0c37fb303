import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { connect as connectTls } from 'node:tls'
import { afterEach, describe, expect, test } from 'vitest'
import { NO_CERTIFICATES } from '../../../sidecar/config/certificates.ts'
import { makeCertificate } from '../../../sidecar/injector/certificate/certificate.ts'
import { until } from '../../support/until.ts'
import { type Harness, startHarness } from '../support/harness.ts'
import { headers, PREFACE, pseudo, settings } from '../support/raw-http2.ts'

const ROUTES = `GET /public/**: public
GET /feed/{id}: {check: "viewer feed:{id}", upgrade: [websocket], origins: [https://app.test]}`
const UPGRADE = `GET /feed/1 HTTP/1.1
Host: app.test
Connection: Upgrade
Upgrade: websocket
Sec-WebSocket-Version: 13
Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==

`.replaceAll('\n', '\r\n')
const CONNECT = 'CONNECT app.test:443 HTTP/1.1\r\nHost: app.test:443\r\n\r\n'
const REFUSED = ['', 'PRI * HT', CONNECT, UPGRADE, 'GARBAGE\r\n\r\n']
const SESSION = Buffer.concat([PREFACE, settings()])

let h: Harness
const closers: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closers.splice(0)) await close()
})

async function start(options: Partial<Parameters<typeof startHarness>[0]>): Promise<void> {
  h = await startHarness({ routes: ROUTES, ...options })
  closers.push(h.close)
}

async function startSecure(limits: { drainMs?: number }): Promise<Buffer> {
  const made = await makeCertificate({ names: ['localhost'], days: 1, nowMs: Date.now() })
  const tls = { ca: null, cert: Buffer.from(made.certificate), key: Buffer.from(made.key) }
  await start({ limits, certificates: { ...NO_CERTIFICATES, tls } })
  return Buffer.from(made.authority)
}

/** A client that never ends its side. */
function open(bytes: Buffer | string): Socket {
  const socket = connect({ port: h.port, host: '127.0.0.1', allowHalfOpen: true })
  closers.unshift(() => socket.destroy())
  socket.on('error', () => undefined)
  socket.write(bytes)
  return socket
}

/** True when the sidecar lets go of it: what is written is then answered with a reset. */
async function isLetGo(socket: Socket): Promise<boolean> {
  const closed = new Promise<boolean>((resolve) => socket.once('close', () => resolve(true)))
  const writing = setInterval(() => socket.write('x'), 50)
  try {
    return await Promise.race([closed, sleep(15_000, false)])
  } finally {
    clearInterval(writing)
  }
}

describe('a connection that was refused', () => {
  test.each(REFUSED)('and is then reset ends nothing else: %j', async (bytes) => {
    await start({ limits: { headersTimeoutMs: 100 } })
    const failures: unknown[] = []
    const note = (err: unknown): void => void failures.push(err)
    process.on('uncaughtException', note)
    closers.push(() => process.off('uncaughtException', note))
    const socket = open(bytes)
    await once(socket, 'data')
    socket.resetAndDestroy()
    await sleep(100)
    expect(failures).toEqual([])
    expect((await h.send('GET /public/x', { token: null })).status).toBe(200)
  })

  test('over TLS and is then reset ends nothing else', async () => {
    const ca = await startSecure({})
    const failures: unknown[] = []
    const note = (err: unknown): void => void failures.push(err)
    process.on('uncaughtException', note)
    closers.push(() => process.off('uncaughtException', note))
    const under = open('')
    const socket = connectTls({ socket: under, ca, servername: 'localhost' })
    socket.on('error', () => undefined)
    socket.write(CONNECT)
    await once(socket, 'data')
    under.resetAndDestroy()
    await sleep(100)
    expect(failures).toEqual([])
  })

  test.each(REFUSED)('is not kept for a client that keeps it: %j', async (bytes) => {
    await start({ limits: { headersTimeoutMs: 100 } })
    const socket = open(bytes).resume()
    await once(socket, 'end', { signal: AbortSignal.timeout(15_000) })
    expect(await isLetGo(socket)).toBe(true)
  })
})

describe('an HTTP/2 connection that ended', () => {
  test('is not kept for a client that keeps it', async () => {
    await start({ limits: { keepAliveMs: 100, bodyIdleMs: 300 } })
    const socket = open(SESSION).resume()
    await once(socket, 'end')
    await sleep(600)
    expect(await isLetGo(socket)).toBe(true)
  })
})

describe('the drain is over in its time', () => {
  test('whatever HTTP/2 clients keep', async () => {
    await start({ limits: { drainMs: 300 } })
    open(Buffer.concat([SESSION, headers(1, pseudo('GET', '/public/x'))])).resume()
    await until(() => h.upstream.reached.length > 0)
    expect(await Promise.race([h.sidecar.close().then(() => 'over'), sleep(15_000, 'late')])).toBe('over')
  })

  test('whoever has not begun their handshake', async () => {
    await startSecure({ drainMs: 300 })
    await once(open(''), 'connect')
    await sleep(50)
    expect(await Promise.race([h.sidecar.close().then(() => 'over'), sleep(15_000, 'late')])).toBe('over')
  })
})

describe('a client that may vanish without a word', () => {
  /** Does the system count the time until it asks the other end (proc(5): `tr` of 02)? Null: it does not say. */
  function isProbed(localPort = 0, remotePort = 0): boolean | null {
    const hex = (port: number): string => `:${port.toString(16).toUpperCase().padStart(4, '0')}`
    if (!existsSync('/proc/net/tcp')) return null
    const rows = readFileSync('/proc/net/tcp', 'utf8').split('\n')
    const columns = rows.map((row) => row.trim().split(/\s+/))
    const found = columns.find(
      ([, local, remote]) => local?.endsWith(hex(localPort)) && remote?.endsWith(hex(remotePort)),
    )
    return found === undefined ? null : (found[5] ?? '').startsWith('02:')
  }

  test.each([
    ['plain', () => start({})],
    ['TLS', () => startSecure({})],
  ])('is asked whether it is still there: %s', async (_name, begin) => {
    await begin()
    const socket = open('').setKeepAlive(true, 30_000)
    await once(socket, 'connect')
    // Only where the system tells of our own end can it be asked about the other.
    if (isProbed(socket.localPort, h.port) === true) await until(() => isProbed(h.port, socket.localPort) === true)
  })
})
