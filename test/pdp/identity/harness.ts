/** An identity service on a real socket and a real database, with a small world to sign in to. */
import { createServer, type Server } from 'node:http'
import { inject } from 'vitest'
import { createPdp } from '../../../pdp/engine/decision-point/create-pdp.ts'
import type { Store } from '../../../pdp/engine/store/contract.ts'
import type { Directory, Sql } from '../../../pdp/engine/store/directory.ts'
import { postgresDirectory } from '../../../pdp/engine/store/postgres/directory.ts'
import { appendJournal } from '../../../pdp/engine/store/postgres/journal.ts'
import { appendEvents } from '../../../pdp/engine/store/postgres/outbox.ts'
import { openPostgres } from '../../../pdp/engine/store/postgres/postgres.ts'
import type { IdentityDeps } from '../../../pdp/identity/deps.ts'
import { createIdentity, type Identity, type IssuerRoutes } from '../../../pdp/identity/identity.ts'
import { storeKey } from '../../../pdp/identity/issuer/keys/signing-keys.ts'
import type { EmbedEntitlements } from '../../../pdp/identity/issuer/tokens/claim-sources.ts'
import { hashGeneratedSecret } from '../../../pdp/identity/people/passwords/password-hash.ts'
import type { ReachAtomically } from '../../../pdp/server/serve/management/deps.ts'
import { createAcceptance } from '../../../pdp/server/serve/management/invitations/acceptance.ts'
import { createNetworks, parseNetwork } from '../../../pdp/shared/base/addresses.ts'
import { masterKeysOf } from '../../../pdp/shared/base/encryption.ts'
import type { Change } from '../../../pdp/shared/domain/change.ts'
import type { Pdp } from '../../../pdp/shared/domain/decision.ts'
import { ENVIRONMENT } from '../../../pdp/shared/domain/journal.ts'
import type { JsonObject } from '../../../pdp/shared/domain/json.ts'
import { createLog, type Log } from '../../../pdp/shared/process/log.ts'
import { openTestDatabase } from '../../support/database.ts'
import { MASTER_KEY } from '../../support/master-key.ts'
import { cheapHash } from '../../support/passwords/cheap-hash.ts'
import { reachOf } from './reach.ts'

export const CONTEXT = { actor: 'test', requestId: 'test' }
export const API = 'https://invoices.example/'
export const REDIRECT = 'https://app.example/cb'
export const NATIVE_REDIRECT = 'com.example.app:/cb'
export const SECRET = 'a-secret-of-the-test-clients-0123456789'
export const PASSWORD = 'correct horse battery staple'
export { MASTER_KEY }
/** Checking it costs next to nothing; cases that measure the work make a slow one. */
export const DECOY_HASH = cheapHash('the secret of nobody')

export type World = {
  readonly issuer: string
  readonly identity: Identity & IssuerRoutes
  readonly sql: Sql
  readonly store: Store
  readonly directory: Directory
  /** As management writes. */
  readonly reach: ReachAtomically
  readonly log: readonly string[]
  /** What the token hook came to, token by token. */
  readonly hookOutcomes: readonly string[]
  /** Shifts the clock that identity reads, or stops it at a moment. */
  readonly time: { offsetMs: number; atMs: number | null }
  putClient(client: {
    id: string
    app?: string | null
    organization?: string | null
    metadata: JsonObject
    secretHash?: string | null
  }): Promise<void>
  close(): Promise<void>
}

