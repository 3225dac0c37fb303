/** The strictest rule: a vector from memory is the database's content at the moment at which it is taken. */
import type { LeasedVector } from '../../../pdp/engine/store/leases/leased-vector.ts'
import type { JournalId } from '../../../pdp/shared/domain/journal.ts'
import type { Logs } from './database.ts'
import { DRIFT, TERM_MS, type World } from './world.ts'

/** Of the database's clock, by rounding. */
const ROUNDING_MS = 1e-6

/** Null: it is right. */
export function judge(said: LeasedVector, scope: readonly JournalId[], world: World): string | null {
  const { database, nowMs } = world
  const { tables, clockMs, beforeLoss } = database
  const isWithin = (logs: Logs): boolean => scope.every((log) => said.logs.get(log) === logs.get(log))
  const isClockRight = said.clockMs <= clockMs + ROUNDING_MS && said.clockMsMax >= clockMs - ROUNDING_MS
  if (isWithin(tables.logs) && isClockRight) return null
  // Writes that a failover lost may be seen until leases on them are over, as long as nothing was written after it.
  if (beforeLoss !== null && nowMs <= beforeLoss.atMs + TERM_MS / (1 - DRIFT) && isWithin(beforeLoss.logs)) return null
  const by = isClockRight ? 'by an old position' : 'by another clock'
  return `answers about ${scope.join(', ')} ${by} at ${nowMs.toFixed(1)} ms`
}
