/** Which sign-ins still count: the person exists, and was not signed out since. */
import type { Queries } from '../../engine/store/directory.ts'

/**
 * `since`: seconds since the epoch at which the person signed in; undefined where nobody signed in, as for a client that
 * asks about a person. Throws PdpError `store_unavailable`.
 */
export type IsSignedIn = (user: string, since: number | undefined) => Promise<boolean>

// Sign-ins have whole seconds. What is finished within the second of the sign-out was deleted with it (see revocation.ts).
const SIGNED_IN = `
  select 1 from user_account where user_id = $1
    and (signed_out_at is null or $2::float8 is null or signed_out_at < to_timestamp($2::float8 + 1))`

export function createIsSignedIn(sql: Queries): IsSignedIn {
  return async (user, since) => (await sql.query(SIGNED_IN, [user, since ?? null])).length > 0
}

/** By a session that must be open yet, or by a sign-in of this second that has none. */
export type SignedInBy = { readonly session: string } | { readonly ts: number }

const OPEN_SESSION = `
  select 1 from oidc_record where kind = 'Session' and uid = $2 and payload ->> 'accountId' = $1 and consumed_at is null`
// Strictly: with a sign-out in the same second, nobody knows which was first.
const NOT_SIGNED_OUT = `
  select 1 from user_account where user_id = $1 and (signed_out_at is null or signed_out_at < to_timestamp($2::float8))`

/**
 * For who changes a way into the own account, in the transaction that changes it and holds the directory's lock: a person who was
 * signed out meanwhile, by a new password for example, must leave none behind, and take none away.
 */
export async function isStillSignedIn(tx: Queries, user: string, by: SignedInBy): Promise<boolean> {
  const found =
    'session' in by ? await tx.query(OPEN_SESSION, [user, by.session]) : await tx.query(NOT_SIGNED_OUT, [user, by.ts])
  return found.length > 0
}