export async function openWorld(
  options: {
    embedEntitlements?: EmbedEntitlements
    requireSecondFactor?: true
    mount?: string
    /** Of the issuer; default: its address. */
    host?: 'localhost'
    behindTls?: true // a proxy ends TLS: the issuer is https, and is asked by http
    fetch?: IdentityDeps['fetch']
    /** The service makes its own decoy, as slow as in production. */
    slowDecoy?: true
    decoyHash?: string
    trustedProxies?: readonly string[]
    /** Mail and known passwords. */
    account?: IdentityDeps['account']
    /** Of identity providers; by default loopback. */
    internalHosts?: readonly string[]
    clientDocuments?: IdentityDeps['clientDocuments']
    /** Of a whole request. Without it, a busy machine may take its time. */
    deadlineMs?: number
    /** Makes the PDP that identity asks slower, or otherwise different. */
    pdp?: (pdp: Pdp) => Pdp
  } = {},
): Promise<World> {
  const database = await openTestDatabase()
  const { sql, store, atomically } = await openPostgres({
    connectionString: database.connectionString,
    poolCountMax: 8,
  })
  const directory = postgresDirectory(sql)
  const lines: string[] = []
  const hookOutcomes: string[] = []
  const time: World['time'] = { offsetMs: 0, atMs: null }
  let routes: IssuerRoutes | undefined
  const server = createServer(async (req, res) => {
    if (await routes?.handle(req, res, options.deadlineMs)) return
    res.statusCode = 404
    res.end('not ours')
  })
  const issuer = `${options.behindTls ? 'https' : 'http'}://${options.host ?? '127.0.0.1'}:${await listen(server)}${options.mount ?? ''}`
  for (const key of inject('signingKeys')) await storeKey(sql, key)
  const identity = await createIdentity({
    issuer,
    sql,
    store,
    directory,
    pdp: (options.pdp ?? ((pdp) => pdp))(createPdp({ store })),
    appendJournal,
    appendEvents,
    fetch: options.fetch ?? globalThis.fetch,
    onHookOutcome: (outcome) => void hookOutcomes.push(outcome),
    masterKeys: masterKeysOf(MASTER_KEY),
    ...(options.slowDecoy ? {} : { decoyHash: options.decoyHash ?? DECOY_HASH }),
    clock: () => time.atMs ?? Date.now() + time.offsetMs,
    log: logInto(lines),
    trustedProxies: createNetworks((options.trustedProxies ?? []).map(parseNetwork)),
    ...(options.account === undefined ? {} : { account: options.account }),
    internalHosts: options.internalHosts ?? ['127.0.0.1'],
    ...(options.clientDocuments === undefined ? {} : { clientDocuments: options.clientDocuments }),
    ...(options.requireSecondFactor === true ? { requireSecondFactor: true } : {}),
    ...(options.embedEntitlements === undefined ? {} : { embedEntitlements: options.embedEntitlements }),
  })
  const reach = reachOf(atomically, identity.within)
  routes = identity.routes(createAcceptance({ atomically: reach, find: identity.invitations.find }))
  await seed(store, directory)
  return {
    issuer,
    identity: { ...identity, ...routes },
    sql,
    store,
    directory,
    reach,
    log: lines,
    hookOutcomes,
    time,
    putClient: (client) => directory.putClient({ app: null, organization: null, ...client }, CONTEXT),
    async close() {
      await identity.close()
      server.closeAllConnections()
      await new Promise((done) => server.close(done))
      await store.close()
      await database.drop()
    },
  }
}

export function logInto(lines: string[]): Log {
  return createLog({ service: 'test', level: 'info', destination: { write: (line) => void lines.push(line) } })
}

async function listen(server: Server): Promise<number> {
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('not listening')
  return address.port
}

const organization = (id: string, name: string, parent: string | null = null): Change => ({
  kind: 'organization',
  id,
  organization: { id, name, parent },
})
const member = (
  user: string,
  role: 'owner' | 'developer' | 'viewer',
  status: 'active' | 'invited' | 'suspended',
): Change => ({
  kind: 'membership',
  user,
  membership: { role, status },
})
const grant = (id: string, role: string, subject: string, app: string | null): Change => ({
  kind: 'role_grant',
  op: 'write',
  grant: { id, app, role, subject },
})

/** Organizations, people and clients of these tests. */
export async function seed(store: Store, directory: Directory): Promise<void> {
  const write = (log: string, changes: readonly Change[]) => store.write(log, changes, { context: CONTEXT })
  await write(ENVIRONMENT, [organization('acme', 'Acme & Co'), organization('beta', 'Beta')])
  await write(ENVIRONMENT, [organization('acme-eu', 'Acme Europe', 'acme')])
  await write(ENVIRONMENT, [
    {
      kind: 'manifest',
      manifest: {
        app: 'invoices',
        audiences: [API],
        permissions: { 'invoices:approve': 'Approve', 'invoices:read': 'Read' },
        roles: { approver: { name: 'Approver', permissions: ['invoices:approve', 'invoices:read'] } },
        model: null,
      },
    },
    { kind: 'role', key: 'auditor', role: { key: 'auditor', name: 'Auditor', permissions: ['logs:read'] } },
  ])
  const passwordHash = cheapHash(PASSWORD)
  for (const id of ['ann', 'bob', 'cy', 'dan', 'eve', 'gus']) {
    const user = { id, email: `${id}@x.example`, emailVerified: true, name: id.toUpperCase() }
    await directory.putUser({ ...user, passwordHash: id === 'gus' ? null : passwordHash }, CONTEXT)
  }
  await write('acme', [
    member('ann', 'owner', 'active'),
    member('bob', 'owner', 'suspended'),
    member('dan', 'viewer', 'invited'),
    member('eve', 'developer', 'active'),
    grant('g1', 'approver', 'user:ann', 'invoices'),
    grant('g2', 'auditor', 'user:ann', null),
    grant('g3', 'auditor', 'service:robot', null),
    { kind: 'entitlement', key: 'feature.sso', entitlement: { value: { enabled: true }, enforcement: 'Claims' } },
    { kind: 'entitlement', key: 'feature.live', entitlement: { value: { enabled: true }, enforcement: 'DecisionApi' } },
  ])
  await write('beta', [member('ann', 'viewer', 'active'), member('bob', 'developer', 'active')])
  await seedClients(directory)
}

