/**
 * Entries of a log that arrive without a revision: their writers do not wait for each other. One transaction then gives revisions to
 * all that are committed (trigger `number_arrivals`), and serves all who wait.
 */
import type { Change, WriteContext } from '../../shared/domain/change.ts'
import { DIRECTORY, type JournalId, TOKENS } from '../../shared/domain/journal.ts'
import { Batcher } from './batcher.ts'
import type { Queries, Transaction } from './directory.ts'

export const ARRIVING: readonly JournalId[] = [TOKENS, DIRECTORY]
/** Entries that the trigger takes at once. */
const PIECE_ROWS = 5_000
const NUMBER = `
  update revision set revision = revision where organization_id = $1
    and (select position from log_arrival where organization_id = $1 order by position limit 1) is not null
  returning (select count(*)::int from (
    select from log_arrival where organization_id = $1 limit ${PIECE_ROWS + 1}) arrived) as count`

/** The entries have revisions before the transaction's caller is answered. `client` entries need the lock: their time counts. */
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

/** Afterwards every entry of the log that was committed before the call has a revision. */
export async function numberArrivals(sql: Queries, log: JournalId): Promise<void> {
  let left = true
  while (left) {
    const [row] = await sql.query<{ count: number }>(NUMBER, [log])
    left = row !== undefined && row.count > PIECE_ROWS
  }
}

type Wait = { readonly log: JournalId; readonly resolve: () => void; readonly reject: (error: unknown) => void }

/** As numberArrivals; one statement serves all who wait for a log, and is sent after they came. */
export function createNumbering(sql: Queries): (log: JournalId) => Promise<void> {
  const batcherOf = (log: JournalId): Batcher<Wait> =>
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
