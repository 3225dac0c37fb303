/** Goes on with the departures of deleted people, those of other PDPs too: who began one may have ended since. */

import type { Sql } from '../../engine/store/directory.ts'
import { goOnDeparting, nextDeparture } from '../../engine/store/postgres/people/departures.ts'
import type { Log } from '../../shared/process/log.ts'
import { startRepeated } from '../../shared/process/repeated-runs.ts'

const INTERVAL_MS = 1_000

/** The returned function stops it, and resolves when the current piece has ended. `intervalMs`: default a second. */
export function startDepartures({
  sql,
  log,
  intervalMs = INTERVAL_MS,
}: {
  readonly sql: Pick<Sql, 'transaction'>
  readonly log: Log
  readonly intervalMs?: number
}): () => Promise<void> {
  /** People take turns, and one whose piece failed keeps nobody else waiting. */
  let after = ''

  /** False: there is nothing to do. */
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
