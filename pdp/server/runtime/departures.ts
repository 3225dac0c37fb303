/** Goes on with the departures of deleted people, those of other PDPs too: who began one may have ended since. */

import type { Sql } from '../../engine/store/directory.ts'
import { goOnDeparting, nextDeparture } from '../../engine/store/postgres/people/departures.ts'
import type { Log } from '../../shared/process/log.ts'

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
  let running: Promise<void> | null = null
  let stopped = false
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

  async function run(): Promise<void> {
    try {
      for (let left = true; left && !stopped; ) left = await takeTurn()
    } catch (err) {
      log.warn({ event: 'departure_delayed', err })
    }
    running = null
  }

  const timer = setInterval(() => {
    running ??= run()
  }, intervalMs)
  timer.unref()
  return async () => {
    stopped = true
    clearInterval(timer)
    await running
  }
}
