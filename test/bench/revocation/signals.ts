/** How long another issuer's revoked session lives: from its event to the first denial, and to the end of an open stream. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startPdp } from '../../../pdp/server/runtime/start.ts'
import { createLog } from '../../../pdp/shared/process/log.ts'
import { createShutdown } from '../../../pdp/shared/process/shutdown.ts'
import { CAEP_EVENTS } from '../../../pdp/signals/set/event-types.ts'
import { readConfig } from '../../../sidecar/config/config.ts'
import { startSidecar } from '../../../sidecar/runtime/start.ts'
import { choosePorts } from '../../e2e/demo-stack.ts'
import { pdpSettings } from '../../e2e/pdp-settings.ts'
import { CLIENT, startTransmitter, type Transmitter } from '../../pdp/signals/receiver/transmitter.ts'
import { freePort } from '../../support/free-port.ts'
import { clientToken } from '../../support/sign-in.ts'

const RESOURCE = 'https://orders.test'
const ADMIN_SECRET = 'the-secret-of-the-administrator'
const ROUNDS = 200
const WAIT_MS = 30_000
const EXTERNAL = { subject_prefix: 'idp:', organizations: ['acme'], audience: RESOURCE }

export async function benchSignals(words: readonly string[]): Promise<void> {
  const rounds = Number(words[0] ?? ROUNDS)
  const log = createLog({ service: 'bench', level: 'silent' })
  const shutdown = createShutdown({ log, timeoutMs: 20_000 })
  const dataDirectory = await mkdtemp(join(tmpdir(), 'portcullis-bench-'))
  const ports = await choosePorts({})
  const issuer = `http://127.0.0.1:${ports.http}`
  const idp = await startTransmitter(await freePort())
  const upstream = await startUpstream()
  try {
    const settings = pdpSettings({
      issuer,
      adminSecret: ADMIN_SECRET,
      host: '127.0.0.1',
      ports,
      databaseUrl: null,
      dataDirectory,
    })
    await startPdp({ ...settings, internalHosts: [new URL(idp.issuer).host], logLevel: 'silent' }, { log, shutdown })
    const data = await freePort()
    const file = join(dataDirectory, 'routes.yaml')
    await writeFile(file, routeFile({ issuer, idp, upstream: upstream.url, data, grpc: ports.grpc }))
    await startSidecar(
      readConfig({}, { file, listen: `127.0.0.1:${data}`, adminListen: `127.0.0.1:${await freePort()}` }),
      { log, shutdown },
    )
    for (const delivery of ['push', 'poll'] as const) {
      await register(issuer, idp, delivery)
      await measure(idp, { url: `http://127.0.0.1:${data}`, rounds, delivery })
    }
  } finally {
    await shutdown.run('bench')
    await idp.stop()
    upstream.close()
    await rm(dataDirectory, { recursive: true })
  }
}

async function measure(
  idp: Transmitter,
  { url, rounds, delivery }: { url: string; rounds: number; delivery: string },
): Promise<void> {
  const [denials, cuts]: [number[], number[]] = [[], []]
  for (let round = 0; round < rounds; round++) {
    const person = `${delivery}-${round}`
    const headers = { authorization: `Bearer ${await tokenOf(idp, person)}` }
    const response = await fetch(`${url}/streams/1`, { headers })
    const reader = response.body?.getReader()
    await reader?.read()
    const startMs = performance.now()
    const cut = reader
      ?.read()
      .catch(() => undefined)
      .then(() => performance.now() - startMs)
    const subject = { format: 'iss_sub', iss: idp.issuer, sub: person }
    const sent = idp.send(
      idp.claims(CAEP_EVENTS.sessionRevoked, subject, { event_timestamp: Math.floor(Date.now() / 1_000) }),
    )
    const endMs = startMs + WAIT_MS
    while ((await fetch(`${url}/me`, { headers })).status !== 401 && performance.now() < endMs);
    denials.push(performance.now() - startMs)
    cuts.push((await cut) ?? WAIT_MS)
    await sent
  }
  for (const [what, times] of [
    ['first denial', denials],
    ['stream cut', cuts],
  ] as const)
    console.log(`${delivery}: event to ${what}: p50 ${at(times, 0.5)} ms, p99 ${at(times, 0.99)} ms, of ${rounds}`)
}

const at = (times: readonly number[], share: number): string =>
  (times.toSorted((a, b) => a - b)[Math.min(times.length - 1, Math.floor(times.length * share))] ?? 0).toFixed(0)

function tokenOf(idp: Transmitter, sub: string): Promise<string> {
  const now = Math.floor(Date.now() / 1_000)
  const claims = { iss: idp.issuer, sub, aud: RESOURCE, client_id: 'web', jti: sub, iat: now - 1, exp: now + 600 }
  return idp.sign(claims, { typ: 'at+jwt' })
}

async function register(issuer: string, idp: Transmitter, delivery: string): Promise<void> {
  const admin = { issuer, clientId: 'admin', clientSecret: ADMIN_SECRET, scope: 'directory:write issuers:write' }
  const { access_token: token } = await clientToken(admin)
  const send = async (path: string, body: object): Promise<void> => {
    const response = await fetch(`${issuer}${path}`, {
      method: 'PUT',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    })
    if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`)
  }
  await send('/v1/organizations/acme', { name: 'Acme' })
  const authorization = { token_endpoint: `${idp.issuer}/token`, client_id: CLIENT.id, client_secret: CLIENT.secret }
  await send(`/v1/trusted-issuers/${encodeURIComponent(idp.issuer)}`, {
    ...{ ...EXTERNAL, jwks: idp.jwks, algorithms: ['RS256'] },
    ssf: { delivery, authorization },
  })
  const method = delivery === 'push' ? 'urn:ietf:rfc:8935' : 'urn:ietf:rfc:8936'
  const endMs = performance.now() + WAIT_MS
  while ([...idp.streams.values()][0]?.delivery.method !== method) {
    if (performance.now() > endMs) throw new Error('no stream was made')
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}

type Places = { issuer: string; idp: Transmitter; upstream: string; data: number; grpc: number }
const routeFile = ({ issuer, idp, upstream, data, grpc }: Places): string => `portcullis: v1
resource: ${RESOURCE}
public_url: http://127.0.0.1:${data}
issuers:
  - {issuer: "${issuer}"}
  - ${JSON.stringify({ issuer: idp.issuer, jwks_uri: `${idp.issuer}/jwks`, external: EXTERNAL })}
upstream: ${upstream}
pdp: {address: "127.0.0.1:${grpc}", insecure: true}
limits: {pdp_ms: 5000}
routes:
  GET /me: signed_in
  GET /streams/{id}: signed_in
`

async function startUpstream(): Promise<{ readonly url: string; close(): void }> {
  const server = createServer((req, res) => {
    if (req.url?.startsWith('/streams/'))
      res.writeHead(200, { 'content-type': 'text/event-stream' }).write('data: 1\n\n')
    else res.end('me')
  })
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  const address = server.address()
  return {
    url: `http://127.0.0.1:${typeof address === 'object' ? address?.port : 0}`,
    close: () => {
      server.closeAllConnections()
      server.close()
    },
  }
}
