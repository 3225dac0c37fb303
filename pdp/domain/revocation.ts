/** How tokens are revoked before they expire, as entries of the token log. */

export type DeathCause = 'jti' | 'grant' | 'session' | 'user' | 'client'
/** `key` is `deathKey` of the change. */
export type Death = { readonly key: string; readonly atMs: number }
/** How a death is named: `jti <id>`, `grant <id>`, `session <id>`, `user <id>` or `client <id>`. */
export const deathKey = (by: DeathCause, id: string): string => `${by} ${id}`
/** Deaths are kept this long, in the log too, which no token outlives: access tokens live 15 minutes. */
export const DEATH_KEPT_MS = 30 * 60_000
