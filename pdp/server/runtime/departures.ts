/** Continues the deletion of people who were deleted, also what other PDPs began: they may have ended since. */

import type { Sql } from '../../engine/store/directory.ts'
import { goOnDeparting, nextDeparture } from '../../engine/store/postgres/people/departures.ts'
import type { Log } from '../../shared/process/log.ts'
import { startRepeated } from '../../shared/process/repeated-runs.ts'

const INTERVAL_MS = 1_000

/** The returned function stops the work, and resolves when the current step has ended. `intervalMs`: default one second. */
export function startDepartures({
  sql,
  log,
  intervalMs = INTERVAL_MS,
}: {
  readonly sql: Pick<Sql, 'transaction'>
  readonly log: Log
  readonly intervalMs?: number
}): () => Promise<void> {
  /** The last person who had a turn. People take turns, so that one who fails does not delay the others. */
  let after = ''

  /** Handles one person. False: nothing is left to do. */
  async function takeTurn(): Promise<boolean> {
    const first = after
    return sql.transaction(async (tx) => {
      const departure = await nextDeparture(tx, after)
      after = departure?.user ?? ''
      if (departure !== null) await goOnDeparting(tx, departure)
      return departure !== null || first !== ''
    })
  }

  return startRepeated(
    async (isStopped) => {
      for (let left = true; left && !isStopped(); ) left = await takeTurn()
    },
    { intervalMs, failed: (err) => log.warn({ event: 'departure_delayed', err }) },
  )
}
