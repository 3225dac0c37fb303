/** Puts oidc-provider together: settings, our own grants, and the places where we replace its functions. */
import { type Client, Provider, type Session, type AccessToken as Token } from 'oidc-provider'
import { installStartLimits } from '../limits/start-limits.ts'
import { installConstantAnswers } from '../oauth/constant-answers.ts'
import { PATHS } from '../oauth/paths.ts'
import { seenFrom } from '../oauth/seen.ts'
import { isSlowHash, verifySecret } from '../people/passwords/password-hash.ts'
import { createAdapters, UsedBeforeError } from './adapter.ts'
import { installClientDecoy } from './client-decoy.ts'
import { JWT_BEARER, TOKEN_EXCHANGE } from './client-metadata.ts'
import type { ProviderDeps } from './deps.ts'
import { installErrorResponses } from './error-responses.ts'
import { installFieldCheck } from './field-check.ts'
import { clientCredentialsGrant, PARAMETERS } from './grants/client-credentials.ts'
import { ASSERTION_PARAMETERS, identityAssertionGrant } from './grants/identity-assertion.ts'
import { EXCHANGE_PARAMETERS, tokenExchangeGrant } from './grants/token-exchange.ts'
import { requireIdToken } from './jwt-kinds.ts'
import { createMint, type Mint } from './mint.ts'
import { createProviderPages } from './pages.ts'
import { installPolling } from './polling.ts'
import { createRedemption } from './redemption.ts'
import { providerSettings } from './settings.ts'

/** Makes a provider for one set of signing keys; after a rotation another one is made, which uses the same store. */
export function createProvider(deps: ProviderDeps): Provider {
  const {
    sql,
    revocations,
    directory,
    masterKeys,
    sessionEvents,
    issuer,
    bindings,
    isSignedIn,
    pdp,
    resources,
    readClaimSources,
    hook,
    log,
    introspection,
    consent,
    clock,
    clientOf,
    decoys,
    documents,
    clientKeys,
    readAssertion,
    demands,
  } = deps
  const redemption = createRedemption({ sql, revocations, path: PATHS.token, clock: () => performance.now() })
  const stored = { sql, directory, revocations, masterKeys, sessionEvents, redemption }
  const adapter = createAdapters({ ...stored, documents, clientKeys })
  const mint = createMint({ issuer, bindings, isSignedIn, pdp, resources, readClaimSources, hook, log, adapter })
  const pages = createProviderPages(deps)
  const provider = new Provider(deps.issuer, { adapter, ...providerSettings(deps, { mint, pages }) })
  // `proxy` is safe here: the identity service replaces a proxy's scheme and host by the issuer's own.
  provider.proxy = true
  provider.registerGrantType(
    'client_credentials',
    clientCredentialsGrant({ provider, pdp: deps.pdp, mint }),
    PARAMETERS,
    ['resource'],
  )
  provider.registerGrantType(
    TOKEN_EXCHANGE,
    tokenExchangeGrant({
      ...{ issuer, directory, resources, pdp, introspection, bindings, consent, clock, provider, mint },
      delegations: deps.delegations,
    }),
    EXCHANGE_PARAMETERS,
    ['resource', 'audience'],
  )
  provider.registerGrantType(
    JWT_BEARER,
    identityAssertionGrant({ provider, readAssertion, consent, isSignedIn, demands, mint }),
    ASSERTION_PARAMETERS,
    ['resource'],
  )
  reachInto(provider, deps, mint)
  installErrorResponses(provider, deps)
  installConstantAnswers(provider)
  installStartLimits(provider, deps)
  installFieldCheck(provider)
  pages.install(provider)
  installPolling(provider, deps.clock)
  installClientDecoy(provider, { masterKeys, clientOf, decoys, secretSemaphore: deps.semaphores.decoys })
  redemption.install(provider)
  installMetadata(provider, { documents: documents !== null })
  return provider
}

