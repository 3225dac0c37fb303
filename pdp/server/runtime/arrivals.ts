/** Gives revisions to entries of the logs whose writer was killed before it could: they count, though nobody was told so. */
import { ARRIVING, numberArrivals } from '../../engine/store/arrivals.ts'
import type { Queries } from '../../engine/store/directory.ts'
import type { Log } from '../../shared/process/log.ts'

const INTERVAL_MS = 1_000

/** The returned function stops it, and resolves when the current run has ended. `intervalMs`: default a second. */
export function startArrivals({
  sql,
  log,
  intervalMs = INTERVAL_MS,
}: {
  readonly sql: Queries
  readonly log: Log
  readonly intervalMs?: number
}): () => Promise<void> {
  let running: Promise<void> | null = null

  async function run(): Promise<void> {
    try {
      for (const name of ARRIVING) await numberArrivals(sql, name)
    } catch (err) {
      log.warn({ event: 'arrivals_delayed', err })
    }
    running = null
  }

  const timer = setInterval(() => {
    running ??= run()
  }, intervalMs)
  timer.unref()
  return async () => {
    clearInterval(timer)
    await running
  }
}
