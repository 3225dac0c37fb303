/** How a gateway proves itself by its connection: a certificate, or a unix socket that others may not open. */
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { request } from 'node:http'
import { request as tlsRequest } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Client, credentials } from '@grpc/grpc-js'
import { afterEach, expect, test } from 'vitest'
import { serviceDefinition } from '../../../pdp/shared/process/grpc/service.ts'
import { Authorization } from '../../../proto/gen/envoy/service/auth/v3/external_auth_pb.ts'
import { readCertificates } from '../../../sidecar/config/certificates.ts'
import type { DoorProfile } from '../../../sidecar/http/door-fields.ts'
import { type Harness, loadFile, routeFile, startHarness } from '../support/harness.ts'
import { checkOf, linesOf, readCheckResponse } from './door-harness.ts'

const PEMS = fileURLToPath(new URL('../../support/certificates', import.meta.url))
const pem = (name: string): Buffer => readFileSync(join(PEMS, name))
const TLS = {
  cert_file: join(PEMS, 'server-1.pem'),
  key_file: join(PEMS, 'server-1.key'),
  client_ca_file: join(PEMS, 'ca.pem'),
}

let closers: (() => Promise<void> | void)[] = []
afterEach(async () => {
  for (const close of closers) await close()
  closers = []
})

/** The address of the only door. */
async function open(profile: DoorProfile, door: object): Promise<{ inner: Harness; address: string }> {
  const extra = `doors: ${JSON.stringify([{ profile, ...door }])}`
  const inner = await startHarness({ routes: 'GET /public: public', extra, certificatesOf: readCertificates })
  closers.push(() => inner.close())
  const [address = ''] = await inner.sidecar.openDoors()
  return { inner, address }
}

function folder(): string {
  const path = mkdtempSync(join(tmpdir(), 'portcullis-door-'))
  closers.push(() => rmSync(path, { recursive: true, force: true }))
  return path
}

const HEADERS = Object.fromEntries(
  linesOf('nginx', { target: '/public' })
    .slice(3)
    .map((line) => line.split(': ')),
)

/** The status; null: no connection. */
function askHttp(options: object, send: typeof request): Promise<number | null> {
  return new Promise((resolve) => {
    const asking = send({ path: '/authorize', headers: HEADERS, agent: false, ...options }, (answer) => {
      answer.resume()
      resolve(answer.statusCode ?? 0)
    })
    asking.on('error', () => resolve(null))
    asking.end()
  })
}

/** The status in the answer; null: none came. */
function askGrpc(address: string, own: ReturnType<typeof credentials.createInsecure>): Promise<number | null> {
  const client = new Client(address, own)
  const { check } = serviceDefinition(Authorization)
  return new Promise((resolve) => {
    client.makeUnaryRequest(
      check.path,
      check.requestSerialize,
      check.responseDeserialize,
      checkOf({ target: '/public' }, true),
      { deadline: Date.now() + 15_000 },
      (err, answer) => {
        client.close()
        resolve(err !== null || answer === undefined ? null : readCheckResponse(answer).status)
      },
    )
  })
}

test('answers over HTTP only a gateway with a certificate of the authority that the door names', async () => {
  const { address } = await open('nginx', { listen: '127.0.0.1:0', tls: TLS })
  const at = { host: '127.0.0.1', port: Number(address.split(':')[1]), ca: pem('ca.pem') }
  const asked = (name: string | null): Promise<number | null> =>
    askHttp({ ...at, ...(name !== null && { cert: pem(`${name}.pem`), key: pem(`${name}.key`) }) }, tlsRequest)
  expect(await asked('client')).toBe(200)
  expect(await asked('stranger')).toBeNull()
  expect(await asked(null)).toBeNull()
  expect(await askHttp({ host: at.host, port: at.port }, request)).not.toBe(200)
})

test('answers over gRPC only a gateway with a certificate of the authority that the door names', async () => {
  const { address } = await open('envoy', { listen: '127.0.0.1:0', tls: TLS })
  const ca = pem('ca.pem')
  expect(await askGrpc(address, credentials.createSsl(ca, pem('client.key'), pem('client.pem')))).toBe(200)
  expect(await askGrpc(address, credentials.createSsl(ca, pem('stranger.key'), pem('stranger.pem')))).toBeNull()
  expect(await askGrpc(address, credentials.createSsl(ca))).toBeNull()
  expect(await askGrpc(address, credentials.createInsecure())).toBeNull()
})

test.each(['envoy', 'nginx'] as const)(
  'opens a unix socket for %s that others on the machine may not open',
  async (profile) => {
    const path = join(folder(), 'door.sock')
    const { address } = await open(profile, { listen: `unix:${path}` })
    expect(address).toBe(`unix:${path}`)
    expect(statSync(path).mode & 0o777).toBe(0o660)
    const status =
      profile === 'nginx'
        ? await askHttp({ socketPath: path }, request)
        : await askGrpc(address, credentials.createInsecure())
    expect(status).toBe(200)
  },
)

test('takes the place of a socket that a killed process left, and of no other file', async () => {
  const path = join(folder(), 'door.sock')
  writeFileSync(path, 'a file of somebody')
  await expect(open('nginx', { listen: `unix:${path}` })).rejects.toThrow('there is a file that is not a socket')
  expect(readFileSync(path, 'utf8')).toBe('a file of somebody')
})

test('does not start with a secret that is too short, missing or of several lines', () => {
  const path = join(folder(), 'secret')
  const extra = `doors: ${JSON.stringify([{ profile: 'nginx', listen: '127.0.0.1:0', secret_file: path }])}`
  const source = routeFile('GET /public: public', { extra })
  const file = loadFile(source.replace('UPSTREAM', 'http://a.test').replace('PDP', '127.0.0.1:1'))
  expect(() => readCertificates(file)).toThrow('does not exist')
  for (const text of ['', 'short', `${'a'.repeat(40)}\n${'b'.repeat(40)}`, 'ä'.repeat(40)]) {
    writeFileSync(path, text)
    expect(() => readCertificates(file)).toThrow('one secret of 32 to 1024')
  }
  writeFileSync(path, `${'a'.repeat(32)}\n`)
  expect(readCertificates(file).doors).toEqual([{ tls: null, secret: 'a'.repeat(32) }])
})
