/** Environments with an egress proxy, and with authorities of their own: what goes through the proxy, and what never does. */
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import { createServer as createSecureServer } from 'node:https'
import { type AddressInfo, connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { parseRouteFile } from '../../../sidecar/route-file/route-file.ts'
import { createKeyFetch } from '../../../sidecar/runtime/key-fetch.ts'
import { tuples } from '../../support/peers/scripted-pdp.ts'
import { routeFile, startHarness } from '../support/harness.ts'

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
