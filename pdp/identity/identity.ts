/** The identity service: the issuer's HTTP routes, live introspection, and the first client. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { JWK } from 'jose'
import type { Pdp } from '../domain/decision.ts'
import type { JsonObject } from '../domain/json.ts'
import { type Networks, NO_NETWORKS } from '../process/addresses.ts'
import type { MasterKeys } from '../process/encryption.ts'
import type { PostFetch } from '../process/http-json.ts'
import type { Log } from '../process/log.ts'
import type { Store } from '../store/contract.ts'
import type { Client, Directory, Sql } from '../store/directory.ts'
import { createProofVerifier, type ProofVerifier } from '../token/dpop.ts'
import type { Fetch } from '../token/remote-keys.ts'
import { processReplayMemory, type ReplayMemory } from '../token/replay.ts'
import { createAccount } from './account/account.ts'
import { createDeliveries } from './account/deliveries.ts'
import type { AccountSettings } from './account/parts.ts'
import { createAdmin } from './admin.ts'
import { type Controls, controlsWithin } from './controls.ts'
import { createProviders, validateClient } from './current-provider.ts'
import { createEvents, type Events } from './events.ts'
import { createPasskeys } from './factors/passkeys.ts'
import { createSecondFactor } from './factors/second-factor.ts'
import { createForeign } from './foreign/foreign.ts'
import type { Branding } from './html/brand.ts'
import { createFrames } from './html/frame.ts'
import { createPublicPages, type PublicPages } from './html/public-pages.ts'
import { createInvitations } from './joining/invitations.ts'
import { type AcceptInvitation, joiningScreens } from './joining/pages.ts'
import { createKeyRing } from './keys/key-ring.ts'
import { createPasswordDecoys } from './keys/password-decoys.ts'
import { generateSecret, hashGeneratedSecret, hashSecret } from './keys/password-hash.ts'
import { createRecordSecrets } from './keys/record-secrets.ts'
import { createSetSigner, createStatementSigner } from './keys/signing-keys.ts'
import { mountOf } from './oauth/paths.ts'
import { createProvenSecrets } from './provider/proven-secrets.ts'
import { createProvider } from './provider/provider.ts'
import { createHandler } from './routes.ts'
import { createSemaphores } from './sign-in/attempts.ts'
import { createClientOf } from './sign-in/client-of.ts'
import { createConsent } from './sign-in/consent.ts'
import { type ConsoleIdentity, createConsoleIdentity } from './sign-in/console.ts'
import { createDevices } from './sign-in/devices.ts'
import { createKnownAddresses } from './sign-in/known-addresses.ts'
import { createPasskeySteps } from './sign-in/passkey-steps.ts'
import { createSharedAttempts } from './sign-in/shared-attempts.ts'
import { createSignIn } from './sign-in/sign-in.ts'
import { createIsSignedIn } from './sign-in/sign-in-validity.ts'
import { createStarts } from './sign-in/starts.ts'
import { createBindings } from './tokens/bindings.ts'
import { createClaimSources, type EmbedEntitlements } from './tokens/claim-sources.ts'
import { createExternalIssuers } from './tokens/external-issuers.ts'
import { createIntrospection, type Introspection } from './tokens/introspection.ts'
import { createResources } from './tokens/resources.ts'
import { type AppendEvents, type AppendLog, createRevocations } from './tokens/revocation.ts'
import { createSessionEvents } from './tokens/session-events.ts'
import { createTokenEndpoints } from './tokens/token-endpoints.ts'
import { createTokenHook, type HookOutcome } from './tokens/token-hook.ts'

const COLLECT_EVERY_MS = 60_000
// Short, so that a typing error does not lock a person out for long.
const ATTEMPTS_WINDOW_MS = 900_000
// Each check needs 32 MiB and most of a core, in the thread pool that also signs tokens.
const SECRET_CHECKS = { runningMax: 2, waitingMax: 50 }
const PROOFS_MAX = 500_000

export type IdentityDeps = {
  /** Every URL in an answer begins with it; the Host of a request does not count. */
  readonly issuer: string
  /** Proxies whose X-Forwarded-For or Forwarded field is trusted; default: none. */
  readonly trustedProxies?: Networks
  readonly sql: Sql
  readonly store: Store
  readonly directory: Directory
  readonly pdp: Pdp
  /** Logs revocations in the transaction that causes them. */
  readonly appendLog: AppendLog
  /** Stores events in the transaction of the change that they report. */
  readonly appendEvents: AppendEvents
  /** Calls the token hook and fetches the keys of other issuers. */
  readonly fetch: Fetch & PostFetch
  readonly masterKeys: MasterKeys
  /** Milliseconds since the epoch. */
  readonly clock: () => number
  readonly log: Log
  /** Remembers used DPoP proofs; default: in this process. */
  readonly replay?: ReplayMemory
  /** Default `claims-mode`. */
  readonly embedEntitlements?: EmbedEntitlements
  /** A slow hash that no secret matches, to check for people and clients that do not exist. Default: a new one. */
  readonly decoyHash?: string
  /** Default: no mail, and the built-in list of known passwords. */
  readonly account?: AccountSettings
  /** `host` or `host:port` of identity providers that may have internal addresses. Default: none. */
  readonly internalHosts?: readonly string[]
  /** Default: nobody can accept an invitation. */
  readonly acceptInvitation?: AcceptInvitation
  /** Called after each call of the token hook, for a counter. */
  readonly onHookOutcome?: (outcome: HookOutcome) => void
  /** Of the pages; default: none. */
  readonly branding?: Branding
}

