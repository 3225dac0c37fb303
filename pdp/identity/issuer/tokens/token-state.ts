/** The facts that the rest of the PDP may know about a presented access token. */
import type { Actor, Subject, TokenMemberships } from '../../../shared/domain/decision.ts'

/** The immutable facts of a token. Whether it is revoked is checked separately (`isRevoked`). */
export type TokenRecord = {
  readonly subject: Subject
  /** The organization that the grant is bound to; null when unbound. */
  readonly organization: string | null
  readonly clientId: string
  readonly scopes: ReadonlySet<string>
  readonly audiences: readonly string[]
  /** The thumbprint of the token's key (RFC 9449); null for a bearer token. */
  readonly jkt: string | null
  readonly jti: string
  /** The token's grant; null for a client_credentials token, and for one of another issuer. */
  readonly grantId: string | null
  /** The token's issue in milliseconds since the epoch. */
  readonly issuedAtMs: number
  readonly expiresAtMs: number
  /** Authentication context, never part of the token itself (RFC 9470 section 6.2). */
  readonly acr: string | null
  /** The sign-in in seconds since the epoch; null: unknown. */
  readonly authTime: number | null
  /** The token's own grant and the grants that it was exchanged from. Each of them ends the token. */
  readonly grants: readonly string[]
  /** The token's own client and the clients whose tokens it was exchanged from. Ending the tokens of any of them ends this one. */
  readonly clients: readonly string[]
  /** The browser session that the token ends with; null if it does not depend on a session. */
  readonly sessionUid: string | null
  readonly userId: string | null
  /** SHA-256 of the token in base64url. */
  readonly digest: string
  /** The `act` claim (RFC 8693 section 4.1): the client that acts for the subject. */
  readonly act: unknown
  /** The clients of the `act` claim, the one who acts now first. */
  readonly actors: readonly Actor[]
  /** The external issuer; null for our own tokens. Tokens of external issuers are valid only for decisions. */
  readonly externalIssuer: string | null
  /** Keys of the token log by which the external issuer can end the token; empty for our own tokens. */
  readonly externalKeys?: readonly string[]
  /** The time to ask the issuer about the token again; absent: the token is verified by keys. */
  readonly recheckAtMs?: number
  /** The subject's groups at an external issuer, which count only in questions with this token. */
  readonly memberships?: TokenMemberships
}

/** An inactive token has no reason: expired, revoked, malformed, of another issuer and never issued look the same. */
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
      | 'actors'
      | 'recheckAtMs'
    > & {
      readonly active: true
      /** Keys of the token log that revoke the token. The decision checks them at its own position of the log. */
      readonly revocationKeys: readonly string[]
      /** The app whose roles answer permission keys: the audience's owner, else the client's app; null: none. */
      readonly app: string | null
    })

export const INACTIVE: TokenState = { active: false }
