/** Evaluates questions over a snapshot of the store, and loads rows when they turn out to be needed. */

import { PdpError } from '../../../shared/domain/errors.ts'
import { ENVIRONMENT, type JournalId } from '../../../shared/domain/journal.ts'
import type { Snapshot, Store } from '../contract.ts'
import type { EventLoopTurns } from './event-loop-turns.ts'
import { JournalRows } from './journal-rows.ts'
import { type Fresh, journalsFor, type Question, type SnapshotEvaluator } from './question.ts'
import { keysOfLoad } from './row-keys.ts'
import { RowsView } from './rows-view.ts'

/** The most loads of one evaluation; every load brings at least one more level of the sets that a relation depends on. */
const LOADS_MAX = 1_000

/** Throws PdpError `store_unavailable`, `evaluation_limit`, and whatever the evaluation throws. */
export function evaluateAt<T>(store: Store, turns: EventLoopTurns, question: Question<T>): Promise<Fresh<T>> {
  return turns.inSnapshot(question.organization, () => store.snapshot((at) => evaluatorOf(at, turns).ask(question)))
}

/** Answers all questions at the snapshot's moment, so rows that one question has loaded serve the next. */
export function evaluatorOf(at: Snapshot, turns: EventLoopTurns): SnapshotEvaluator {
  const held = new Map<JournalId, JournalRows>()
  const rowsOf = (log: JournalId): JournalRows => {
    const rows = held.get(log) ?? new JournalRows(log, null)
    held.set(log, rows)
    return rows
  }
  const view = new RowsView(rowsOf, 0)
  let clockMs: number | null = null
  return {
    async ask(question) {
      for (let load = 0; load < LOADS_MAX; load++) {
        view.begin(clockMs ?? 0)
        const logs = journalsFor(view, question.organization)
        const slice = turns.newSlice()
        const value = await turns.finish(question.evaluate(view, slice), slice)
        if (clockMs !== null && value !== undefined && logs !== undefined) {
          const { validUntilMs } = view
          const { vector } = await at.rows(logs, [])
          return { value, vector: { clockMs, logs: vector.logs }, logs, validUntilMs }
        }
        const reading = await at.rows([ENVIRONMENT], keysOfLoad(load + 1, view.needed))
        // The clock is the first statement's: with a later one, a row could expire between two parts of one answer.
        clockMs ??= reading.vector.clockMs
        for (const rows of reading.rows) rowsOf(rows.key.log).install(rows)
      }
      throw new PdpError('evaluation_limit', `the question needs more than ${LOADS_MAX} loads`)
    },
  }
}
