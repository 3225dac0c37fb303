/** RFC 8725 section 3.12: one kind of JWT must not pass as another. Checks the header's `typ`, which oidc-provider ignores. */
import { decodeProtectedHeader } from 'jose'
import { errors } from 'oidc-provider'
import type { JsonMembers } from '../../shared/base/json-text.ts'
import { hasType } from '../../shared/token/jws.ts'

// True for a JWT without a special type: RFC 7523 and OpenID Connect define none.
const isPlain = (header: JsonMembers): boolean => header.typ === undefined || hasType(header, 'jwt')

const LIFETIME_SECONDS_MAX = 600
/** FAPI 2.0 section 5.3.2.1: clocks of clients may be 10 seconds ahead, and never more than 60. */
const AHEAD_SECONDS_MAX = 60

/** The setting `assertJwtClientAuthClaimsAndHeader` of oidc-provider. `clock`: milliseconds since the epoch. */
export function assertionRule({ issuer, clock }: { readonly issuer: string; readonly clock: () => number }) {
  const isWithin = (time: unknown, seconds: number): boolean =>
    typeof time === 'number' && time <= clock() / 1_000 + seconds
  return (_ctx: unknown, { aud, exp, iat }: JsonMembers, header: JsonMembers): void => {
    // DPoP proofs are refused: the same key signs them, and they may have the same claims.
    if (!isPlain(header) && !hasType(header, 'client-authentication+jwt'))
      throw new errors.InvalidClientAuth('client_assertion is another kind of JWT')
    // A second audience is refused, since that server could use the assertion here. So is an endpoint instead of our issuer.
    if ([aud].flat().length !== 1 || [aud].flat()[0] !== issuer)
      throw new errors.InvalidClientAuth('the aud of a client_assertion must be the issuer alone')
    if (!isWithin(exp, LIFETIME_SECONDS_MAX))
      throw new errors.InvalidClientAuth(`a client_assertion lives ${LIFETIME_SECONDS_MAX} seconds at most`)
    if (iat !== undefined && !isWithin(iat, AHEAD_SECONDS_MAX))
      throw new errors.InvalidClientAuth('the client_assertion was issued in the future')
  }
}

/** Requires an ID token and throws for other JWTs: access tokens are signed with our key, too. */
export function requireIdToken(jwt: string): void {
  if (!isPlain({ ...decodeProtectedHeader(jwt) })) throw new errors.InvalidRequest('id_token_hint is not an ID token')
}
