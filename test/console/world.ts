/** A PDP with its console, and what there is to see in it: two tenants, people with different rights, and hostile names. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { postgresDirectory } from '../../pdp/engine/store/postgres/directory.ts'
import { openPostgres } from '../../pdp/engine/store/postgres/postgres.ts'
import { SERVICE_SCOPES } from '../../pdp/identity/oauth/scopes.ts'
import { startPdp } from '../../pdp/server/runtime/start.ts'
import { createLog } from '../../pdp/shared/process/log.ts'
import { createShutdown } from '../../pdp/shared/process/shutdown.ts'
import { createStream } from '../../pdp/signals/transmitter/streams.ts'
import { choosePorts, startDemoSidecar } from '../e2e/demo-stack.ts'
import { startInvoicesApi } from '../e2e/invoices-api.ts'
import { pdpSettings } from '../e2e/pdp-settings.ts'
import type { Json } from '../pdp/server/serve/harness.ts'
import { freePort } from '../support/free-port.ts'
import { clientToken, signIn } from '../support/sign-in.ts'
import { context } from '../support/tuples.ts'

const HOST = '127.0.0.1'
const ADMIN_SECRET = 'the-secret-of-the-administrator'
export const PASSWORD = 'correct horse battery staple'
/** What an id may hold at worst: markup, a text that runs from right to left, and the longest of all. */
export const HOSTILE = {
  markup: `doc:"><script>alert(1)</script>&'`,
  bidi: 'doc:a\u202Etxt.exe',
  long: `doc:${'w'.repeat(256)}`,
}
export const MODEL = `model
  schema 1.1
type user
type group
  relations
    define member: [user, group#member]
type folder
  relations
    define viewer: [user, group#member]
type doc
  relations
    define parent: [folder]
    define banned: [user]
    define editor: [user, group#member]
    define viewer: ([user, user:*, group#member] or editor or viewer from parent) but not banned
`
const RESOURCE = 'https://docs.example'
const CLIENT = { id: 'docs-app', redirectUri: 'https://app.docs.example/callback' }
const ROUTE_FILE = (at: { issuer: string; upstream: string; grpc: string; sidecar: string }): string => `portcullis: v1
resource: ${RESOURCE}
public_url: ${at.sidecar}
issuers: [{issuer: "${at.issuer}"}]
upstream: ${at.upstream}
pdp: {address: "${at.grpc}", insecure: true}
routes:
  GET /health: public
  GET /docs/{id}: viewer doc:{id}
  PUT /docs/{id}: editor doc:{id}
  DELETE /docs/{id}: {check: "editor doc:{id}", mode: shadow}
  GET /docs/{id}/export: {all: ["viewer doc:{id}", entitlement feature.export]}
  GET /folders/{id}/Plans: viewer folder:{id}
  FETCH /docs/{id}: viewer doc:{id}
tests:
  - request: GET /docs/1
    as: {sub: bob, org: acme}
    expect: {route: "GET /docs/{id}", asks: ["viewer doc:1"]}
  - request: GET /docs/2
    as: {sub: bob, org: acme}
    expect: {route: "GET /docs/{id}"}
  - request: GET /health
    expect: {route: GET /health}
`
/** With a role everywhere, in acme, in globex, and without one. */
export const PEOPLE = ['root', 'anna', 'tom', 'bob'] as const
export type PersonId = (typeof PEOPLE)[number]
export const emailOf = (person: string): string => `${person}@acme.example`

export type World = {
  readonly issuer: string
  readonly adminToken: string
  readonly logged: string[]
  /** The folder of the mails that were sent. */
  readonly mails: string
  manage(method: string, path: string, body?: object): Promise<Json>
  /** A request of Bob through the sidecar. */
  send(method: string, path: string, requestId: string): Promise<Response>
  /** A question about Bob, as a client of acme asks it, with this request id. */
  ask(question: { readonly requestId: string; readonly relation: string; readonly resource: string }): Promise<Response>
  close(): Promise<void>
}

