/** The answer of a lease: positions of journals that it covers, and two bounds of the database's clock. */
import type { JournalId, JournalPosition, Vector } from '../../../shared/domain/journal.ts'
import { atLeast, atMost } from './terms.ts'

/** `clockMs` is no later than the database's clock, `clockMsMax` no earlier: where something expires between them, ask. */
export type LeasedVector = Required<Vector>
/** The database's clock (`clockMs`) as a statement told it that was sent and answered at these times of the process's own clock. */
export type ClockReading = { readonly clockMs: number; readonly sentMs: number; readonly gotMs: number }

/** Null: a journal is not covered, so the database has to be asked. */
export function leasedVector(
  logs: readonly JournalId[],
  of: {
    readonly covered: ReadonlyMap<JournalId, JournalPosition>
    readonly reading: ClockReading
    readonly nowMs: number
  },
): LeasedVector | null {
  const { covered, nowMs, reading } = of
  const found = new Map<JournalId, JournalPosition>()
  for (const log of logs) {
    const position = covered.get(log)
    if (position === undefined) return null
    found.set(log, position)
  }
  const { clockMs, sentMs, gotMs } = reading
  return { logs: found, clockMs: clockMs + atLeast(nowMs - gotMs), clockMsMax: clockMs + atMost(nowMs - sentMs) }
}
