/** Tries in a window of time, counted in the database: by all nodes together, also when many try at the same time. */
import { hash } from 'node:crypto'
import type { Queries } from '../../engine/store/directory.ts'

export type SharedAttempts = {
  /**
   * Counts a try before it is made, so that parallel tries count, too. False: no try is left, and this one was not counted. All methods
   * throw PdpError `store_unavailable`.
   */
  take(key: string, triesMax: number): Promise<boolean>
  /** Undoes `take`, because the try was not made. */
  giveBack(key: string): Promise<void>
  /** Forgets all tries of the key, because one succeeded: they were not a guesser's. */
  forget(key: string): Promise<void>
  /** Sets a mark under the key for `keptMs`. */
  mark(key: string, keptMs: number): Promise<void>
  isMarked(key: string): Promise<boolean>
}

// A single statement, so that parallel tries cannot exceed the limit: each waits for the row of the one before.
const TAKE = `
  insert into attempt (key, tries, ends_at)
  values ($1, 1, to_timestamp($2::float8) + make_interval(secs => $3::float8))
  on conflict (key) do update set
    tries = case when attempt.ends_at <= to_timestamp($2::float8) then 1 else attempt.tries + 1 end,
    ends_at = case when attempt.ends_at <= to_timestamp($2::float8) then excluded.ends_at else attempt.ends_at end
  where attempt.ends_at <= to_timestamp($2::float8) or attempt.tries < $4
  returning 1`

const MARK = `
  insert into attempt (key, tries, ends_at) values ($1, 0, to_timestamp($2::float8))
  on conflict (key) do update set ends_at = excluded.ends_at`

/** `clock`: milliseconds since the epoch. The clocks of nodes must differ by much less than a window. */
export function createSharedAttempts(deps: {
  readonly sql: Queries
  readonly clock: () => number
  readonly windowMs: number
}): SharedAttempts {
  const { sql, clock, windowMs } = deps
  // Keys are stored as digests, so that the table does not reveal what people typed as an address.
  const digestOf = (key: string): string => hash('sha256', key, 'base64url')
  return {
    async take(key, triesMax) {
      const taken = await sql.query(TAKE, [digestOf(key), clock() / 1_000, windowMs / 1_000, triesMax])
      return taken.length > 0
    },
    async giveBack(key) {
      await sql.query('update attempt set tries = tries - 1 where key = $1 and tries > 0', [digestOf(key)])
    },
    async forget(key) {
      await sql.query('delete from attempt where key = $1', [digestOf(key)])
    },
    async mark(key, keptMs) {
      await sql.query(MARK, [digestOf(key), (clock() + keptMs) / 1_000])
    },
    async isMarked(key) {
      const rows = await sql.query('select 1 from attempt where key = $1 and ends_at > to_timestamp($2::float8)', [
        digestOf(key),
        clock() / 1_000,
      ])
      return rows.length > 0
    },
  }
}
