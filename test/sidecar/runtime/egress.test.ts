/** Environments with an egress proxy, and with authorities of their own: what goes through the proxy, and what never does. */
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type Server, setGlobalProxyFromEnv } from 'node:http'
import { createServer as createSecureServer } from 'node:https'
import { type AddressInfo, connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Duplex } from 'node:stream'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { useProxy } from '../../../pdp/shared/process/egress.ts'
import { readCertificates } from '../../../sidecar/config/certificates.ts'
import { parseRouteFile } from '../../../sidecar/route-file/route-file.ts'
import { createKeyFetch } from '../../../sidecar/runtime/key-fetch.ts'
import { createProvider } from '../../../sidecar/sign-in/provider.ts'
import { tuples } from '../../support/peers/scripted-pdp.ts'
import { routeFile, startHarness } from '../support/harness.ts'
import { startHttp2Upstream } from '../support/http2-upstream.ts'
import { startUpstream } from '../support/upstream.ts'

const certificate = (name: string): string =>
  fileURLToPath(new URL(`../../support/certificates/${name}`, import.meta.url))
const folder = mkdtempSync(join(tmpdir(), 'portcullis-egress-'))
const asked: string[] = []
let proxy: Server
let origin: ReturnType<typeof createSecureServer>
const portOf = (server: Server | typeof origin): number => (server.address() as AddressInfo).port

beforeAll(async () => {
  origin = createSecureServer(
    { cert: readFileSync(certificate('server-1.pem')), key: readFileSync(certificate('server-1.key')) },
    (_req, res) => void res.end('{"keys":[]}'),
  )
  proxy = createServer((req, res) => {
    asked.push(`${req.method} ${req.url}`)
    res.writeHead(502).end()
  })
  proxy.on('connect', (req, socket) => {
    asked.push(`CONNECT ${req.url}`)
    const onward = connect(portOf(origin), '127.0.0.1', () => {
      socket.write('HTTP/1.1 200 OK\r\n\r\n')
      onward.pipe(socket).pipe(onward)
    })
    for (const side of [socket, onward]) side.on('error', () => undefined)
  })
  for (const server of [proxy, origin]) await new Promise<void>((done) => server.listen(0, '127.0.0.1', () => done()))
})
afterAll(() => {
  rmSync(folder, { recursive: true })
  proxy.closeAllConnections()
  proxy.close()
  origin.closeAllConnections()
  origin.close()
})
beforeEach(() => {
  asked.length = 0
})

const url = (): string => `http://127.0.0.1:${portOf(proxy)}`
const ask = (environment: { readonly [name: string]: string }, target: string): Promise<unknown> =>
  createKeyFetch(environment)(target, { headers: {}, redirect: 'manual', signal: AbortSignal.timeout(10_000) })

test.each(['HTTPS_PROXY', 'https_proxy'])(
  'an issuer is asked through the proxy of %s, and TLS ends at the issuer',
  async (name) => {
    // The certificate is for localhost: a proxy that answered itself, or led elsewhere, would not pass for the issuer.
    await expect(ask({ [name]: url() }, 'https://issuer.test/keys')).rejects.toThrow()
    expect(asked).toEqual(['CONNECT issuer.test:443'])
  },
)

test('an issuer of NO_PROXY, and one on loopback by http, are asked without the proxy', async () => {
  const target = `https://127.0.0.1:${portOf(origin)}/keys`
  await expect(ask({ HTTPS_PROXY: url(), NO_PROXY: '127.0.0.1,.internal' }, target)).rejects.toThrow(/certificate/)
  const plain = createServer((_req, res) => void res.end('{}'))
  await new Promise<void>((done) => plain.listen(0, '127.0.0.1', () => done()))
  await ask({ HTTPS_PROXY: url(), HTTP_PROXY: url() }, `http://127.0.0.1:${portOf(plain)}/keys`)
  plain.close()
  expect(asked).toEqual([])
})

test.each([
  ['a name below a domain', '.test'],
  ['a name below a domain, with a star', '*.test'],
  ['the name itself among others', 'a.b, issuer.test ,c.d'],
  ['capitals', 'ISSUER.TEST'],
  ['its port', 'issuer.test:443'],
  ['everything', '*'],
])('an issuer that NO_PROXY names by %s is asked without the proxy', async (_, no_proxy) => {
  await expect(ask({ HTTPS_PROXY: url(), NO_PROXY: no_proxy }, 'https://issuer.test/keys')).rejects.toThrow()
  expect(asked).toEqual([])
})

