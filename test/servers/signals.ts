/** A transmitter of others, Keycloak, read by our receiver: what it ends is refused by a sidecar, by poll and by push. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { startPdp } from '../../pdp/server/runtime/start.ts'
import { createLog } from '../../pdp/shared/process/log.ts'
import { createShutdown } from '../../pdp/shared/process/shutdown.ts'
import { readConfig } from '../../sidecar/config/config.ts'
import { startSidecar } from '../../sidecar/runtime/start.ts'
import { choosePorts } from '../e2e/demo-stack.ts'
import { pdpSettings } from '../e2e/pdp-settings.ts'
import { freePort } from '../support/free-port.ts'
import { clientToken } from '../support/sign-in.ts'
import { AUDIENCE, type Keycloak, keycloakHome, RECEIVER, SCOPE, startKeycloak } from './keycloak.ts'

const RESOURCE = 'https://orders.test'
export const ADMIN_SECRET = 'the-secret-of-the-administrator'
const WAIT_MS = 120_000
const ENTRY = {
  subject_prefix: 'kc:',
  organizations: ['acme'],
  audience: AUDIENCE,
  typ: 'JWT',
  claims: { client: 'azp' },
}
export type Told = { readonly outcome: 'passed' | 'failed' | 'skipped'; readonly what: string; readonly why: string }

/** One outcome for each delivery and event. */
export async function testSignals(): Promise<readonly Told[]> {
  const found = keycloakHome()
  if (typeof found === 'string') return [{ outcome: 'skipped', what: 'signals of Keycloak', why: found }]
  const ports = await choosePorts({})
  const issuer = `http://127.0.0.1:${ports.http}`
  const keycloak = await startKeycloak(found.home, { port: await freePort(), pushUrl: issuer })
  const log = createLog({ service: 'servers', level: 'silent' })
  const shutdown = createShutdown({ log, timeoutMs: 20_000 })
  const dataDirectory = await mkdtemp(join(tmpdir(), 'portcullis-servers-'))
  const upstream = createServer((_req, res) => res.end('me'))
  try {
    const given = { issuer, adminSecret: ADMIN_SECRET, host: '127.0.0.1', ports, databaseUrl: null, dataDirectory }
    const config = { ...pdpSettings(given), internalHosts: ['127.0.0.1'] }
    await startPdp(config, { log, shutdown })
    await new Promise<void>((done) => upstream.listen(0, '127.0.0.1', done))
    const address = upstream.address()
    const service = `http://127.0.0.1:${typeof address === 'object' ? address?.port : 0}`
    const data = await freePort()
    const file = join(dataDirectory, 'routes.yaml')
    await writeFile(file, routeFile({ issuer, keycloak, service, data, grpc: ports.grpc }))
    const listen = { listen: `127.0.0.1:${data}`, adminListen: `127.0.0.1:${await freePort()}` }
    await startSidecar(readConfig({}, { file, ...listen }), { log, shutdown })
    const send = await managerOf(issuer, 'directory:write issuers:write')
    await send('PUT', '/v1/organizations/acme', { name: 'Acme' })
    const told: Told[] = []
    for (const delivery of ['poll', 'push'] as const)
      told.push(...(await follow(keycloak, { send, delivery, url: `http://127.0.0.1:${data}/me` })))
    return told
  } finally {
    await shutdown.run('servers')
    upstream.closeAllConnections()
    upstream.close()
    keycloak.stop()
    await rm(dataDirectory, { recursive: true, force: true })
  }
}

export type Send = (method: string, path: string, body?: object) => Promise<{ readonly [member: string]: unknown }>

async function follow(
  keycloak: Keycloak,
  { send, delivery, url }: { readonly send: Send; readonly delivery: 'poll' | 'push'; readonly url: string },
): Promise<readonly Told[]> {
  const { issuer } = keycloak
  const path = `/v1/trusted-issuers/${encodeURIComponent(issuer)}`
  const authorization = {
    token_endpoint: `${issuer}/protocol/openid-connect/token`,
    client_id: RECEIVER.id,
    client_secret: RECEIVER.secret,
    scope: SCOPE,
  }
  const sinceMs = Date.now()
  await send('PUT', path, {
    ...ENTRY,
    jwks_uri: `${issuer}/protocol/openid-connect/certs`,
    algorithms: ['RS256'],
    resource: RESOURCE,
    ssf: { delivery, authorization },
  })
  let state: { readonly [member: string]: unknown } = {}
  const isHeard = await until(async () => {
    state = await send('GET', `${path}/signals`)
    return state.delivery === delivery && state.error === null && Date.parse(String(state.heard_at)) > sinceMs
  })
  const what = (event: string): string => `Keycloak, ${event} by ${delivery}`
  if (!isHeard) return [{ outcome: 'failed', what: what('a stream'), why: JSON.stringify(state) }]
  const told: Told[] = [{ outcome: 'passed', what: what('a stream and its verification'), why: '' }]
  for (const [event, cause] of [
    ['sessions that end', keycloak.endSessions],
    ['a password that is set', keycloak.setPassword],
  ] as const) {
    const token = await keycloak.signIn()
    const status = async () => (await fetch(url, { headers: { authorization: `Bearer ${token}` } })).status
    // What ended before counts up to the end of its second.
    const isLetIn = (await status()) === 200
    const startMs = performance.now()
    await cause()
    const isOut = await until(async () => (await status()) === 401)
    const took = `${((performance.now() - startMs) / 1_000).toFixed(1)} s from the call to the refusal`
    const why = isLetIn ? (isOut ? took : 'the token is still accepted') : 'the token was not accepted before'
    told.push({ outcome: isLetIn && isOut ? 'passed' : 'failed', what: what(event), why })
    await delay(1_100)
  }
  return told
}

export async function until(isTrue: () => Promise<boolean>): Promise<boolean> {
  const endMs = performance.now() + WAIT_MS
  while (performance.now() < endMs) {
    if (await isTrue().catch(() => false)) return true
    await delay(100)
  }
  return false
}

/** Calls the management API as the administrator of `issuer`, whose secret is ADMIN_SECRET, with these scopes. */
export async function managerOf(issuer: string, scope: string): Promise<Send> {
  const admin = { issuer, clientId: 'admin', clientSecret: ADMIN_SECRET, scope }
  const { access_token: token } = await clientToken(admin)
  return async (method, path, body) => {
    const response = await fetch(`${issuer}${path}`, {
      method,
      headers: { authorization: `Bearer ${token}`, ...(body && { 'content-type': 'application/json' }) },
      ...(body && { body: JSON.stringify(body) }),
    })
    const text = await response.text()
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`)
    return text === '' ? {} : JSON.parse(text)
  }
}

type Places = { issuer: string; keycloak: Keycloak; service: string; data: number; grpc: number }
const routeFile = ({ issuer, keycloak, service, data, grpc }: Places): string => `portcullis: v1
resource: ${RESOURCE}
public_url: http://127.0.0.1:${data}
issuers:
  - {issuer: "${issuer}"}
  - ${JSON.stringify({ issuer: keycloak.issuer, external: ENTRY })}
upstream: ${service}
pdp: {address: "127.0.0.1:${grpc}", insecure: true}
limits: {pdp_ms: 5000}
routes:
  GET /me: signed_in
`
