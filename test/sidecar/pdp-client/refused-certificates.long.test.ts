/** Why a connection to a PDP does not come about is in the line that says so, when its certificate is the reason. */
import { readFileSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { createServer, type TlsOptions } from 'node:tls'
import { credentials } from '@grpc/grpc-js'
import { expect, test } from 'vitest'
import { makeCertificate } from '../../../sidecar/injector/certificate/certificate.ts'
import { createPdpClient } from '../../../sidecar/pdp-client/client.ts'

const pem = (name: string): Buffer => readFileSync(join(import.meta.dirname, '../../support/certificates', name))
const SERVER = { cert: pem('server-1.pem'), key: pem('server-1.key'), ALPNProtocols: ['h2'] }
const ended = await makeCertificate({ names: ['localhost'], days: 1, nowMs: Date.now() - 3 * 86_400_000 })
const elsewhere = await makeCertificate({ names: ['pdp.example'], days: 1, nowMs: Date.now() })

async function reasonOf(server: TlsOptions, authority: Buffer | string): Promise<string> {
  const listener = createServer({ ALPNProtocols: ['h2'], ...server }, (socket) => socket.on('error', () => {}))
  await new Promise<void>((listening) => listener.listen(0, '127.0.0.1', listening))
  const { port } = listener.address() as AddressInfo
  const { promise, resolve } = Promise.withResolvers<string>()
  const client = createPdpClient({
    addresses: [`localhost:${port}`],
    credentials: credentials.createSsl(Buffer.from(authority)),
    random: () => 0.5,
    clock: Date.now,
    timeoutMs: 500,
    onConnectionChange: (change) => void (change.open || resolve(change.reason)),
  })
  const reason = await promise
  client.close()
  listener.close()
  return reason
}

test.each([
  ['of another authority', SERVER, pem('other-ca.pem'), /^TLS: .*certificate/],
  ['that has ended', { cert: ended.certificate, key: ended.key }, ended.authority, /^TLS: certificate has expired/],
  [
    'for another host',
    { cert: elsewhere.certificate, key: elsewhere.key },
    elsewhere.authority,
    /^TLS: .*pdp\.example/,
  ],
  [
    'that wants one of the client',
    { ...SERVER, ca: pem('ca.pem'), requestCert: true },
    pem('ca.pem'),
    /^TLS: .*certificate required/,
  ],
])('a certificate %s is named', async (_, server, authority, reason) => {
  expect(await reasonOf(server, authority)).toMatch(reason)
})