export async function startWorld(databaseUrl: string): Promise<World> {
  const ports = await choosePorts({})
  const dataDirectory = await mkdtemp(join(tmpdir(), 'portcullis-console-'))
  const issuer = `http://${HOST}:${ports.http}`
  const logged: string[] = []
  const destination = { write: (line: string) => void logged.push(line) }
  const log = createLog({ service: 'test', level: 'info', destination })
  const mails = join(dataDirectory, 'mail')
  const shutdown = createShutdown({ log, timeoutMs: 20_000 })
  const settings = pdpSettings({ issuer, adminSecret: ADMIN_SECRET, host: HOST, ports, databaseUrl, dataDirectory })
  const { grpcAddress } = await startPdp(
    { ...settings, console: true, decisionsKept: 1_000, decisionsKeptDays: 7, mail: { folder: mails } },
    { log, shutdown },
  )
  const scope = SERVICE_SCOPES.join(' ')
  const token = async (organization?: string): Promise<string> =>
    (
      await clientToken({
        issuer,
        clientId: 'admin',
        clientSecret: ADMIN_SECRET,
        scope,
        ...(organization === undefined ? {} : { organization }),
      })
    ).access_token
  const adminToken = await token()
  const manage: World['manage'] = async (method, path, body) => {
    const json = body === undefined ? {} : { 'content-type': 'application/json' }
    const sent = body === undefined ? {} : { body: JSON.stringify(body) }
    const headers = { authorization: `Bearer ${adminToken}`, ...json }
    const response = await fetch(issuer + path, { method, headers, ...sent })
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`)
    const text = await response.text()
    return text === '' ? null : JSON.parse(text)
  }
  await fill(manage)
  await fillStreams(databaseUrl)
  const asking = await token('acme')
  const sidecarUrl = `http://${HOST}:${ports.sidecar}`
  const api = await startInvoicesApi(HOST)
  shutdown.add('service', api.close)
  const path = join(dataDirectory, 'routes.yaml')
  await writeFile(path, ROUTE_FILE({ issuer, upstream: api.url, grpc: grpcAddress, sidecar: sidecarUrl }))
  const [listen, adminListen] = [`${HOST}:${ports.sidecar}`, `${HOST}:${await freePort()}`]
  await startDemoSidecar({ path, listen, adminListen, log, shutdown })
  const { tokens } = await signIn({
    issuer,
    clientId: CLIENT.id,
    redirectUri: CLIENT.redirectUri,
    email: emailOf('bob'),
    password: PASSWORD,
    resource: RESOURCE,
    organization: 'acme',
  })
  return {
    issuer,
    adminToken,
    logged,
    mails,
    manage,
    send: (method, target, requestId) =>
      fetch(sidecarUrl + target, {
        method,
        headers: { authorization: `Bearer ${tokens.access_token}`, 'x-request-id': requestId },
      }),
    ask: ({ requestId, relation, resource }) =>
      fetch(`${issuer}/oauth/decisions`, {
        method: 'POST',
        headers: { authorization: `Bearer ${asking}`, 'content-type': 'application/json', 'x-request-id': requestId },
        body: JSON.stringify({ subject: { type: 'user', id: 'bob' }, permissions: [{ relation, resource }] }),
      }),
    async close() {
      await shutdown.run('test over')
      await rm(dataDirectory, { recursive: true, force: true })
    },
  }
}

async function fill(manage: World['manage']): Promise<void> {
  for (const [id, name, parent] of [
    ['acme', 'Acme', null],
    ['acme~eu', 'Acme Europe', 'acme'],
    ['globex', 'Globex', null],
  ] as const)
    await manage('PUT', `/v1/organizations/${id}`, parent === null ? { name } : { name, parent })
  await manage('PUT', '/v1/apps/docs/manifest', {
    audiences: ['https://docs.example'],
    permissions: { 'docs:export': 'Export documents' },
    roles: { exporter: { name: 'Exporter', permissions: ['docs:export'] } },
    model: MODEL,
  })
  await manage('PUT', `/v1/clients/${CLIENT.id}`, {
    app: 'docs',
    redirect_uris: [CLIENT.redirectUri],
    token_endpoint_auth_method: 'none',
    scope: 'openid',
  })
  for (const person of PEOPLE)
    await manage('PUT', `/v1/users/${person}`, {
      name: person,
      email: emailOf(person),
      email_verified: true,
      password: PASSWORD,
    })
  for (const [org, person] of [
    ['acme', 'anna'],
    ['acme', 'bob'],
    ['globex', 'tom'],
  ] as const)
    await manage('PUT', `/v1/organizations/${org}/members/${person}`, { role: 'member', status: 'active' })
  const grant = (path: string, role: string, person: string): Promise<Json> =>
    manage('POST', `${path}/role-grants`, { app: 'portcullis', role, subject: `user:${person}` })
  await grant('/v1', 'administrator', 'root')
  await grant('/v1/organizations/acme', 'editor', 'anna')
  await grant('/v1/organizations/globex', 'auditor', 'tom')
  await manage('PUT', '/v1/organizations/acme/entitlements/feature.export', { value: true })
  await manage('POST', '/v1/organizations/acme/relationships', {
    write: [
      'doc:1#viewer@user:anna',
      'doc:2#viewer@group:finance#member',
      'group:finance#member@group:accounting#member',
      'group:accounting#member@user:bob',
      'doc:3#parent@folder:plans',
      'folder:plans#viewer@group:finance#member',
      'doc:3#banned@user:bob',
      { object: 'doc:4', relation: 'editor', subject: 'user:anna', expires_at: '2099-01-31T12:00:00Z' },
      ...Object.values(HOSTILE).map((object) => ({ object, relation: 'viewer', subject: 'user:bob' })),
      ...Object.values(HOSTILE).map((id) => ({
        object: 'doc:5',
        relation: 'viewer',
        subject: id.replace('doc:', 'user:'),
      })),
    ],
  })
  await manage('POST', '/v1/organizations/acme/invitations', {
    email: 'dora@elsewhere.example',
    role: 'developer',
    roles: [{ app: 'docs', role: 'exporter' }],
  })
  await manage('POST', '/v1/organizations/globex/relationships', { write: ['doc:secret-of-globex#viewer@user:tom'] })
}

/** Of one that fails, and one whose receiver polls. */
const STREAMS = [
  ['failing', 'acme', 'https://siem.acme.example/events'],
  ['polling', null, null],
] as const

export async function fillStreams(
  connectionString: string,
  streams: readonly (readonly [client: string, organization: string | null, endpointUrl: string | null])[] = STREAMS,
): Promise<void> {
  const { sql, close } = await openPostgres({ connectionString })
  for (const [client, organization, endpointUrl] of streams) {
    await postgresDirectory(sql).putClient({ id: client, app: null, organization, metadata: {} }, context)
    const request = {
      authorizationSealed: null,
      eventsRequested: null,
      subjectFormat: 'complex',
      description: null,
    } as const
    const id = `stream-of-${client}`
    await createStream(sql, { client, organization }, { id, endpointUrl, ...request })
  }
  await sql.query(
    `update signal_stream set attempts_count = 3, failing_since = now(), next_attempt_at = now() + interval '1 hour',
       last_error = 'answered 503', last_error_at = now() where endpoint_url is not null`,
  )
  await close()
}
