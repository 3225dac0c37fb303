/** The PDP's servers over a real database, with tokens whose state a test decides. */
import { randomUUID } from 'node:crypto'
import { UnsecuredJWT } from 'jose'
import { pino } from 'pino'
import { createPdp } from '../../../../pdp/engine/decision-point/create-pdp.ts'
import type { EntitlementSource, Store } from '../../../../pdp/engine/store/contract.ts'
import type { Directory, Sql } from '../../../../pdp/engine/store/directory.ts'
import { storeEntitlements } from '../../../../pdp/engine/store/entitlements/store-source.ts'
import { postgresDirectory } from '../../../../pdp/engine/store/postgres/directory.ts'
import { appendJournal } from '../../../../pdp/engine/store/postgres/journal.ts'
import { appendEvents } from '../../../../pdp/engine/store/postgres/outbox.ts'
import { postgresProvisioning } from '../../../../pdp/engine/store/postgres/people/provisioning.ts'
import { openPostgres } from '../../../../pdp/engine/store/postgres/postgres.ts'
import { postgresMoves } from '../../../../pdp/engine/store/postgres/tree/moves.ts'
import { controlsWithin } from '../../../../pdp/identity/controls.ts'
import { createFrames } from '../../../../pdp/identity/html/frame.ts'
import { createPublicPages } from '../../../../pdp/identity/html/public-pages.ts'
import { createEvents } from '../../../../pdp/identity/issuer/outbox-reader.ts'
import { createExternalIssuers } from '../../../../pdp/identity/issuer/tokens/external-issuers.ts'
import { createRevocations, type Revocations } from '../../../../pdp/identity/issuer/tokens/revocation.ts'
import { createTokenHook } from '../../../../pdp/identity/issuer/tokens/token-hook.ts'
import type { TokenState } from '../../../../pdp/identity/issuer/tokens/token-state.ts'
import { SERVICE_SCOPES } from '../../../../pdp/identity/oauth/scopes.ts'
import { createSecondFactor } from '../../../../pdp/identity/people/factors/second-factor.ts'
import { createInvitations } from '../../../../pdp/identity/people/invitations/invitations.ts'
import { createDeliveries } from '../../../../pdp/identity/people/mail/deliveries.ts'
import type { Mailer } from '../../../../pdp/identity/people/mail/mail.ts'
import { createIdentityProviders } from '../../../../pdp/identity/people/upstream-providers/providers.ts'
import { reachAtomically } from '../../../../pdp/server/runtime/write-transaction.ts'
import { type Admission, createAdmission } from '../../../../pdp/server/serve/authentication/admission.ts'
import { createCallers } from '../../../../pdp/server/serve/authentication/grpc-callers.ts'
import type { VerifyServiceAccount } from '../../../../pdp/server/serve/authentication/service-account.ts'
import { admitted, createAnswerQuestion } from '../../../../pdp/server/serve/decisions/answer.ts'
import { readDenied } from '../../../../pdp/server/serve/decisions/decision-archive.ts'
import { logDecisions } from '../../../../pdp/server/serve/decisions/decision-log.ts'
import { observeAnswers } from '../../../../pdp/server/serve/decisions/observed-answers.ts'
import { createWatchedQuestions } from '../../../../pdp/server/serve/decisions/watched-questions.ts'
import { type GrpcServer, startGrpcServer } from '../../../../pdp/server/serve/grpc/server.ts'
import type { ReloadedTls } from '../../../../pdp/server/serve/grpc/tls.ts'
import type { Deadlines } from '../../../../pdp/server/serve/http/deadline.ts'
import type { IdentityHandler } from '../../../../pdp/server/serve/http-server.ts'
import { createHttpServer, type HttpServer, listenHttp } from '../../../../pdp/server/serve/http-server.ts'
import { createNetworks, parseNetwork } from '../../../../pdp/shared/base/addresses.ts'
import { masterKeysOf } from '../../../../pdp/shared/base/encryption.ts'
import { createGuardedPost } from '../../../../pdp/shared/base/guarded-post.ts'
import type { Pdp } from '../../../../pdp/shared/domain/decision.ts'
import { ENVIRONMENT } from '../../../../pdp/shared/domain/journal.ts'
import type { JsonObject } from '../../../../pdp/shared/domain/json.ts'
import { createProofVerifier } from '../../../../pdp/shared/token/dpop.ts'
import { processReplayMemory } from '../../../../pdp/shared/token/replay.ts'
import {
  createTransmitter,
  type Transmitter,
  type TransmitterDeps,
} from '../../../../pdp/signals/transmitter/transmitter.ts'
import { openTestDatabase } from '../../../support/database.ts'
import { ACTIVE } from './active-token.ts'

export const ISSUER = 'https://id.example.test'
export const CONTEXT = { actor: 'test', requestId: 'test' }
type Active = Extract<TokenState, { active: true }>

