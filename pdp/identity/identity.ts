/** The identity service: the issuer's routes, live introspection, and the first client. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { JWK } from 'jose'
import type { Directory, Sql } from '../engine/store/directory.ts'
import { createGuardedPost, type GuardedPost } from '../shared/base/guarded-post.ts'
import type { JsonObject } from '../shared/domain/json.ts'
import { createProofVerifier, type ProofVerifier } from '../shared/token/dpop.ts'
import { LOGOUT_TYPE } from '../shared/token/logout-token.ts'
import { processReplayMemory } from '../shared/token/replay.ts'
import { SET_TYPE } from '../signals/set/set.ts'
import { createAdmin } from './admin.ts'
import { type Controls, controlsWithin } from './controls.ts'
import type { IdentityDeps } from './deps.ts'
import type { Endpoints } from './endpoints.ts'
import { createFrames } from './html/frame.ts'
import { createPublicPages, type PublicPages } from './html/public-pages.ts'
import { createKeyRing, type KeyRing } from './issuer/keys/key-ring.ts'
import { createStatementSigner, createTokenSigner } from './issuer/keys/signing-keys.ts'
import { startLogouts } from './issuer/logouts.ts'
import { createEvents, type Events } from './issuer/outbox-reader.ts'
import { type Bindings, createBindings } from './issuer/tokens/bindings.ts'
import { createExternalIssuers } from './issuer/tokens/external-issuers.ts'
import { createIntrospection, type Introspection } from './issuer/tokens/introspection.ts'
import { createResources } from './issuer/tokens/resources.ts'
import { createRevocations } from './issuer/tokens/revocation.ts'
import { createTokenHook } from './issuer/tokens/token-hook.ts'
import { createPasskeys } from './people/factors/passkeys.ts'
import { createSecondFactor } from './people/factors/second-factor.ts'
import type { AcceptInvitation } from './people/invitations/invitation-link.ts'
import { createInvitations } from './people/invitations/invitations.ts'
import { createDeliveries } from './people/mail/deliveries.ts'
import { type ConsoleIdentity, createConsoleIdentity } from './people/sign-in/console-sessions.ts'
import { createIdentityProviders } from './people/upstream-providers/providers.ts'

const COLLECT_EVERY_MS = 60_000
const PROOFS_MAX = 500_000

export type Identity = Introspection &
  Controls & {
    /** Verifies proofs for all routes of the issuer together: a proof is valid only once. */
    readonly verifyProof: ProofVerifier
    readonly events: Pick<Events, 'after'>
    /** The operations of management, inside an open transaction. */
    within(at: { readonly sql: Sql; readonly directory: Directory }): Controls & Pick<Introspection, 'introspect'>
    readonly console: ConsoleIdentity
    readonly publicPages: PublicPages
    /** Makes the routes, once. `accept` accepts invitations; null: invitations cannot be accepted. */
    routes(accept: AcceptInvitation | null): IssuerRoutes
    /** Public signing keys (RFC 7517), the active key first. */
    publicKeys(): readonly JWK[]
    /** A statement of the issuer: a JWT of these claims, signed with the key that signs ID tokens. */
    signStatement(claims: JsonObject): Promise<string>
    /** A Security Event Token of these claims, signed with the same key. */
    signSet(claims: JsonObject): Promise<{ readonly token: string; readonly kid: string }>
    /** Loads changed keys now instead of at the next poll, every 30 seconds. */
    reloadKeys(): Promise<void>
    /** Resolves when no mail is being sent. */
    mailed(): Promise<void>
    close(): Promise<void>
  }

export type IssuerRoutes = {
  /** Handles the routes under `/oauth/` and `/.well-known/`. True if it answered. The body must be unread. */
  handle(req: IncomingMessage, res: ServerResponse, deadlineMs?: number): Promise<boolean>
  /** Loads the code that answers. Until then requests wait; the first request also starts the loading. */
  load(): Promise<void>
  /** Creates the client `admin` with every service scope, or sets its secret. A deleted `admin` stays deleted. Requests wait for it. */
  ensureAdmin(secret: string): Promise<void>
  /** Throws PdpError `request_invalid` for a registration that could never be used. `secretHash` is the one to be stored. */
  validateClient: Endpoints['validateClient']
}

