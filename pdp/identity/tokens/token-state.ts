/** What the rest of the PDP may know about a presented access token. */
import type { Subject, TokenMemberships } from '../../domain/decision.ts'

/** What never changes while a token lives. Whether it still lives is another question (`isDead`). */
export type TokenRecord = {
  readonly subject: Subject
  /** The organization that the grant is bound to; null when unbound. */
  readonly organization: string | null
  readonly clientId: string
  readonly scopes: ReadonlySet<string>
  readonly audiences: readonly string[]
  /** RFC 9449 key thumbprint; null for a bearer token. */
  readonly jkt: string | null
  readonly jti: string
  /** Null for a client_credentials token, and for one of another issuer. */
  readonly grantId: string | null
  /** Milliseconds since the epoch. */
  readonly issuedAtMs: number
  readonly expiresAtMs: number
  /** Authentication context, never part of the token itself (RFC 9470 section 6.2). */
  readonly acr: string | null
  /** Seconds since the epoch. */
  readonly authTime: number | null
  /** The token's own grant and those that it was exchanged from: it dies with any of them. */
  readonly grants: readonly string[]
  /** The browser session that the token ends with; null when it outlives its session, or never had one. */
  readonly sessionUid: string | null
  readonly userId: string | null
  /** SHA-256 of the token in base64url. */
  readonly digest: string
  /** RFC 8693 section 4.1: who acts for the subject, as it stands in the token. */
  readonly act: unknown
  /** Null for our own tokens, else the external issuer. Only our own may ask for anything but decisions. */
  readonly externalIssuer: string | null
  /** What an external issuer says of the subject's groups, as long as the token lives. */
  readonly memberships?: TokenMemberships
}

/** Inactive says nothing more: expired, revoked, malformed, foreign and never issued are indistinguishable. */
export type TokenState =
  | { readonly active: false }
  | (Pick<
      TokenRecord,
      | 'subject'
      | 'organization'
      | 'clientId'
      | 'scopes'
      | 'audiences'
      | 'jkt'
      | 'jti'
      | 'grantId'
      | 'issuedAtMs'
      | 'expiresAtMs'
      | 'acr'
      | 'authTime'
      | 'memberships'
    > & {
      readonly active: true
      /** What the token is dead by, once it is logged: checked with the answer, at the same moment. */
      readonly revocationKeys: readonly string[]
      /** The app whose roles answer permission keys: the owner of the token's audience, else the client's; null for none. */
      readonly app: string | null
    })

export const INACTIVE: TokenState = { active: false }
