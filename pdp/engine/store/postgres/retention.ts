/** Removes journal entries that are older than they have to be kept, in small pieces. The newest revision of a journal stays. */
import { TOKENS } from '../../../shared/domain/journal.ts'
import { ISSUER_REVOCATION_KEPT_MS } from '../../../shared/domain/revocation.ts'
import { ADVISORY_LOCKS } from '../advisory-locks.ts'
import type { Queries, Sql } from '../directory.ts'

/** How long revocations are kept. Tokens that older ones revoked have expired, and nothing lists old revocations. */
const TOKENS_KEPT_MS = ISSUER_REVOCATION_KEPT_MS
/** How many journals one piece reads, and how many of the oldest revisions of each: this takes some milliseconds. */
const LOGS_MAX = 20
const REVISIONS_MAX = 1_000
/** The most pieces of one call; the next call goes on where it ended. */
const PIECES_MAX = 100

// Whole revisions are removed, the oldest first: a cache that stands before a gap empties itself, but could not tell a part of a
// revision from all of it. The last revision that was read stays for the next piece, and so does the newest of all.
const TRIM = `
  with page as (select organization_id from revision where organization_id > $1 order by organization_id limit ${LOGS_MAX}),
  kept as (
    select p.organization_id, k.revision
    from page p, lateral (select case when p.organization_id = '${TOKENS}' then $2::float8 else $3::float8 end as seconds) a, lateral (
      select coalesce(min(revision) filter (where (written_at < statement_timestamp() - make_interval(secs => a.seconds)) is not true),
        max(revision)) as revision
      from (select revision, written_at from change_log where organization_id = p.organization_id and seq = 1
        order by revision limit ${REVISIONS_MAX} offset 0) oldest) k),
  gone as (delete from change_log where ctid = any(array(
    select c.ctid from kept k, lateral (
      select ctid from change_log where organization_id = k.organization_id and revision < k.revision offset 0) c)) returning 1)
  select (select max(organization_id) from page) as last, (select count(*)::int from gone) as gone`

/**
 * Each call removes some pieces and returns how many entries it removed; while one caller works, others do nothing. `keptMs` null:
 * only entries of `#tokens` are removed. A call throws what `Sql` throws.
 */
export function createRetention(deps: {
  readonly sql: Pick<Sql, 'transaction'>
  readonly keptMs: number | null
}): () => Promise<number> {
  const kept = [TOKENS_KEPT_MS / 1_000, deps.keptMs === null ? null : deps.keptMs / 1_000]
  let after = ''

  async function trimPiece(sql: Queries): Promise<{ last: string | null; gone: number } | null> {
    const [lock] = await sql.query<{ held: boolean }>(
      `select pg_try_advisory_xact_lock(${ADVISORY_LOCKS.retention}) as held`,
    )
    if (lock?.held !== true) return null
    const [piece] = await sql.query<{ last: string | null; gone: number }>(TRIM, [after, ...kept])
    return piece ?? null
  }

  return async () => {
    let goneCount = 0
    for (let pieces = 0; pieces < PIECES_MAX; pieces++) {
      const piece = await deps.sql.transaction(trimPiece)
      if (piece === null) break
      goneCount += piece.gone
      if (piece.gone > 0) continue // there may be more in the same journals
      after = piece.last ?? ''
      if (piece.last === null) break // that was all; the next call begins again
    }
    return goneCount
  }
}
