/** RFC 8725 section 3.12: one kind of JWT must not pass as another. Checks the header's `typ`, which oidc-provider ignores. */
import { decodeProtectedHeader } from 'jose'
import { errors } from 'oidc-provider'
import { hasType, type JsonMembers } from '../../shared/token/jws.ts'

// RFC 7523 and OpenID Connect name no type of their own; most write none, or the general one.
const isPlain = (header: JsonMembers): boolean => header.typ === undefined || hasType(header, 'jwt')

/** Setting `assertJwtClientAuthClaimsAndHeader`: a DPoP proof is signed by the same key, and may have the same claims. */
export function requireAssertion(_ctx: unknown, _claims: unknown, header: JsonMembers): void {
  if (isPlain(header) || hasType(header, 'client-authentication+jwt')) return
  throw new errors.InvalidClientAuth('client_assertion is another kind of JWT')
}

/** An access token is signed by our key as well. Throws for what is not an ID token. */
export function requireIdToken(jwt: string): void {
  if (!isPlain({ ...decodeProtectedHeader(jwt) })) throw new errors.InvalidRequest('id_token_hint is not an ID token')
}