export type Identity = Introspection &
  Controls & {
    /** Handles the issuer's routes under `/oauth/` and `/.well-known/`. True if it answered. The body must be unread. */
    handle(req: IncomingMessage, res: ServerResponse, deadlineMs?: number): Promise<boolean>
    /** Verifies proofs for this issuer's own routes. A proof is valid once for all of them together. */
    readonly verifyProof: ProofVerifier
    readonly events: Pick<Events, 'after'>
    /** The operations of management, inside an open transaction. */
    within(at: { readonly sql: Sql; readonly directory: Directory }): Controls & Pick<Introspection, 'introspect'>
    readonly console: ConsoleIdentity
    readonly publicPages: PublicPages
    /** Creates the client `admin` with every service scope, or sets its secret. A deleted `admin` stays deleted. */
    ensureAdmin(secret: string): Promise<void>
    /** Throws PdpError `request_invalid` for a registration that could never be used. `secretHash` is the one to be stored. */
    validateClient(client: Client & { readonly secretHash: string | null }): Promise<void>
    /** Public signing keys (RFC 7517), the active one first. */
    publicKeys(): readonly JWK[]
    /** A statement of the issuer: a JWT of these claims, signed with the key that signs ID tokens. */
    signStatement(claims: JsonObject): Promise<string>
    /** A Security Event Token of these claims, signed with the same key. */
    signSet(claims: JsonObject): Promise<{ readonly token: string; readonly kid: string }>
    /** Loads changed keys at once; otherwise it polls every 30 seconds. */
    reloadKeys(): Promise<void>
    /** Resolves when no mail is on its way. */
    mailed(): Promise<void>
    close(): Promise<void>
  }

