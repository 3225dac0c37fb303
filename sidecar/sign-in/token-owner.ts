/** Checks that an access token belongs to the person whom an ID token names. */
import type { AccessClaims } from '../../pdp/shared/token/claims.ts'
import type { SignInContext } from './context.ts'
import type { Session } from './session.ts'

/** The reason for the log; null: it does, as far as the two can be compared. */
export function ownerProblem(
  access: AccessClaims,
  { issuer, subject }: Pick<Session, 'issuer' | 'subject'>,
  { issuers }: Pick<SignInContext, 'issuers'>,
): string | null {
  if (access.issuer !== issuer) return 'the access token is of another issuer'
  if (access.jkt !== null) return 'the access token is bound to a key, which a session does not have'
  // The answer's tokens are of two different people.
  if (issuers.get(issuer)?.isExternal === false && access.subject !== subject)
    return 'the access token and the ID token name different people'
  return null
}