test.each([
  ['a longer name', 'https://evilissuer.test/keys', 'issuer.test,.issuer.test'],
  ['another port', 'https://issuer.test:8443/keys', 'issuer.test:443'],
  ['a name that goes on', 'https://issuer.test.evil/keys', 'issuer.test'],
])('%s than that of NO_PROXY is asked through the proxy', async (_, target, no_proxy) => {
  await expect(ask({ https_proxy: url(), no_proxy }, target)).rejects.toThrow()
  expect(asked).toEqual([`CONNECT ${new URL(target).hostname}:${new URL(target).port || 443}`])
})

test('opaque tokens are asked about through the proxy, which sees neither token nor secret', async () => {
  const fetch = createKeyFetch({ HTTPS_PROXY: url() })
  const options = { method: 'POST', headers: { authorization: 'Basic c2VjcmV0' }, body: 'token=abc' } as const
  const signal = AbortSignal.timeout(10_000)
  await expect(fetch('https://issuer.test/introspect', { ...options, redirect: 'manual', signal })).rejects.toThrow()
  expect(asked).toEqual(['CONNECT issuer.test:443'])
})

test('a proxy that wants a name and a password gets those of its URL', async () => {
  const named = createServer()
  const given: (string | undefined)[] = []
  named.on('connect', (req, socket) => {
    given.push(req.headers['proxy-authorization'])
    socket.end('HTTP/1.1 407 Proxy Authentication Required\r\n\r\n')
  })
  await new Promise<void>((done) => named.listen(0, '127.0.0.1', () => done()))
  const HTTPS_PROXY = `http://ann:p%40ss@127.0.0.1:${portOf(named)}`
  await expect(ask({ HTTPS_PROXY }, 'https://issuer.test/keys')).rejects.toThrow()
  expect(given).toEqual([`Basic ${Buffer.from('ann:p@ss').toString('base64')}`])
  named.closeAllConnections()
  named.close()
})

test.each<[string, (socket: Duplex) => void]>([
  ['refuses', (socket) => socket.end('HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n')],
  ['ends', (socket) => socket.destroy()],
  ['speaks another protocol', (socket) => socket.end('\x05\x00')],
  ['says nothing', () => undefined],
  ['says a head without end', (socket) => socket.write(`HTTP/1.1 200 OK\r\nA: ${'a'.repeat(100_000)}`)],
  ['connects, and then ends', (socket) => socket.end('HTTP/1.1 200 OK\r\n\r\n')],
])('a proxy that %s is a failure within its time, and nothing more', async (_, play) => {
  const bad = createServer()
  bad.on('connect', (_req, socket) => {
    socket.on('error', () => undefined)
    play(socket)
  })
  await new Promise<void>((done) => bad.listen(0, '127.0.0.1', () => done()))
  const signal = AbortSignal.timeout(1_500)
  const fetch = createKeyFetch({ HTTPS_PROXY: `http://127.0.0.1:${portOf(bad)}` })
  await expect(fetch('https://issuer.test/keys', { headers: {}, redirect: 'manual', signal })).rejects.toThrow()
  bad.closeAllConnections()
  bad.close()
})

test('people are signed in through the proxy, which is asked once, also when it ends the connection', async () => {
  const entry = { issuer: 'https://issuer.test', clientId: 'web', clientSecretFile: null, clientKeyFile: null } as const
  const more = { name: '', label: 'As', scope: 'openid', parameters: {} }
  const deps = { resource: null, readSecret: () => '', clock: Date.now }
  const refresh = (proxy: string) =>
    createProvider({ ...entry, ...more }, { ...deps, fetch: createKeyFetch({ HTTPS_PROXY: proxy }) }).refresh('r')
  await expect(refresh(url())).rejects.toThrow(/metadata of https:\/\/issuer\.test/)
  expect(asked).toEqual(['CONNECT issuer.test:443'])
  let tries = 0
  const rude = createServer().on('connect', (_req, socket) => {
    tries += 1
    socket.destroy()
  })
  await new Promise<void>((done) => rude.listen(0, '127.0.0.1', () => done()))
  await expect(refresh(`http://127.0.0.1:${portOf(rude)}`)).rejects.toThrow()
  expect(tries).toBe(1)
  rude.close()
})

