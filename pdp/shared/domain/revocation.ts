/** Entries of the token journal, which revoke tokens before they expire. */

/** Causes that name tokens of another issuer by its own ids: of a person, a session, an e-mail address or a token. */
export const ISSUER_CAUSES = [
  'foreign_subject',
  'foreign_session',
  // Names a person whose token does not say which session it belongs to.
  'foreign_sessionless',
  'foreign_email',
  'foreign_jti',
  // Names all tokens of the issuer.
  'foreign_issuer',
] as const
export type IssuerCause = (typeof ISSUER_CAUSES)[number]
export type RevocationCause = 'jti' | 'grant' | 'session' | 'user' | 'client' | IssuerCause
/** `key`: as revocationKey makes it. */
export type Revocation = {
  readonly key: string
  readonly atMs: number
  /** Tokens that were issued later are not revoked. Absent: `atMs` for a client; for any other key, all tokens are revoked. */
  readonly issuedUntilMs?: number
}
/** How a revocation is named: `jti <id>`, `grant <id>`, `session <id>`, `user <id>`, `client <id>` or `<cause of an issuer> <id>`. */
export const revocationKey = (by: RevocationCause, id: string): string => `${by} ${id}`
/** The id of a cause at an issuer. No issuer has a space, so no issuer can name tokens of another. */
export const idAtIssuer = (issuer: string, value: string): string => `${issuer} ${value}`
/** Revocations are kept this long, also in the journal. Access tokens live 15 minutes, so none outlives its revocation. */
export const REVOCATION_KEPT_MS = 30 * 60_000
/** Applies to an issuer that says what it revoked: older tokens are refused, because the entry that revoked them may be forgotten. */
export const ISSUER_TOKEN_AGE_MAX_MS = 24 * 3_600_000
/** An hour longer than such a token can be valid, to allow for clocks that differ. */
export const ISSUER_REVOCATION_KEPT_MS = ISSUER_TOKEN_AGE_MAX_MS + 3_600_000