async function seedClients(directory: Directory): Promise<void> {
  const secretHash = hashGeneratedSecret(SECRET)
  const put = (id: string, client: { app?: string; organization?: string; metadata: JsonObject; public?: true }) =>
    directory.putClient(
      {
        id,
        app: client.app ?? null,
        organization: client.organization ?? null,
        metadata: client.metadata,
        secretHash: client.public ? null : secretHash,
      },
      CONTEXT,
    )
  const scope = 'openid profile email groups organizations offline_access orders:read'
  await put('web', { metadata: { client_name: 'Web <b>', redirect_uris: [REDIRECT], scope } })
  await put('invoices-web', { app: 'invoices', metadata: { redirect_uris: [REDIRECT], scope } })
  await put('tenant-web', { organization: 'acme', metadata: { redirect_uris: [REDIRECT], scope } })
  await put('spa', { public: true, metadata: { redirect_uris: [REDIRECT], scope, token_endpoint_auth_method: 'none' } })
  await put('native', {
    public: true,
    metadata: {
      redirect_uris: [NATIVE_REDIRECT],
      scope,
      token_endpoint_auth_method: 'none',
      application_type: 'native',
    },
  })
  await seedFlows(put, scope)
  const service = { grant_types: ['client_credentials'], scope: 'decisions:read decisions:ask orders:read' }
  await put('robot', { organization: 'acme', app: 'invoices', metadata: service })
  await put('free-robot', { metadata: service })
  await put('no-scope', { metadata: { grant_types: ['client_credentials'] } })
  await put('dpop-robot', { metadata: { ...service, dpop_bound_access_tokens: true } })
  await put('public-robot', { public: true, metadata: { ...service, token_endpoint_auth_method: 'none' } })
}

/** POST to the token endpoint by hand, for what no good client would send. */
export async function postToken(
  world: Pick<World, 'issuer'>,
  form: { readonly [name: string]: string } | URLSearchParams,
  options: { id?: string; secret?: string; headers?: { readonly [name: string]: string } } = {},
): Promise<{ status: number; headers: Headers; body: JsonObject }> {
  const { id, secret = SECRET } = options
  const authorization = `Basic ${Buffer.from(`${id}:${secret}`).toString('base64')}`
  const response = await fetch(`${world.issuer}/oauth/token`, {
    method: 'POST',
    headers: { ...(id === undefined ? {} : { authorization }), ...options.headers },
    body: new URLSearchParams(form),
  })
  return { status: response.status, headers: response.headers, body: parseObject(await response.text()) }
}

export const parseObject = (text: string): JsonObject => JSON.parse(text)

/** Header and payload, unverified. */
export function decode(jwt: string): { header: JsonObject; payload: JsonObject } {
  const [header = '', payload = ''] = jwt.split('.').map((part) => Buffer.from(part, 'base64url').toString())
  return { header: parseObject(header), payload: parseObject(payload) }
}

const DEVICE_CODE = 'urn:ietf:params:oauth:grant-type:device_code'
const CIBA = 'urn:openid:params:grant-type:ciba'
const EXCHANGE = 'urn:ietf:params:oauth:grant-type:token-exchange'
export const GRANTS = ['authorization_code', 'refresh_token', DEVICE_CODE, CIBA, EXCHANGE]
type PutClient = (
  id: string,
  client: { app?: string; organization?: string; metadata: JsonObject; public?: true },
) => Promise<void>

/** Clients with every grant of a person: one confidential, one public, one of a tenant. */
async function seedFlows(put: PutClient, scope: string): Promise<void> {
  const metadata = { redirect_uris: [REDIRECT], scope, grant_types: GRANTS, post_logout_redirect_uris: [REDIRECT] }
  await put('flows', { app: 'invoices', metadata: { ...metadata, client_name: 'Flows', exchange_resources: [API] } })
  await put('tenant-flows', { organization: 'acme', app: 'invoices', metadata })
  await put('public-flows', { public: true, metadata: { ...metadata, token_endpoint_auth_method: 'none' } })
  await put('gateway', {
    metadata: {
      ...{ scope, grant_types: [EXCHANGE] },
      exchange_clients: ['flows', 'tenant-flows', 'public-flows'],
      exchange_resources: [API],
    },
  })
}