/** Corrects oidc-provider's metadata: it always announces user codes of CIBA, which do not exist here, and not our client documents. */
function installMetadata(provider: Provider, { documents }: { readonly documents: boolean }): void {
  provider.use(async (ctx, next) => {
    await next()
    const { body } = ctx
    if (typeof body !== 'object' || body === null || !(USER_CODES in body)) return
    ctx.body = { ...body, [USER_CODES]: false, client_id_metadata_document_supported: documents }
  })
}
const USER_CODES = 'backchannel_user_code_parameter_supported'

function reachInto(provider: Provider, deps: ProviderDeps, mint: Mint): void {
  const { AccessToken, Client, IdToken, ReplayDetection, Session } = provider
  // 1. Since 9.0 ID tokens of the token endpoint have no at_hash: the claims get the token's text, which is then hashed.
  const { save } = AccessToken.prototype
  AccessToken.prototype.save = async function (this: Token) {
    const value = await save.call(this)
    mint.remember(this, value)
    return value
  }
  // 2. Secrets are stored as hashes.
  Client.prototype.compareClientSecret = function (this: { clientSecret?: string }, actual: string) {
    const stored = this.clientSecret ?? ''
    return isSlowHash(stored) ? verifyChosen(deps, actual, stored) : verifySecret(actual, stored)
  }
  // 3. Logout tokens are sent from the queue, with retries, to URLs that our guards allow.
  Client.prototype.backchannelLogout = async () => undefined
  // 4. The only real end of a session; the adapter's destroy also runs whenever its cookie changes.
  const { destroy } = Session.prototype
  Session.prototype.destroy = async function (this: Session) {
    const user = this.accountId ?? null
    if (user !== null) {
      const context = { actor: `user:${user}`, requestId: '' }
      await deps.revocations.endSession({ uid: this.uid, user }, context)
    }
    await destroy.call(this)
  }
  const { loginAccount } = Session.prototype
  Session.prototype.loginAccount = function (this: Session, details: Parameters<Session['loginAccount']>[0]) {
    deps.sessionEvents.note(this, details)
    loginAccount.call(this, details)
  }
  // A session is stored with each request, and keeps browser and address, but only of requests of its own browser.
  const { save: saveSession } = Session.prototype
  Object.defineProperty(Session, 'IN_PAYLOAD', { value: [...sessionMembers(Session), 'seen'] })
  Session.prototype.save = function (this: Session, seconds: number) {
    const { req, oidc } = Provider.ctx ?? {}
    if (req !== undefined && oidc?.session?.uid === this.uid) this.seen = seenFrom(req, deps.clientOf(req))
    return saveSession.call(this, seconds)
  }
  // 5. A hint must be an ID token: our keys sign other tokens, too.
  const { validate } = IdToken
  IdToken.validate = async function (jwt: string, client: Client) {
    requireIdToken(jwt)
    return validate.call(this, jwt, client)
  }
  // 6. oidc-provider reads first and stores later. Of two parallel requests, the second gets the answer of a later one.
  const { unique } = ReplayDetection
  ReplayDetection.unique = async function (issuer: string, jti: string, expiresAt: number) {
    try {
      return await unique.call(this, issuer, jti, expiresAt)
    } catch (err) {
      if (err instanceof UsedBeforeError) return false
      throw err
    }
  }
}

const sessionMembers = (model: object): readonly unknown[] =>
  'IN_PAYLOAD' in model && Array.isArray(model.IN_PAYLOAD) ? model.IN_PAYLOAD : []

/** Verifies a secret that a person chose, by its slow hash. A client that has recently proven it does not wait for others. */
async function verifyChosen(
  { semaphores, provenSecrets, known, clientOf }: ProviderDeps,
  secret: string,
  stored: string,
): Promise<boolean> {
  // oidc-provider does not pass the request as an argument, but keeps it here.
  const req = Provider.ctx?.req
  const address = req === undefined ? '' : clientOf(req)
  const isRight =
    provenSecrets.has(secret, stored) || (await semaphores.clients(() => verifySecret(secret, stored), address))
  if (isRight) {
    provenSecrets.add(secret, stored)
    known.add(address)
  }
  return isRight
}