export type Served = {
  readonly sql: Sql
  readonly url: string
  readonly http: HttpServer
  readonly grpc: GrpcServer
  readonly store: Store
  readonly directory: Directory
  readonly pdp: Pdp
  readonly transmitter: Transmitter
  readonly sessions: Revocations
  readonly logged: readonly { readonly [member: string]: unknown }[]
  /** Introspections so far, by token. */
  readonly asked: readonly string[]
  /** Makes a token of that state; the client is not created. */
  token(state: Partial<Active>): string
  setState(token: string, state: TokenState): void
  /** A client_credentials token for the issuer, with every scope unless told otherwise. Its client exists. */
  manager(options?: { client?: string; organization?: string; scopes?: readonly string[] }): Promise<string>
  send(method: string, path: string, options?: SendOptions): Promise<Answer>
  close(): Promise<void>
}
export type SendOptions = { token?: string; body?: unknown; headers?: { [name: string]: string }; raw?: string }
export type Answer = { readonly status: number; readonly headers: Headers; readonly body: Json }
/** JSON of an answer, as loosely typed as a test needs it. */
// biome-ignore lint/suspicious/noExplicitAny: what the server sent is judged by the expectations
export type Json = any

export async function serve(
  options: {
    readonly tls?: ReloadedTls
    readonly serviceAccounts?: VerifyServiceAccount
    readonly grpcHost?: string
    readonly bodyTimeoutMs?: number
    readonly entitlements?: (store: Store) => EntitlementSource
    readonly admission?: Admission
    readonly deadlines?: Deadlines
    readonly grpcDeadlineMs?: number
    /** Stands between the servers and what tokens are. */
    readonly recognize?: (token: string, introspect: (token: string) => Promise<TokenState>) => Promise<TokenState>
    readonly handle?: IdentityHandler['handle']
    readonly signals?: Partial<TransmitterDeps>
    readonly mailer?: Mailer
    /** Connections of each of the two pools. */
    readonly poolCountMax?: number
  } = {},
): Promise<Served> {
  const database = await openTestDatabase()
  const { sql, store, atomically, close } = await openPostgres({
    connectionString: database.connectionString,
    ...(options.poolCountMax !== undefined && { poolCountMax: options.poolCountMax }),
  })
  const directory = postgresDirectory(sql)
  const entitlements = options.entitlements?.(store) ?? storeEntitlements(store)
  const pdp = createPdp({ store, entitlements, exists: (...asked) => directory.exists(...asked) })
  const tokens = new Map<string, TokenState>()
  const asked: string[] = []
  const logged: { [member: string]: unknown }[] = []
  const log = pino({ level: 'info' }, { write: (line: string) => void logged.push(JSON.parse(line)) })
  const introspect = async (token: string): Promise<TokenState> => {
    asked.push(token)
    return tokens.get(token) ?? { active: false }
  }
  const parts = {
    issuer: ISSUER,
    sql,
    appendJournal,
    appendEvents,
    log,
    fetch,
    clock: Date.now,
    masterKeys: masterKeysOf(Buffer.alloc(32, 1)),
    mailer: options.mailer ?? null,
    deliveries: createDeliveries({ log }),
  }
  const endings = createRevocations({ sql, appendEvents, clock: Date.now })
  const identity = {
    introspect,
    recognize: introspect,
    verifyProof: createProofVerifier({
      clock: Date.now,
      replay: processReplayMemory({ clock: Date.now, entriesMax: 1_000 }),
    }),
    handle: options.handle ?? (async () => false),
    publicPages: createPublicPages({ issuer: 'https://id.example', frameOf: createFrames('https://id.example') }),
    signStatement: async (claims: JsonObject) => new UnsecuredJWT({ ...claims }).encode(),
    validateClient: async () => undefined,
    sessions: endings,
    secondFactor: createSecondFactor({ ...parts, directory, revocations: endings }),
    events: createEvents({ sql }),
    hook: createTokenHook({ ...parts, onOutcome: () => undefined }),
    issuers: createExternalIssuers(parts),
    invitations: createInvitations(parts),
    identityProviders: createIdentityProviders(parts),
  }
  // A busy machine may take its time.
  const { admission = createAdmission({ clock: () => performance.now(), deadlineMs: 30_000 }) } = options
  const ask = createAnswerQuestion({ pdp, directory, randomId: randomUUID })
  const clocks = { clock: Date.now, monotonic: () => performance.now() }
  const answer = observeAnswers(admitted(ask, admission), [logDecisions(log)], clocks)
  const transmitter = createTransmitter({
    ...parts,
    signSet: async (claims) => ({ token: new UnsecuredJWT({ ...claims }).encode(), kid: 'none' }),
    publishedKids: () => new Set(['none']),
    post: createGuardedPost({ internalHosts: ['127.0.0.1'] }),
    random: Math.random,
    onOutcome: () => undefined,
    ...options.signals,
  })
  const app = await createHttpServer({
    identity,
    transmitter,
    pdp,
    store,
    entitlements,
    directory,
    moves: postgresMoves(sql),
    provisioning: postgresProvisioning(sql),
    atomically: reachAtomically(atomically, {
      identity: (at) => ({ ...controlsWithin({ ...parts, ...at }, identity.hook), introspect }),
      transmitter,
    }),
    answer,
    archive: { denied: readDenied(sql) },
    trustedProxies: createNetworks([parseNetwork('127.0.0.1')]),
    issuer: ISSUER,
    log,
    bodyTimeoutMs: options.bodyTimeoutMs ?? 30_000,
    deadlines: options.deadlines ?? { decisionMs: 30_000, callMs: 30_000 },
    observe: () => undefined,
  })
  const http = await listenHttp(app, { host: '127.0.0.1', port: 0 })
  const watched = createWatchedQuestions({
    store,
    pdp,
    recognize: introspect,
    answer: ask,
    clock: Date.now,
    log,
    intervalMs: 50,
  })
  const authenticate = createCallers({ introspect, issuer: ISSUER, serviceAccounts: options.serviceAccounts ?? null })
  const grpc = await startGrpcServer(
    {
      recognize: (token) => options.recognize?.(token, introspect) ?? introspect(token),
      answer,
      watched,
      authenticate,
      tls: options.tls ?? null,
      log,
      recheckIntervalMs: 50,
      // A busy machine may take its time.
      deadlineMs: options.grpcDeadlineMs ?? 30_000,
    },
    { host: options.grpcHost ?? '127.0.0.1', port: 0 },
  )

  function token(state: Partial<Active>): string {
    const name = `token-${tokens.size}`
    tokens.set(name, { ...ACTIVE, ...state, active: true })
    return name
  }
  return {
    sql,
    url: http.url,
    http,
    grpc,
    store,
    directory,
    pdp,
    transmitter,
    sessions: endings,
    logged,
    asked,
    token,
    setState: (name, state) => void tokens.set(name, state),
    async manager({ client = 'admin', organization, scopes = SERVICE_SCOPES } = {}) {
      const metadata = { scope: scopes.join(' '), grant_types: ['client_credentials'] }
      await directory.putClient({ id: client, app: null, organization: organization ?? null, metadata }, CONTEXT)
      const subject = { type: 'service', id: client } as const
      return token({
        subject,
        clientId: client,
        organization: organization ?? null,
        scopes: new Set(scopes),
        audiences: [ISSUER],
      })
    },
    send: (method, path, options) => send(http.url, { method, path, ...options }),
    async close() {
      await transmitter.close()
      await http.close()
      await grpc.close()
      await close()
      await database.drop()
    },
  }
}

