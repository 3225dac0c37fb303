/** Deletes old entries of the journal once a minute. */

import type { Sql } from '../../engine/store/directory.ts'
import { createRetention } from '../../engine/store/postgres/retention.ts'
import type { Log } from '../../shared/process/log.ts'
import { startRepeated } from '../../shared/process/repeated-runs.ts'

const INTERVAL_MS = 60_000
const DAY_MS = 86_400_000

/** The returned function stops the deletion, and resolves when the current run has ended. */
export function startRetention(deps: {
  readonly sql: Pick<Sql, 'transaction'>
  /** The days for which entries are kept; null: for ever, except old revocations of tokens. */
  readonly keptDays: number | null
  readonly log: Log
  /** The interval of the runs; default: one minute. */
  readonly intervalMs?: number
}): () => Promise<void> {
  const { sql, keptDays, log, intervalMs = INTERVAL_MS } = deps
  const trim = createRetention({ sql, keptMs: keptDays === null ? null : keptDays * DAY_MS })
  return startRepeated(
    async () => {
      const count = await trim()
      if (count > 0) log.info({ event: 'changes_trimmed', entries_count: count })
    },
    { intervalMs, failed: (err) => log.warn({ event: 'changes_not_trimmed', err }) },
  )
}
