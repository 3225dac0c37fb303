/** How tokens are revoked before they expire, as entries of the token log. */

export type RevocationCause = 'jti' | 'grant' | 'session' | 'user' | 'client'
/** `key` is `deathKey` of the change. */
export type Revocation = { readonly key: string; readonly atMs: number }
/** How a death is named: `jti <id>`, `grant <id>`, `session <id>`, `user <id>` or `client <id>`. */
export const revocationKey = (by: RevocationCause, id: string): string => `${by} ${id}`
/** Deaths are kept this long, in the log too, which no token outlives: access tokens live 15 minutes. */
export const REVOCATION_KEPT_MS = 30 * 60_000
