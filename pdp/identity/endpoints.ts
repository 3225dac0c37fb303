/**
 * The handler of the issuer's HTTP routes: oidc-provider, signing in and the account. Loading it takes a quarter of the PDP's
 * loading time, so it is loaded when the PDP listens already.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Client, Queries } from '../engine/store/directory.ts'
import { NO_NETWORKS } from '../shared/base/addresses.ts'
import type { GuardedPost } from '../shared/base/guarded-post.ts'
import type { ProofVerifier } from '../shared/token/dpop.ts'
import type { IdentityDeps } from './deps.ts'
import type { FrameOf } from './html/frame.ts'
import type { KeyRing } from './issuer/keys/key-ring.ts'
import { createRecordSecrets } from './issuer/keys/record-secrets.ts'
import { createIsSignedIn } from './issuer/sign-in-validity.ts'
import type { Bindings } from './issuer/tokens/bindings.ts'
import { createClaimSources } from './issuer/tokens/claim-sources.ts'
import { createDelegations } from './issuer/tokens/delegations.ts'
import type { Introspection } from './issuer/tokens/introspection.ts'
import type { Resources } from './issuer/tokens/resources.ts'
import type { Revocations } from './issuer/tokens/revocation.ts'
import { createSessionEvents } from './issuer/tokens/session-events.ts'
import { createTokenEndpoints } from './issuer/tokens/token-endpoints.ts'
import type { TokenHook } from './issuer/tokens/token-hook.ts'
import { createSemaphores } from './limits/attempts.ts'
import { createDevices } from './limits/devices.ts'
import { createKnownAddresses } from './limits/known-addresses.ts'
import { createClientOf } from './limits/limit-address.ts'
import { createSharedAttempts } from './limits/shared-attempts.ts'
import { createStarts, STARTS_WINDOW_MS } from './limits/starts.ts'
import { createAccount } from './people/account/account.ts'
import type { Passkeys } from './people/factors/passkeys.ts'
import type { SecondFactor } from './people/factors/second-factor.ts'
import { type AcceptInvitation, joiningScreens } from './people/invitations/invitation-link.ts'
import { createInvitations } from './people/invitations/invitations.ts'
import type { Deliveries } from './people/mail/deliveries.ts'
import type { Mailer } from './people/mail/mail.ts'
import { createPasswordDecoys } from './people/passwords/password-decoys.ts'
import { generateSecret, hashGeneratedSecret, hashSecret } from './people/passwords/password-hash.ts'
import { demandsOf } from './people/sign-in/acr.ts'
import { createConsent } from './people/sign-in/consent.ts'
import { createPasskeySteps } from './people/sign-in/passkey-steps.ts'
import { createSignIn } from './people/sign-in/sign-in.ts'
import { createUpstreamProviders } from './people/upstream-providers/upstream-providers.ts'
import { type ClientDocuments, createClientDocuments } from './provider/client-documents.ts'
import { createClientKeys } from './provider/client-keys.ts'
import { createProviders, validateClient } from './provider/current-provider.ts'
import { createProvenSecrets } from './provider/proven-secrets.ts'
import { createProvider } from './provider/provider.ts'
import { createHandler } from './routes.ts'

// The window in which tries are counted: short, so that typing errors do not lock a person out for long.
const ATTEMPTS_WINDOW_MS = 900_000
// How many slow checks of secrets run and wait. Each takes 32 MiB and most of a core, in the thread pool that also signs tokens.
const SECRET_CHECKS = { runningMax: 2, waitingMax: 50 }

/** Parts that the rest of the identity service uses as well. */
type EndpointsParts = {
  readonly ring: Pick<KeyRing, 'current'>
  readonly bindings: Bindings
  readonly resources: Resources
  readonly revocations: Revocations
  readonly secondFactor: SecondFactor
  readonly passkeys: Passkeys
  readonly hook: TokenHook
  readonly introspection: Introspection
  readonly frameOf: FrameOf
  readonly verifyProof: ProofVerifier
  readonly accept: AcceptInvitation
  readonly guard: GuardedPost
  readonly mail: { readonly mailer: Mailer | null; readonly deliveries: Deliveries }
}
export type Endpoints = {
  /** Answers a request for one of our routes; false: it is not for us. */
  handle(req: IncomingMessage, res: ServerResponse, deadlineMs?: number): Promise<boolean>
  /** Checks a client before it is stored. Throws PdpError `request_invalid`. */
  validateClient(client: Client & { readonly secretHash: string | null }): Promise<void>
}