test.each(['proxy.example.com:3128', '10.0.0.5:3128', 'socks5://127.0.0.1:1', 'http://', '//proxy', 'proxy'])(
  'the proxy %s stops the start, and the message says what one looks like',
  (HTTPS_PROXY) => {
    expect(() => useProxy({ HTTPS_PROXY })).toThrow(/HTTPS_PROXY .*such as http:\/\/proxy\.example\.com:3128/)
  },
)

test('the service is reached without the proxy over https, HTTP/2 and unix sockets', async () => {
  const restore = setGlobalProxyFromEnv({ https_proxy: url(), no_proxy: undefined })
  const identity = {
    cert: readFileSync(certificate('server-1.pem')),
    key: readFileSync(certificate('server-1.key')),
  }
  const service = await startUpstream(identity)
  const socket = join(folder, 'service.sock')
  const local = createServer((_req, res) => void res.end('{}'))
  await new Promise<void>((done) => local.listen(socket, () => done()))
  const http2 = await startHttp2Upstream()
  const ca = `ca_file: ${certificate('ca.pem')}`
  const routes = `GET /tls: {check: public, upstream: {url: "${service.origin.replace('127.0.0.1', 'localhost')}", ${ca}}}
GET /h2: {check: public, upstream: {url: "http://127.0.0.1:${http2.port}", http2: true}}
GET /unix: {check: public, upstream: {url: "http://localhost", socket: ${socket}}}`
  const h = await startHarness({ routes, script: tuples([]), certificatesOf: readCertificates })
  try {
    for (const path of ['/tls', '/h2', '/unix'])
      expect([path, (await h.send(`GET ${path}`)).status]).toEqual([path, 200])
    expect(asked).toEqual([])
  } finally {
    restore()
    await h.close()
    await http2.close()
    await service.close()
    local.close()
  }
})

test('neither the PDP nor the service is reached through a proxy', async () => {
  const names = ['grpc_proxy', 'https_proxy', 'http_proxy', 'HTTPS_PROXY', 'HTTP_PROXY']
  const before = names.map((name) => process.env[name])
  for (const name of names) process.env[name] = url()
  const h = await startHarness({ routes: 'GET /a: signed_in', script: tuples([]) })
  try {
    expect((await h.send('GET /a')).status).toBe(200)
    expect(asked).toEqual([])
  } finally {
    await h.close()
    for (const [at, name] of names.entries()) {
      if (before[at] === undefined) delete process.env[name]
      else process.env[name] = before[at]
    }
  }
})

test('SSL_CERT_FILE makes an issuer with a certificate of these authorities trusted, and a wrong file stops the start', () => {
  const play = (file: string): string =>
    execFileSync(
      process.execPath,
      [
        '--input-type=module',
        '-e',
        `const { trustAuthorities } = await import(${JSON.stringify(new URL('../../../pdp/shared/process/egress.ts', import.meta.url).href)})
         const { createKeyFetch } = await import(${JSON.stringify(new URL('../../../sidecar/runtime/key-fetch.ts', import.meta.url).href)})
         try { trustAuthorities({ SSL_CERT_FILE: ${JSON.stringify(file)} }) } catch (err) { console.log(err.name); process.exit(0) }
         const { getCACertificates } = await import('node:tls')
         console.log(getCACertificates('default').length > 1)`,
      ],
      { encoding: 'utf8' },
    ).trim()
  writeFileSync(join(folder, 'empty.pem'), 'no certificate')
  writeFileSync(join(folder, 'bad.pem'), '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n')
  expect(play(certificate('ca.pem'))).toBe('true')
  for (const name of ['empty.pem', 'bad.pem', 'missing.pem']) expect(play(join(folder, name))).toBe('ConfigError')
})

test('keys by plain http are refused with the two ways out', () => {
  const source = routeFile('GET /a: public')
    .replace('UPSTREAM', 'http://127.0.0.1:1')
    .replace('PDP', '127.0.0.1:1')
    .replace(
      '{issuer: https://as.test}',
      '{issuer: https://as.test, jwks_uri: "http://keycloak.keycloak.svc:8080/certs"}',
    )
  const [issue] = parseRouteFile(source).issues
  expect(issue?.message).toMatch(/must be an https URL.*public https address.*SSL_CERT_FILE/)
})
