/** Rows by the hundred thousand, written by SQL before anybody has read them; the store would take them one revision at a time. */
import type pg from 'pg'
import type { Tuple } from '../../../pdp/shared/domain/tuple.ts'

const ROWS_PER_STATEMENT = 20_000

/** Organizations with their rows of revisions, and with nothing else. */
export async function putOrganizations(pool: pg.Pool, ids: readonly string[]): Promise<void> {
  for (let from = 0; from < ids.length; from += ROWS_PER_STATEMENT) {
    const part = ids.slice(from, from + ROWS_PER_STATEMENT)
    await pool.query('insert into organization (organization_id, name) select id, id from unnest($1::text[]) id', [
      part,
    ])
    await pool.query(
      'insert into revision (organization_id, revision, write_id) select id, 0, 0 from unnest($1::text[]) id on conflict do nothing',
      [part],
    )
  }
}

/** The same tuples for each organization. */
export async function putTuples(pool: pg.Pool, ids: readonly string[], tuples: readonly Tuple[]): Promise<void> {
  const organizationsAtOnce = Math.max(1, Math.floor(ROWS_PER_STATEMENT / tuples.length))
  for (let from = 0; from < ids.length; from += organizationsAtOnce)
    for (let at = 0; at < tuples.length; at += ROWS_PER_STATEMENT) {
      const part = tuples.slice(at, at + ROWS_PER_STATEMENT)
      await pool.query(
        `insert into relationship (organization_id, object, relation, subject)
         select id, object, relation, subject from unnest($1::text[]) id,
           unnest($2::text[], $3::text[], $4::text[]) t(object, relation, subject)`,
        [
          ids.slice(from, from + organizationsAtOnce),
          part.map(({ object }) => object),
          part.map(({ relation }) => relation),
          part.map(({ subject }) => subject),
        ],
      )
    }
}