export async function createEndpoints(deps: IdentityDeps, parts: EndpointsParts): Promise<Endpoints> {
  const { issuer, directory, log, clock, sql, store, pdp, masterKeys, appendJournal, appendEvents } = deps
  const { ring, bindings, resources, revocations, secondFactor, passkeys, hook, introspection, frameOf, verifyProof } =
    parts
  const { mail, accept, guard } = parts
  const isSignedIn = createIsSignedIn(sql)
  const demands = demandsOf(deps.requireSecondFactor === true)
  const readClaimSources = createClaimSources({
    store,
    pdp,
    embedEntitlements: deps.embedEntitlements ?? 'claims-mode',
  })
  const documents = documentsOf(deps, guard)
  const clientKeys = createClientKeys({ guard, clock, log })
  const consent = createConsent({ issuer, directory, pdp, bindings, register: documents?.register })
  const base = { issuer, sql, directory, masterKeys, clock, log }
  const { known, starts, semaphores, clientOf, devices } = createLimits(deps)
  const provenSecrets = createProvenSecrets(deps)
  const decoys = {
    generated: hashGeneratedSecret(generateSecret()),
    chosen: deps.decoyHash ?? (await hashSecret(generateSecret())),
  }
  const tokenEndpoints = createTokenEndpoints({ issuer, pdp, sql, introspection })
  const sessionEvents = createSessionEvents(deps.appendEvents)
  const upstream = createUpstreamProviders({ ...base, pdp, appendJournal, appendEvents, guard, ring, revocations })
  const { elsewhere, signedOutElsewhere, readAssertion } = upstream
  const delegations = createDelegations({ sql, store, clock, revocations })
  const providers = createProviders(ring, (keys) => {
    const provider = createProvider({
      ...base,
      ...{ pdp, keys, bindings, revocations, resources, readClaimSources, consent, delegations, hook, introspection },
      ...{ secondFactor, demands, isSignedIn, semaphores, clientOf, frameOf, provenSecrets, known },
      ...{ starts, decoys, sessionEvents, documents, clientKeys, readAssertion },
    })
    tokenEndpoints.install(provider)
    return provider
  })
  const attempts = createSharedAttempts({ sql, clock, windowMs: ATTEMPTS_WINDOW_MS })
  const signIn = createSignIn({
    ...{ directory, secondFactor, attempts, starts, known, secretSemaphore: semaphores.people, masterKeys, clock, log },
    decoyHash: decoys.chosen,
    decoys: createPasswordDecoys({ sql, masterKeys, clock, log, own: decoys.chosen }),
  })
  const passkeySteps = createPasskeySteps({ passkeys, secondFactor, signIn, starts, clock })
  const signingIn = { elsewhere, devices, frameOf, signIn, isSignedIn, secondFactor, passkeySteps }
  const invitations = (at: Queries) =>
    createInvitations({ issuer, appendJournal, appendEvents, clock, ...mail, sql: at })
  const joining = joiningScreens({ sql, store, accept, invitations })
  const account = createAccount(
    {
      ...base,
      ...signingIn,
      ...mail,
      appendEvents,
      knownPasswords: deps.account?.knownPasswords ?? null,
      hashPassword: deps.account?.hashPassword ?? hashSecret,
      revocations,
      secretSemaphore: semaphores.people,
      provider: () => providers.current().provider,
      ...{ passkeys, consent, delegations, pdp },
    },
    (path) => joining.get(path) ?? upstream.screens(path),
  )
  const handle = createHandler({
    ...base,
    ...signingIn,
    account,
    signedOutElsewhere,
    consent,
    introspection,
    tokenEndpoints,
    readClaimSources,
    provider: () => providers.current().provider,
    callback: (req, res) => providers.current().callback(req, res),
    demands,
    recoveryUsed: (user, about) => account.notices.send(user, 'codeUsed', about),
    recordSecrets: createRecordSecrets(deps),
    verifyProof,
  })
  return {
    handle,
    validateClient: (client) => validateClient({ provider: providers.current().provider, guard }, client),
  }
}

/** Limits on guesses and on expensive work, by the address and device of the sender. */
function createLimits({ issuer, masterKeys, clock, trustedProxies = NO_NETWORKS }: IdentityDeps) {
  const known = createKnownAddresses({ clock })
  const clientOf = createClientOf(trustedProxies)
  return {
    known,
    clientOf,
    starts: createStarts({ clock, known }),
    semaphores: createSemaphores({ ...SECRET_CHECKS, known }),
    devices: createDevices({ issuer, clientOf, masterKeys }),
  }
}

/** The documents of clients that are not registered; null: every client must be registered. */
function documentsOf(
  { clientDocuments, sql, directory, clock, log }: IdentityDeps,
  guard: GuardedPost,
): ClientDocuments | null {
  if (clientDocuments === undefined) return null
  const turns = createSharedAttempts({ sql, clock, windowMs: STARTS_WINDOW_MS })
  return createClientDocuments({ ...clientDocuments, sql, directory, guard, turns, clock, log })
}