/** Makes the signing keys at the first start. Throws Error if another master key encrypted the stored keys. */
export async function createIdentity(deps: IdentityDeps): Promise<Identity> {
  const { issuer, directory, log, clock, sql } = deps
  const resources = createResources(deps.store)
  const bindings = createBindings(deps)
  const revocations = createRevocations(deps)
  const secondFactor = createSecondFactor({ ...deps, revocations })
  const isSignedIn = createIsSignedIn(sql)
  const readClaimSources = createClaimSources({ ...deps, embedEntitlements: deps.embedEntitlements ?? 'claims-mode' })
  const consent = createConsent({ ...deps, bindings })
  const hook = createTokenHook({ ...deps, onOutcome: deps.onHookOutcome ?? (() => undefined) })
  const external = createExternalIssuers(deps)
  const known = createKnownAddresses(deps)
  const starts = createStarts({ clock, known })
  const semaphores = createSemaphores({ ...SECRET_CHECKS, known })
  const passkeys = createPasskeys({ ...deps, revocations })
  const frameOf = createFrames(deps.branding, mountOf(deps.issuer), passkeys.isPossible)
  const clientOf = createClientOf(deps.trustedProxies ?? NO_NETWORKS)
  const provenSecrets = createProvenSecrets(deps)
  const decoys = {
    generated: hashGeneratedSecret(generateSecret()),
    chosen: deps.decoyHash ?? (await hashSecret(generateSecret())),
  }
  const ring = await createKeyRing(deps)
  const publicJwks = (): readonly JWK[] => ring.current().publicJwks
  const introspection = createIntrospection({ ...deps, publicJwks, resources, external: external.record })
  const tokenEndpoints = createTokenEndpoints({ ...deps, introspection })
  const sessionEvents = createSessionEvents(deps.appendEvents)
  const providers = createProviders(ring, (keys) => {
    const provider = createProvider({
      ...deps,
      keys,
      bindings,
      revocations,
      resources,
      readClaimSources,
      consent,
      hook,
      introspection,
      secondFactor,
      isSignedIn,
      semaphores,
      clientOf,
      frameOf,
      provenSecrets,
      known,
      starts,
      decoys,
      sessionEvents,
    })
    tokenEndpoints.install(provider)
    return provider
  })
  const attempts = createSharedAttempts({ sql, clock, windowMs: ATTEMPTS_WINDOW_MS })
  const replay = deps.replay ?? processReplayMemory({ clock, entriesMax: PROOFS_MAX })
  const verifyProof = createProofVerifier({ clock, replay })
  const events = createEvents(deps)
  const devices = createDevices({ issuer, clientOf, masterKeys: deps.masterKeys })
  const signIn = createSignIn({
    ...{ directory, secondFactor, attempts, starts, known, secretSemaphore: semaphores.people, clock, log },
    decoyHash: decoys.chosen,
    decoys: createPasswordDecoys({ ...deps, own: decoys.chosen }),
    masterKeys: deps.masterKeys,
  })
  const passkeySteps = createPasskeySteps({ issuer, passkeys, secondFactor, signIn, starts, clock })
  const settings = deps.account ?? { mailer: null, knownPasswords: null }
  const mail = { mailer: settings.mailer, deliveries: createDeliveries(deps) }
  const invitations = (at: Pick<Sql, 'query'>) => createInvitations({ ...deps, ...mail, sql: at })
  const accept = deps.acceptInvitation ?? (async () => 'gone')
  const joining = joiningScreens({ ...deps, invitations, accept })
  const { elsewhere, screens: foreign, providers: others } = createForeign({ ...deps, revocations })
  const account = createAccount(
    {
      ...settings,
      ...deps,
      ...mail,
      elsewhere,
      devices,
      revocations,
      secretSemaphore: semaphores.people,
      frameOf,
      provider: () => providers.current().provider,
      signIn,
      isSignedIn,
      secondFactor,
      passkeys,
      passkeySteps,
    },
    (path) => joining.get(path) ?? foreign(path),
  )
  const handle = createHandler({
    account,
    elsewhere,
    issuer,
    sql,
    directory,
    consent,
    introspection,
    tokenEndpoints,
    readClaimSources,
    log,
    provider: () => providers.current().provider,
    callback: (req, res) => providers.current().callback(req, res),
    isSignedIn,
    frameOf,
    secondFactor,
    signIn,
    passkeySteps,
    recoveryUsed: (user, about) => account.notices.send(user, 'codeUsed', about),
    recordSecrets: createRecordSecrets(deps),
    devices,
    masterKeys: deps.masterKeys,
    verifyProof,
  })
  let collecting = false
  async function collect(): Promise<void> {
    if (collecting) return
    collecting = true
    try {
      await bindings.collect()
    } catch (err) {
      log.warn({ event: 'identity_collection_failed', err })
    }
    collecting = false
  }
  const collector = setInterval(() => void collect(), COLLECT_EVERY_MS)
  collector.unref()

  return {
    ...introspection,
    handle,
    verifyProof,
    sessions: revocations,
    secondFactor,
    hook,
    events,
    publicPages: createPublicPages({ issuer, frameOf }),
    issuers: external,
    invitations: invitations(sql),
    identityProviders: others,
    within: (at) => ({
      ...controlsWithin({ ...deps, ...mail, ...at }, hook),
      introspect: (token) => introspection.introspect(token, at),
    }),
    console: createConsoleIdentity({ ...deps, secondFactor, record: introspection.record, issuers: external }),
    ensureAdmin: createAdmin({ directory, log }),
    validateClient: (client) => validateClient(providers.current().provider, client),
    publicKeys: publicJwks,
    signStatement: createStatementSigner(ring.current),
    signSet: createSetSigner(ring.current),
    reloadKeys: ring.reload,
    mailed: account.idle,
    async close() {
      clearInterval(collector)
      await account.close()
      ring.close()
      events.close()
    },
  }
}
