/** A service at a unix socket, under another name of its certificate or of its own, and with a time-out of one route. */

import { mkdtempSync, rmSync } from 'node:fs'
import { createServer as createHttp1, type RequestListener } from 'node:http'
import { createServer as createHttp2 } from 'node:http2'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { NO_CERTIFICATES } from '../../../sidecar/config/certificates.ts'
import { makeCertificate } from '../../../sidecar/injector/certificate/certificate.ts'
import { sendRaw } from '../../support/peers/raw-http.ts'
import { type Harness, loadFile, routeFile, startHarness } from '../support/harness.ts'
import { startUpstream } from '../support/upstream.ts'

const ROUTES = `"* /public/{x}": public
GET /slow: {check: public, upstream_headers_ms: 50}
GET /patient: {check: public, upstream_headers_ms: 60000}`
const folder = mkdtempSync(join(tmpdir(), 'portcullis-places-'))
let h: Harness
const closers: (() => unknown)[] = []
beforeAll(async () => {
  h = await startHarness({ routes: ROUTES, limits: { upstreamHeadersMs: 200 } })
})
afterAll(async () => {
  await h.close()
  for (const close of closers) await close()
  rmSync(folder, { recursive: true })
})
const use = (upstream: object): void => {
  h.upstream.origin = JSON.stringify(upstream)
  h.apply(ROUTES)
}
const TRAILERS = ['Transfer-Encoding: chunked', 'Trailer: X-T']
const trailing = '1\r\na\r\n0\r\nX-T: 1\r\n\r\n'

describe.each(['1.1', '2'] as const)('over HTTP/%s', (version) => {
  const answer: RequestListener = (req, res) => {
    const host = req.headers[':authority'] ?? req.headers.host
    req.resume().on('end', () => res.end(`${host} ${req.headers['x-forwarded-host']}`))
  }
  const path = join(folder, version)
  beforeAll(async () => {
    const server = version === '2' ? createHttp2(answer as never) : createHttp1(answer)
    await new Promise<void>((resolve) => server.listen(path, resolve))
    closers.push(() => server.close())
  })
  const http2 = version === '2'

  test('a unix socket is where the service listens', async () => {
    use({ url: 'http://service.invalid', socket: path, http2 })
    expect((await h.send('GET /public/x', { token: null })).body).toBe('app.test app.test')
  })

  test('the service gets its own Host field, and learns that of the client', async () => {
    use({ url: 'http://service.invalid', socket: path, http2, host: 'inner.test:81' })
    expect((await h.send('GET /public/x', { token: null })).body).toBe('inner.test:81 app.test')
  })

  test('a socket that is not there is 502', async () => {
    use({ url: 'http://127.0.0.1:1', socket: join(folder, 'nothing'), http2 })
    expect((await h.send('GET /public/x', { token: null })).status).toBe(502)
  })
})

test('a request with trailers reaches the unix socket, too', async () => {
  const seen: unknown[] = []
  const server = createHttp1((req, res) => void req.resume().on('end', () => res.end(String(seen.push(req.trailers)))))
  const path = join(folder, 'trailers')
  await new Promise<void>((resolve) => server.listen(path, resolve))
  closers.push(() => server.close())
  use({ url: 'http://service.invalid', socket: path })
  const head = ['POST /public/x HTTP/1.1', 'Host: app.test', ...TRAILERS, 'Connection: close']
  const { status } = await sendRaw(h.port, `${head.join('\r\n')}\r\n\r\n${trailing}`)
  expect([status, seen]).toEqual([200, [{ 'x-t': '1' }]])
})

describe('over TLS', () => {
  test('the certificate must be for server_name', async () => {
    const made = await makeCertificate({ names: ['inner.test'], days: 1, nowMs: Date.now() })
    const service = await startUpstream({ cert: Buffer.from(made.certificate), key: Buffer.from(made.key) })
    closers.push(() => service.close())
    const trusting = { ca: Buffer.from(made.authority), cert: null, key: null }
    const statusAt = async (more: object): Promise<number> => {
      h.upstream.origin = JSON.stringify({ url: service.origin, ...more })
      const certificates = { ...NO_CERTIFICATES, upstream: trusting }
      h.sidecar.apply({ file: h.file(), certificates, hash: JSON.stringify(more) })
      return (await h.send('GET /public/x', { token: null })).status
    }
    expect(await statusAt({})).toBe(502)
    expect(await statusAt({ server_name: 'inner.test' })).toBe(200)
    expect(await statusAt({ server_name: 'other.test' })).toBe(502)
    expect(await statusAt({ host: 'inner.test' })).toBe(502)
  })
})

describe('a route with a time-out of its own', () => {
  test('is 504 after it, and waits longer than the others where it may', async () => {
    const service = await startUpstream()
    closers.push(() => service.close())
    const held: (() => void)[] = []
    service.handle = (_, res) => void held.push(() => res.end('late'))
    use({ url: service.origin })
    const patient = h.send('GET /patient', { token: null })
    expect((await h.send('GET /slow', { token: null })).status).toBe(504)
    expect((await h.send('GET /public/x', { token: null })).status).toBe(504)
    for (const answer of held) answer()
    expect((await patient).body).toBe('late')
  })
})

test.each([
  ['upstream: {url: "http://a.test", socket: relative}', /socket must be the absolute path/],
  ['upstream: {url: "http://a.test", socket: ""}', /socket must be the absolute path/],
  ['upstream: {url: "http://a.test", server_name: a.test}', /only with an https URL/],
  ['upstream: {url: "https://a.test", server_name: "a test"}', /server_name must be a host name/],
  ['upstream: {url: "https://a.test", server_name: "a.test:443"}', /server_name must be a host name/],
  ['upstream: {url: "http://a.test", host: "a.test/x"}', /host must be a host name/],
  ['upstream: {url: "http://a.test", host: "a\\r\\nX: y"}', /host must be a host name/],
  ['upstream: {url: "http://a.test", host: "a.test:"}', /host must be a host name/],
])('%s is refused', (upstream, says) => {
  expect(() => loadFile(routeFile('GET /x: public').replace('upstream: UPSTREAM', upstream))).toThrow(says)
})

test.each(['0', '"1s"', '3600001', '1.5'])('a time-out of %s is refused', (value) => {
  const load = () => loadFile(routeFile(`GET /x: {check: public, upstream_headers_ms: ${value}}`))
  expect(load).toThrow(/upstream_headers_ms must be a whole number from 10 to 3600000/)
})
