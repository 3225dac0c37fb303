/** Certificates on both sides: of clients to the sidecar, of the sidecar to the service behind, and to the PDP. */
import { readFileSync } from 'node:fs'
import { connect as openHttp2 } from 'node:http2'
import { createServer, request } from 'node:https'
import { type AddressInfo, connect } from 'node:net'
import { join } from 'node:path'
import { connect as connectTls, TLSSocket } from 'node:tls'
import { pino } from 'pino'
import { afterEach, beforeAll, describe, expect, test } from 'vitest'
import { loadTls } from '../../../pdp/server/serve/grpc/tls.ts'
import { type Certificates, NO_CERTIFICATES, type Pem } from '../../../sidecar/config/certificates.ts'
import { type Served, seedAcme, serve } from '../../pdp/server/serve/harness.ts'
import { tuples } from '../../support/peers/scripted-pdp.ts'
import { until } from '../../support/until.ts'
import { type Harness, startHarness } from '../support/harness.ts'
import { fieldOf } from '../support/upstream.ts'

const PEMS = join(import.meta.dirname, '../../support/certificates')
const pem = (name: string): Buffer => readFileSync(join(PEMS, name))
/** One side: whom it believes, and what it shows. */
const side = (authority: string | null, shows: string | null = null): Pem => ({
  ca: authority === null ? null : pem(`${authority}.pem`),
  cert: shows === null ? null : pem(`${shows}.pem`),
  key: shows === null ? null : pem(`${shows}.key`),
})
const withCertificates = (part: Partial<Certificates>): Certificates => ({ ...NO_CERTIFICATES, ...part })

const ROUTES = 'GET /public/**: public\nGET /invoices/{id}: viewer invoice:{id}'
let h: Harness | null = null
const closers: (() => Promise<void> | void)[] = []
afterEach(async () => {
  await h?.close()
  h = null
  for (const close of closers.splice(0)) await close()
})
async function start(certificates = NO_CERTIFICATES): Promise<Harness> {
  h = await startHarness({ routes: ROUTES, script: tuples(['alice viewer invoice:1']), certificates })
  return h
}

