import { createServer as createHttp1 } from 'node:http'
import type { ClientHttp2Session } from 'node:http2'
import { type AddressInfo, createServer as createTcp, type Socket } from 'node:net'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { NO_CERTIFICATES } from '../../../sidecar/config/certificates.ts'
import { makeCertificate } from '../../../sidecar/injector/certificate/certificate.ts'
import { type Harness, startHarness } from '../support/harness.ts'
import { openSession } from '../support/http2-client.ts'
import { type Http2Upstream, startHttp2Upstream } from '../support/http2-upstream.ts'
import { tuples } from '../support/pdp.ts'

const ROUTES = `GET /public/**: public
POST /public/**: public
GET /invoices/{id}: viewer invoice:{id}`

let h: Harness
let up: Http2Upstream
let session: ClientHttp2Session
const closers: (() => unknown)[] = []
beforeEach(async () => {
  h = await startHarness({
    routes: ROUTES,
    script: tuples(['alice viewer invoice:1']),
    limits: { upstreamHeadersMs: 2_000, upstreamConnectMs: 2_000 },
  })
  up = await startHttp2Upstream()
  use(`http://127.0.0.1:${up.port}`)
  session = openSession(h.port)
  closers.push(
    () => session.destroy(),
    () => h.close(),
    () => up.close(),
  )
})
afterEach(async () => {
  for (const close of closers.splice(0)) await close()
})
function use(url: string): void {
  h.upstream.origin = `{url: "${url}", http2: true}`
  h.apply(ROUTES)
}

describe('what is no HTTP/2 upstream', () => {
  const listening = async (server: {
    listen(port: number, host: string): unknown
    address(): unknown
    close(): unknown
    once(event: 'listening', then: () => void): unknown
  }): Promise<number> => {
    await new Promise<void>((resolve) => {
      server.once('listening', resolve)
      server.listen(0, '127.0.0.1')
    })
    closers.unshift(() => void server.close())
    return (server.address() as AddressInfo).port
  }

  test('an HTTP/1.1 service is 502, and gets nothing that it could take for a request', async () => {
    const seen: string[] = []
    const server = createHttp1((req) => void seen.push(req.url ?? ''))
    use(`http://127.0.0.1:${await listening(server)}`)
    expect((await h.send('GET /public/x')).status).toBe(502)
    expect(seen).toEqual([])
  })

  test('nothing at all is 502', async () => {
    use('http://127.0.0.1:1')
    expect((await h.send('GET /public/x')).status).toBe(502)
  })

  test('one that takes the connection and stays silent is 504', async () => {
    const sockets: Socket[] = []
    const server = createTcp((socket) => void sockets.push(socket))
    use(`http://127.0.0.1:${await listening(server)}`)
    expect((await h.send('GET /public/x')).status).toBe(504)
    for (const socket of sockets) socket.destroy()
  })

  test('one that ends the connection for rubbish is 502', async () => {
    const server = createTcp(
      (socket) => void socket.on('error', () => undefined).end('rubbish that is no frame at all'),
    )
    use(`http://127.0.0.1:${await listening(server)}`)
    expect((await h.send('GET /public/x')).status).toBe(502)
  })
})

const made = await makeCertificate({ names: ['localhost'], days: 1, nowMs: Date.now() })

describe('over TLS', () => {
  const trusting = { ca: Buffer.from(made.authority), cert: null, key: null }
  const trust = (): void =>
    h.sidecar.apply({ file: h.file(), certificates: { ...NO_CERTIFICATES, upstream: trusting }, hash: 'tls' })

  test('an upstream is spoken to when its certificate is good', async () => {
    const secure = await startHttp2Upstream({ cert: made.certificate, key: made.key })
    closers.unshift(() => secure.close())
    use(`https://localhost:${secure.port}`)
    expect((await h.send('GET /public/x')).status).toBe(502)
    expect(secure.reached).toEqual([])
    trust()
    expect((await h.send('GET /public/x')).body).toBe('got ')
    expect(secure.reached[0]?.headers[':scheme']).toBe('https')
  })

  test('an upstream that does not name HTTP/2 by ALPN is 502', async () => {
    const { createServer } = await import('node:https')
    const seen: string[] = []
    const server = createServer({ cert: made.certificate, key: made.key }, (req) => void seen.push(req.url ?? ''))
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    closers.unshift(() => void server.close())
    use(`https://localhost:${(server.address() as AddressInfo).port}`)
    trust()
    expect((await h.send('GET /public/x')).status).toBe(502)
    expect(seen).toEqual([])
  })
})
