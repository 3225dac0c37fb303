/** Entries of the token log, which revoke tokens before they expire. */

export type RevocationCause = 'jti' | 'grant' | 'session' | 'user' | 'client'
/** `key`: as revocationKey makes it. */
export type Revocation = { readonly key: string; readonly atMs: number }
/** How a revocation is named: `jti <id>`, `grant <id>`, `session <id>`, `user <id>` or `client <id>`. */
export const revocationKey = (by: RevocationCause, id: string): string => `${by} ${id}`
/** Revocations are kept this long, also in the log. Access tokens live 15 minutes, so none outlives its revocation. */
export const REVOCATION_KEPT_MS = 30 * 60_000
