/** Reads a provider's assertion about a person for a client here: an ID-JAG (draft-ietf-oauth-identity-assertion-authz-grant). */
import { ALGORITHM_NAMES } from '../../../shared/token/algorithms.ts'
import { TokenError } from '../../../shared/token/errors.ts'
import { hasType, parseJws } from '../../../shared/token/jws.ts'
import type { KeySource } from '../../../shared/token/keys.ts'
import { findSigner } from '../../../shared/token/signature.ts'
import { splitScope } from '../../oauth/scopes.ts'
import type { Links } from './links.ts'
import type { IdentityProviders } from './providers.ts'

export type IdentityAssertion = {
  readonly issuer: string
  /** The account here that is linked with the provider's person; null: none. */
  readonly user: string | null
  /** Organizations whose people the provider may sign in; undefined: all organizations. */
  readonly organizations: readonly string[] | undefined
  readonly clientId: string
  readonly resources: readonly string[]
  /** The scopes that the assertion allows; null: it names no scopes. */
  readonly scopes: readonly string[] | null
  /** True if the provider says that the sign-in had two factors, and is trusted to say so. */
  readonly hasTwoFactors: boolean
  /** Seconds since the epoch. `signedInAt` is the time of the assertion if the assertion names no other. */
  readonly signedInAt: number
  readonly expiresAt: number
  readonly jti: string
}
/** Throws TokenError `token_invalid`, or `keys_unavailable` when the provider does not answer. */
export type ReadAssertion = (assertion: string) => Promise<IdentityAssertion>

const TYPE = 'oauth-id-jag+jwt'
const CHARACTERS_MAX = 8_192
/** The same bounds as for assertions of clients. */
const LIFETIME_SECONDS_MAX = 600
const AHEAD_SECONDS_MAX = 60
const JTI_CHARACTERS_MAX = 256

export function createReadAssertion(deps: {
  /** Our own issuer. */
  readonly issuer: string
  readonly providers: Pick<IdentityProviders, 'list'>
  readonly links: Pick<Links, 'userOf'>
  readonly keysOf: (issuer: string) => KeySource
  readonly clock: () => number
}): ReadAssertion {
  const { providers, links, keysOf, clock } = deps
  return async (assertion) => {
    const jws = parseJws(assertion, CHARACTERS_MAX)
    if (jws === null) throw refused('it is not a compact JWS')
    // An ID token of the same provider, which the same key signs, must not be accepted as an assertion.
    if (!hasType(jws.header, TYPE)) throw refused(`typ is not ${TYPE}`)
    const { iss, sub, aud, client_id: clientId, jti, iat, exp, resource, scope, acr, auth_time: at } = jws.payload
    const provider = (await providers.list()).find(({ issuer }) => issuer === iss)
    if (provider?.identity_assertions !== true) throw refused('iss is no provider whose assertions count here')
    const { issuer, organizations, trusted_acr: trusted } = provider
    await findSigner(assertion, jws.header, { keys: keysOf(issuer), algorithms: ALGORITHM_NAMES })
    // A second audience is refused: that server could use the assertion here.
    if ([aud].flat().length !== 1 || [aud].flat()[0] !== deps.issuer) throw refused('aud is not this issuer alone')
    const now = clock() / 1_000
    if (typeof exp !== 'number' || !(exp > now)) throw refused('it has expired, or has no exp')
    if (exp > now + LIFETIME_SECONDS_MAX) throw refused(`it lives more than ${LIFETIME_SECONDS_MAX} seconds`)
    if (typeof iat !== 'number' || !(iat <= now + AHEAD_SECONDS_MAX)) throw refused('iat is missing, or in the future')
    if (!isText(sub) || !isText(clientId)) throw refused('sub or client_id is missing')
    if (!isText(jti) || jti.length > JTI_CHARACTERS_MAX) throw refused('jti is missing or too long')
    const resources = resource === undefined ? [] : [resource].flat()
    if (!resources.every(isText)) throw refused('resource is no text')
    if (scope !== undefined && typeof scope !== 'string') throw refused('scope is no text')
    if (at !== undefined && !(typeof at === 'number' && at <= now + AHEAD_SECONDS_MAX))
      throw refused('auth_time is no time of the past')
    return {
      issuer,
      organizations,
      clientId,
      resources,
      jti,
      expiresAt: Math.ceil(exp),
      user: await links.userOf({ issuer, subject: sub }),
      scopes: scope === undefined ? null : splitScope(scope),
      hasTwoFactors: isText(acr) && trusted?.includes(acr) === true,
      signedInAt: Math.floor(at ?? iat),
    }
  }
}

const isText = (value: unknown): value is string => typeof value === 'string' && value !== ''

const refused = (message: string): TokenError => new TokenError('token_invalid', `the assertion is refused: ${message}`)