async function send(url: string, request: SendOptions & { method: string; path: string }): Promise<Answer> {
  const { method, path, token, body, headers, raw } = request
  const content = raw ?? (body === undefined ? undefined : JSON.stringify(body))
  const response = await fetch(`${url}${path}`, {
    method,
    headers: {
      ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
      ...(content === undefined ? {} : { 'content-type': 'application/json' }),
      ...headers,
    },
    ...(content === undefined ? {} : { body: content }),
  })
  const text = await response.text()
  return { status: response.status, headers: response.headers, body: text === '' ? null : JSON.parse(text) }
}

/** acme with Alice as its admin; invoice 1 is hers, invoice 2 is group accounting's, of which Bob is a member. */
export async function seedAcme({ store, directory }: Pick<Served, 'store' | 'directory'>): Promise<void> {
  const options = { context: CONTEXT }
  await store.write(
    ENVIRONMENT,
    [{ kind: 'organization', id: 'acme', organization: { id: 'acme', name: 'Acme', parent: null } }],
    options,
  )
  for (const id of ['alice', 'bob'])
    await directory.putUser({ id, email: `${id}@acme.test`, emailVerified: true, name: id }, CONTEXT)
  const tuples = [
    ['invoice:1', 'viewer', 'user:alice'],
    ['invoice:2', 'viewer', 'group:accounting#member'],
    ['group:accounting', 'member', 'user:bob'],
    ['invoice:3', 'viewer', 'user:nobody'],
  ].map(([object = '', relation = '', subject = '']) => ({ object, relation, subject, expiresAtMs: null }))
  await store.write(
    'acme',
    [
      { kind: 'membership', user: 'alice', membership: { role: 'admin', status: 'active' } },
      ...tuples.map((tuple) => ({ kind: 'tuple', op: 'write', tuple }) as const),
      {
        kind: 'entitlement',
        key: 'feature.invoicing',
        entitlement: { value: { enabled: true }, enforcement: 'DecisionApi' },
      },
    ],
    options,
  )
}
