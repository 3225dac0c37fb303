import { createServer as createHttp1 } from 'node:http'
import { type AddressInfo, createServer as createTcp, type Socket } from 'node:net'
import { describe, expect, test } from 'vitest'
import { NO_CERTIFICATES } from '../../../sidecar/config/certificates.ts'
import { makeCertificate } from '../../../sidecar/injector/certificate/certificate.ts'
import { startHttp2Upstream } from '../support/http2-upstream.ts'
import { openHttp2World } from './http2-world.ts'

const world = openHttp2World()

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
    world.closers.unshift(() => void server.close())
    return (server.address() as AddressInfo).port
  }

  test('an HTTP/1.1 service is 502, and gets nothing that it could take for a request', async () => {
    const seen: string[] = []
    const server = createHttp1((req) => void seen.push(req.url ?? ''))
    world.use(`http://127.0.0.1:${await listening(server)}`)
    expect((await world.h.send('GET /public/x')).status).toBe(502)
    expect(seen).toEqual([])
  })

  test('nothing at all is 502', async () => {
    world.use('http://127.0.0.1:1')
    expect((await world.h.send('GET /public/x')).status).toBe(502)
  })

  test('one that takes the connection and stays silent is 504', async () => {
    const sockets: Socket[] = []
    const server = createTcp((socket) => void sockets.push(socket))
    world.use(`http://127.0.0.1:${await listening(server)}`)
    expect((await world.h.send('GET /public/x')).status).toBe(504)
    for (const socket of sockets) socket.destroy()
  })

  test('one that ends the connection for rubbish is 502', async () => {
    const server = createTcp(
      (socket) => void socket.on('error', () => undefined).end('rubbish that is no frame at all'),
    )
    world.use(`http://127.0.0.1:${await listening(server)}`)
    expect((await world.h.send('GET /public/x')).status).toBe(502)
  })
})

const made = await makeCertificate({ names: ['localhost'], days: 1, nowMs: Date.now() })

describe('over TLS', () => {
  const trusting = { ca: Buffer.from(made.authority), cert: null, key: null }
  const trust = (): void =>
    world.h.sidecar.apply({
      file: world.h.file(),
      certificates: { ...NO_CERTIFICATES, upstream: trusting },
      hash: 'tls',
    })

  test('an upstream is spoken to when its certificate is good', async () => {
    const secure = await startHttp2Upstream({ cert: made.certificate, key: made.key })
    world.closers.unshift(() => secure.close())
    world.use(`https://localhost:${secure.port}`)
    expect((await world.h.send('GET /public/x')).status).toBe(502)
    expect(secure.reached).toEqual([])
    trust()
    expect((await world.h.send('GET /public/x')).body).toBe('got ')
    expect(secure.reached[0]?.headers[':scheme']).toBe('https')
  })

  test('an upstream that does not name HTTP/2 by ALPN is 502', async () => {
    const { createServer } = await import('node:https')
    const seen: string[] = []
    const server = createServer({ cert: made.certificate, key: made.key }, (req) => void seen.push(req.url ?? ''))
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    world.closers.unshift(() => void server.close())
    world.use(`https://localhost:${(server.address() as AddressInfo).port}`)
    trust()
    expect((await world.h.send('GET /public/x')).status).toBe(502)
    expect(seen).toEqual([])
  })
})
