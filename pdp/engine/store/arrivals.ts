/**
 * Journal entries that are committed without a revision, so that their writers do not wait for each other. Then one transaction
 * gives revisions to all of them (trigger `number_arrivals`), for all writers that wait for theirs.
 */
import type { Change, WriteContext } from '../../shared/domain/change.ts'
import { DIRECTORY, type JournalId, TOKENS } from '../../shared/domain/journal.ts'
import { Batcher } from './batcher.ts'
import type { Queries, Transaction } from './directory.ts'

export const ARRIVING: readonly JournalId[] = [TOKENS, DIRECTORY]
/** How many entries the trigger gives revisions to in one statement. */
const PIECE_ROWS = 5_000
const NUMBER = `
  update revision set revision = revision where organization_id = $1
    and (select position from log_arrival where organization_id = $1 order by position limit 1) is not null
  returning (select count(*)::int from (
    select from log_arrival where organization_id = $1 limit ${PIECE_ROWS + 1}) arrived) as count`

/** Stores entries, which get revisions before the transaction's caller is answered. Not for `client`: those need the lock. */
export async function appendArrivals(
  tx: Transaction,
  log: JournalId,
  changes: readonly Change[],
  { actor, requestId }: WriteContext,
): Promise<void> {
  tx.arrived(log)
  await tx.query(
    `insert into log_arrival (organization_id, change, actor, request_id)
     select $1, q.change, $3, $4 from unnest($2::jsonb[]) with ordinality q(change, n) order by n`,
    [log, changes.map((change) => JSON.stringify(change)), actor, requestId],
  )
}

export const hasArrivals = async (sql: Queries, log: JournalId): Promise<boolean> =>
  (await sql.query('select 1 from log_arrival where organization_id = $1 limit 1', [log])).length > 0

/** Gives a revision to every entry of the journal that was committed before the call. */
export async function numberArrivals(sql: Queries, log: JournalId): Promise<void> {
  let left = true
  while (left) {
    const [row] = await sql.query<{ count: number }>(NUMBER, [log])
    left = row !== undefined && row.count > PIECE_ROWS
  }
}

/** Does what numberArrivals does, with one call for all callers that wait for the same journal. */
export function createNumbering(sql: Queries): (log: JournalId) => Promise<void> {
  const batcherOf = (
    log: JournalId,
  ): Batcher<{ readonly log: JournalId; readonly resolve: () => void; readonly reject: (error: unknown) => void }> =>
    new Batcher({
      runningMax: 1,
      schedule: setImmediate,
      async run(waits) {
        await numberArrivals(sql, log)
        for (const { resolve } of waits) resolve()
      },
      fail: ({ reject }, error) => reject(error),
    })
  const batchers = new Map(ARRIVING.map((log) => [log, batcherOf(log)]))
  return (log) =>
    new Promise((resolve, reject) => {
      const batcher = batchers.get(log)
      if (batcher === undefined) reject(new TypeError(`entries of ${log} do not arrive`))
      else batcher.add({ log, resolve, reject })
    })
}