/** Makes the signing keys at the first start. Throws Error if another master key encrypted the stored keys. */
export async function createIdentity(deps: IdentityDeps): Promise<Identity> {
  const { issuer, directory, log, clock, sql, appendJournal, appendEvents, masterKeys, fetch, pdp } = deps
  const resources = createResources(deps.store)
  const bindings = createBindings(deps)
  const revocations = createRevocations(deps)
  const secondFactor = createSecondFactor({
    ...{ issuer, sql, directory, appendEvents, masterKeys, clock },
    revocations,
  })
  const onOutcome = deps.onHookOutcome ?? (() => undefined)
  const hook = createTokenHook({ sql, appendJournal, masterKeys, fetch, clock, log, onOutcome })
  const external = createExternalIssuers(deps)
  const passkeys = createPasskeys({ issuer, sql, appendEvents, clock, log, revocations })
  const frameOf = createFrames(issuer, deps.branding, passkeys.isPossible)
  const ring = await createKeyRing(deps)
  const publicJwks = (): readonly JWK[] => ring.current().publicJwks
  const introspection = createIntrospection({
    ...{ issuer, sql, directory, pdp, clock },
    publicJwks,
    resources,
    external: external.record,
  })
  const replay = deps.replay ?? processReplayMemory({ clock, entriesMax: PROOFS_MAX })
  const verifyProof = createProofVerifier({ clock, replay })
  const events = createEvents(deps)
  const mail = { mailer: deps.account?.mailer ?? null, deliveries: createDeliveries(deps) }
  const guard = createGuardedPost({ internalHosts: deps.internalHosts ?? [], proxy: deps.proxy ?? null })
  const shared = {
    ring,
    bindings,
    resources,
    revocations,
    secondFactor,
    passkeys,
    hook,
    introspection,
    frameOf,
    verifyProof,
    guard,
  }
  let loading: Promise<Endpoints> | undefined
  const collector = startCollector(bindings, log)
  const logouts = sendLogouts(deps, { ring, guard })

  return {
    ...introspection,
    routes(accept) {
      const parts = { ...shared, mail, accept: accept ?? (async () => 'gone') }
      const endpoints = (): Promise<Endpoints> => {
        loading ??= import('./endpoints.ts').then(({ createEndpoints }) => createEndpoints(deps, parts))
        return loading
      }
      return createRoutes(endpoints, createAdmin({ directory, log }))
    },
    verifyProof,
    sessions: revocations,
    secondFactor,
    hook,
    events,
    publicPages: createPublicPages({ issuer, frameOf }),
    issuers: external,
    invitations: createInvitations({ issuer, sql, appendJournal, appendEvents, clock, ...mail }),
    identityProviders: createIdentityProviders(deps),
    within: (at) => ({
      ...controlsWithin({ appendJournal, appendEvents, clock, issuer, masterKeys, fetch, log, ...mail, ...at }, hook),
      introspect: (token) => introspection.introspect(token, at),
    }),
    console: createConsoleIdentity({
      issuer,
      sql,
      directory,
      log,
      secondFactor,
      sessionsOf: revocations.sessionsOf,
      record: introspection.record,
      issuers: external,
    }),
    publicKeys: publicJwks,
    signStatement: createStatementSigner(ring.current),
    signSet: createTokenSigner(ring.current, SET_TYPE),
    reloadKeys: ring.reload,
    mailed: mail.deliveries.idle,
    async close() {
      clearInterval(collector)
      await logouts.close()
      guard.close()
      await loading?.catch(() => undefined)
      await mail.deliveries.close()
      ring.close()
      events.close()
    },
  }
}

function sendLogouts(
  { issuer, sql, clock, log, onLogoutOutcome }: IdentityDeps,
  { ring, guard }: { readonly ring: KeyRing; readonly guard: GuardedPost },
) {
  return startLogouts({
    ...{ issuer, sql, clock, log, post: guard, random: Math.random },
    sign: createTokenSigner(ring.current, LOGOUT_TYPE),
    onOutcome: onLogoutOutcome ?? (() => undefined),
  })
}

/** Deletes from time to time, one run after the other, the rows that no grant needs any more. */
function startCollector(bindings: Pick<Bindings, 'collect'>, log: IdentityDeps['log']): NodeJS.Timeout {
  let collecting = false
  return setInterval(async () => {
    if (collecting) return
    collecting = true
    try {
      await bindings.collect()
    } catch (err) {
      log.warn({ event: 'identity_collection_failed', err })
    }
    collecting = false
  }, COLLECT_EVERY_MS).unref()
}

function createRoutes(
  endpoints: () => Promise<Endpoints>,
  ensureAdmin: (secret: string) => Promise<void>,
): IssuerRoutes {
  let admin: Promise<void> = Promise.resolve()
  return {
    async handle(req, res, deadlineMs) {
      await admin
      return (await endpoints()).handle(req, res, deadlineMs)
    },
    async load() {
      await endpoints()
    },
    ensureAdmin(secret) {
      admin = ensureAdmin(secret)
      return admin
    },
    validateClient: async (client) => (await endpoints()).validateClient(client),
  }
}
