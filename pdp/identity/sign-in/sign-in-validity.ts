/** Which sign-ins still count: the person exists, and was not signed out since. */
import type { Sql } from '../../store/directory.ts'

/**
 * `since`: seconds since the epoch at which the person signed in; undefined where nobody signed in, as for a client that
 * asks about a person. Throws PdpError `store_unavailable`.
 */
export type IsSignedIn = (user: string, since: number | undefined) => Promise<boolean>

// Sign-ins have whole seconds. What is finished within the second of the sign-out was deleted with it (see revocation.ts).
const SIGNED_IN = `
  select 1 from user_account where user_id = $1
    and (signed_out_at is null or $2::float8 is null or signed_out_at < to_timestamp($2::float8 + 1))`

export function createIsSignedIn(sql: Pick<Sql, 'query'>): IsSignedIn {
  return async (user, since) => (await sql.query(SIGNED_IN, [user, since ?? null])).length > 0
}
