/** Gives revisions to log entries whose writers were killed before that. The entries are in force, though no caller got an answer. */
import { ARRIVING, hasArrivals, numberArrivals } from '../../engine/store/arrivals.ts'
import type { Queries } from '../../engine/store/directory.ts'
import type { Log } from '../../shared/process/log.ts'
import { startRepeated } from '../../shared/process/repeated-runs.ts'

const INTERVAL_MS = 1_000

/** The returned function stops the work, and resolves when the current run has ended. `intervalMs`: default one second. */
export function startArrivals({
  sql,
  log,
  intervalMs = INTERVAL_MS,
}: {
  readonly sql: Queries
  readonly log: Log
  readonly intervalMs?: number
}): () => Promise<void> {
  return startRepeated(
    async () => {
      // A statement that raises a journal would end what a lease covers.
      for (const name of ARRIVING) if (await hasArrivals(sql, name)) await numberArrivals(sql, name)
    },
    { intervalMs, failed: (err) => log.warn({ event: 'arrivals_delayed', err }) },
  )
}