describe('a client of the data port', () => {
  /** The status, or the code of the error when there is no answer. */
  const get = (port: number, shows: string | null): Promise<number | string> =>
    new Promise((resolve) => {
      const identity = shows === null ? {} : { cert: pem(`${shows}.pem`), key: pem(`${shows}.key`) }
      const options = { port, host: '127.0.0.1', servername: 'localhost', ca: pem('ca.pem'), agent: false, ...identity }
      request({ ...options, path: '/public/x', headers: { host: 'app.test' } }, (res) => {
        res.resume()
        resolve(res.statusCode ?? 0)
      })
        .on('error', (err) => resolve('code' in err ? String(err.code) : err.message))
        .end()
    })

  test('that is silent before its handshake is cut off', async () => {
    h = await startHarness({
      routes: ROUTES,
      script: tuples([]),
      certificates: withCertificates({ tls: side('ca', 'server-1') }),
      limits: { headersTimeoutMs: 100 },
    })
    const { promise, resolve } = Promise.withResolvers<string>()
    const client = connect(h.port, '127.0.0.1').on('error', () => {})
    client.on('close', () => resolve('cut off'))
    closers.push(() => void client.destroy())
    expect(await promise).toBe('cut off')
  })

  test('is served with a certificate of the named authority', async () => {
    const { port, upstream } = await start(withCertificates({ tls: side('ca', 'server-1') }))
    expect(await get(port, 'client')).toBe(200)
    expect(fieldOf(upstream.reached[0], 'x-forwarded-proto')).toBe('https')
  })

  test.each([['none'], ['stranger']])('is not served with the certificate %s', async (shows) => {
    const { port, upstream } = await start(withCertificates({ tls: side('ca', 'server-1') }))
    expect(await get(port, shows === 'none' ? null : shows)).toMatch(/CERTIFICATE|ECONNRESET|UNKNOWN_CA|EPROTO|SSL/)
    expect(upstream.reached).toEqual([])
  })

  test('needs a certificate of the new authority once that has replaced the old one', async () => {
    const harness = await start(withCertificates({ tls: side('ca', 'server-1') }))
    const certificates = withCertificates({ tls: side('other-ca', 'server-2') })
    harness.sidecar.apply({ file: harness.file(), certificates, hash: 'second' })
    expect(await get(harness.port, 'stranger')).toBe(200)
    expect(await get(harness.port, 'client')).not.toBe(200)
    expect(harness.upstream.reached).toHaveLength(1)
  })

  test.each([
    ['ends when its authority is gone', ['other-ca'], 'ended'],
    ['goes on when another authority is added', ['ca', 'other-ca'], 200],
  ])('that has connected before %s', async (_name, authorities, expected) => {
    const harness = await start(withCertificates({ tls: side('ca', 'server-1') }))
    const identity = { cert: pem('client.pem'), key: pem('client.key'), ca: pem('ca.pem') }
    const options = { port: harness.port, host: '127.0.0.1', servername: 'localhost', ...identity }
    const http1 = connectTls({ ...options, ALPNProtocols: ['http/1.1'] })
    const http2 = openHttp2(`https://127.0.0.1:${harness.port}`, options)
    closers.push(
      () => void http1.destroy(),
      () => http2.destroy(),
    )
    /** A status, or `ended`. */
    const overHttp1 = (): Promise<number | string> =>
      new Promise((resolve) => {
        http1.once('data', (chunk) => resolve(Number(String(chunk).slice(9, 12)))).once('close', () => resolve('ended'))
        if (http1.destroyed) resolve('ended')
        else http1.write('GET /public/x HTTP/1.1\r\nHost: app.test\r\n\r\n')
      })
    const overHttp2 = (): Promise<number | string> =>
      new Promise((resolve) => {
        if (http2.destroyed) return resolve('ended')
        const stream = http2.request({ ':path': '/public/x', ':authority': 'app.test' })
        stream.on('response', (got) => resolve(got[':status'] ?? 0)).on('error', () => resolve('ended'))
        stream.on('close', () => resolve('ended')).resume()
      })
    for (const client of [http1, http2]) client.on('error', () => undefined)
    expect([await overHttp1(), await overHttp2()]).toEqual([200, 200])
    const tls = { ...side(null, 'server-1'), ca: Buffer.concat(authorities.map((name) => pem(`${name}.pem`))) }
    harness.sidecar.apply({ file: harness.file(), certificates: withCertificates({ tls }), hash: 'second' })
    expect([await overHttp1(), await overHttp2()]).toEqual([expected, expected])
    const ended = { event: 'connections_ended', reason: 'client_ca_file', connections: 2 }
    expect(harness.log.filter((line) => 'event' in line && line.event === ended.event)).toMatchObject(
      expected === 'ended' ? [ended] : [],
    )
  })

  test('needs none where no authority is named', async () => {
    const { port } = await start(withCertificates({ tls: side(null, 'server-1') }))
    expect([await get(port, null), await get(port, 'stranger')]).toEqual([200, 200])
  })
})

