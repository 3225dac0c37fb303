/** Entries of the token journal, which revoke tokens before they expire. */

/** Causes that name tokens of another issuer by its own ids: of a person, a session, an e-mail address or a token. */
export const ISSUER_CAUSES = [
  'foreign_subject',
  'foreign_session',
  // The cause for a person's tokens that do not name their session.
  'foreign_sessionless',
  'foreign_email',
  'foreign_jti',
  // The cause for all tokens of the issuer.
  'foreign_issuer',
] as const
export type IssuerCause = (typeof ISSUER_CAUSES)[number]
export type RevocationCause = 'jti' | 'grant' | 'session' | 'user' | 'client' | IssuerCause
/** A revocation under a key of revocationKey. */
export type Revocation = {
  readonly key: string
  readonly atMs: number
  /** Tokens that were issued later are not revoked. Absent: `atMs` for a client; for any other key, all tokens are revoked. */
  readonly issuedUntilMs?: number
}
/** The name of a revocation: `jti <id>`, `grant <id>`, `session <id>`, `user <id>`, `client <id>` or `<cause of an issuer> <id>`. */
export const revocationKey = (by: RevocationCause, id: string): string => `${by} ${id}`
/** The id of a cause at an issuer. No issuer has a space, so no issuer can name tokens of another. */
export const idAtIssuer = (issuer: string, value: string): string => `${issuer} ${value}`
/** The time for which revocations are kept, also in the journal. Access tokens live for only 15 minutes, so each one expires first. */
export const REVOCATION_KEPT_MS = 30 * 60_000
/** The oldest token that counts, of an issuer that reports revocations: the revocation of an older one may be forgotten already. */
export const ISSUER_TOKEN_AGE_MAX_MS = 24 * 3_600_000
/** One hour more than the age of such tokens, because clocks differ. */
export const ISSUER_REVOCATION_KEPT_MS = ISSUER_TOKEN_AGE_MAX_MS + 3_600_000
