/** Tells whether a sign-in still counts: the person exists and was not signed out after it. */
import type { Queries } from '../../engine/store/directory.ts'

/**
 * True for a valid sign-in. `since`: its time in seconds since the epoch; undefined without a sign-in, as when a client asks about a
 * person. Throws PdpError `store_unavailable`.
 */
export type IsSignedIn = (user: string, since: number | undefined) => Promise<boolean>

// Times of sign-ins are whole seconds. Whatever was finished in the second of the sign-out was deleted by it (see revocation.ts).
const SIGNED_IN = `
  select 1 from user_account where user_id = $1
    and (signed_out_at is null or $2::float8 is null or signed_out_at < to_timestamp($2::float8 + 1))`

export function createIsSignedIn(sql: Queries): IsSignedIn {
  return async (user, since) => (await sql.query(SIGNED_IN, [user, since ?? null])).length > 0
}

/** The sign-in of a person: a session that must still be open, or the time of a sign-in that has no session. */
export type SignedInBy = { readonly session: string } | { readonly ts: number }

const OPEN_SESSION = `
  select 1 from oidc_record where kind = 'Session' and uid = $2 and payload ->> 'accountId' = $1 and consumed_at is null`
// A sign-in in the same second as a sign-out does not count, since their order is unknown.
const NOT_SIGNED_OUT = `
  select 1 from user_account where user_id = $1 and (signed_out_at is null or signed_out_at < to_timestamp($2::float8))`

/**
 * Must be called in the transaction that adds or removes a way to sign in, under the directory's lock. A person who was signed out
 * meanwhile, for example by a new password, may change no way to sign in.
 */
export async function isStillSignedIn(tx: Queries, user: string, by: SignedInBy): Promise<boolean> {
  const found =
    'session' in by ? await tx.query(OPEN_SESSION, [user, by.session]) : await tx.query(NOT_SIGNED_OUT, [user, by.ts])
  return found.length > 0
}