test('a service behind that asks for a certificate gets ours, and a new one without a restart', async () => {
  const seen: string[] = []
  const server = createServer({
    ca: pem('ca.pem'),
    cert: pem('server-1.pem'),
    key: pem('server-1.key'),
    requestCert: true,
    rejectUnauthorized: true,
  })
  server.on('request', (req, res) => {
    if (req.socket instanceof TLSSocket) seen.push(String(req.socket.getPeerCertificate().subject.CN))
    res.end('ok')
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  closers.push(() => {
    server.closeAllConnections()
    server.close()
  })
  const harness = await start()
  harness.upstream.origin = `https://127.0.0.1:${(server.address() as AddressInfo).port}`
  const ask = async (shows: string | null): Promise<number> => {
    const certificates = withCertificates({ upstream: side('ca', shows) })
    harness.sidecar.apply({ file: harness.file(), certificates, hash: String(shows) })
    return (await harness.send('GET /invoices/1')).status
  }
  expect([await ask(null), await ask('stranger'), await ask('client')]).toEqual([502, 502, 200])
  expect(seen).toEqual(['client'])
})

describe('the real PDP beyond loopback', () => {
  let served: Served
  beforeAll(async () => {
    const [certFile, keyFile] = [join(PEMS, 'server-1.pem'), join(PEMS, 'server-1.key')]
    const files = { certFile, keyFile, clientCaFile: join(PEMS, 'ca.pem') }
    served = await serve({ grpcHost: '::', tls: await loadTls(files, { log: pino({ level: 'silent' }) }) })
    await seedAcme(served)
    return () => served.close()
  })

  /** Status of what Alice may see and of what she may not; the first answer that the PDP had its say in. */
  async function ask(shows: string | null, token: string | null): Promise<readonly [number, number]> {
    const limits = { pdpTimeoutMs: 3_000 }
    h = await startHarness({ routes: ROUTES, script: tuples([]), readToken: () => token ?? '', limits })
    const bearer = await h.issuer.token()
    served.setState(bearer, { ...ALICE, expiresAtMs: Date.now() + 60_000 })
    const file = h.file()
    const addresses = [served.grpc.address.replace('[::]', '127.0.0.1')]
    const pdp = { ...file.pdp, addresses, insecure: false, tokenFile: token === null ? null : '/run/token' }
    const { log } = h
    const before = log.length
    h.sidecar.apply({ file: { ...file, pdp }, certificates: withCertificates({ pdp: side('ca', shows) }), hash: 'tls' })
    const said = (event: string): boolean =>
      log.slice(before).some((entry) => 'event' in entry && entry.event === event)
    await until(() => said('pdp_connected'))
    const status = async (path: string): Promise<number> =>
      (await (h as Harness).send(`GET ${path}`, { token: bearer })).status
    const both = [await status('/invoices/1'), await status('/invoices/3')] as const
    if (both[0] !== 200) expect(h.upstream.reached).toEqual([])
    return both
  }

  test('answers a sidecar with a client certificate', async () => {
    expect(await ask('client', null)).toEqual([200, 403])
  })

  test('answers a sidecar with a service token for asking', async () => {
    expect(await ask(null, await served.manager({ client: 'gate', scopes: ['decisions:ask'] }))).toEqual([200, 403])
  })

  test.each<[string, () => Promise<string | null>]>([
    ['without any credentials', async () => null],
    ['with a token that nobody knows', async () => 'token-of-nobody'],
    ['with a token of another scope', () => served.manager({ client: 'other', scopes: ['directory:write'] })],
    ['with the token of a person', async () => served.token({})],
  ])('leaves a sidecar %s without an answer: 503', async (_name, token) => {
    expect(await ask(null, await token())).toEqual([503, 503])
  })

  test('does not speak to a sidecar with a certificate of another authority: 503', async () => {
    h = await startHarness({ routes: ROUTES, script: tuples([]) })
    const file = h.file()
    const pdp = { ...file.pdp, addresses: [served.grpc.address.replace('[::]', '127.0.0.1')], insecure: false }
    h.sidecar.apply({
      file: { ...file, pdp },
      certificates: withCertificates({ pdp: side('ca', 'stranger') }),
      hash: 'tls',
    })
    expect((await h.send('GET /invoices/1')).status).toBe(503)
    expect(h.upstream.reached).toEqual([])
  })
})

const ALICE = {
  active: true,
  subject: { type: 'user', id: 'alice' },
  organization: 'acme',
  clientId: 'c1',
  app: null,
  revocationKeys: [],
  actors: [],
  scopes: new Set<string>(),
  audiences: ['https://app.test'],
  jkt: null,
  jti: 'jti',
  grantId: 'grant',
  issuedAtMs: 1_000,
  expiresAtMs: 0,
  acr: null,
  authTime: null,
} as const
