/** Answers questions from a store that holds everything in this process: there are no rows to wait for. */

import type { JournalId, Vector } from '../../../shared/domain/journal.ts'
import { Paused } from '../../decide/slices.ts'
import type { EventLoopTurns } from '../cache/event-loop-turns.ts'
import { type Fresh, journalsFor, type SnapshotEvaluator } from '../cache/question.ts'
import type { Store } from '../contract.ts'
import type { MemoryView } from './view.ts'

/** A store that holds everything in this process, so that evaluations read it directly. */
export interface ResidentStore extends Store {
  readonly currentView: () => MemoryView
  positions(logs: readonly JournalId[]): Vector
}

export const isResident = (store: Store): store is ResidentStore => 'currentView' in store

/** Answers at once, since all rows are in memory. A paused evaluation holds a snapshot, for whose end writers wait. */
export function residentEvaluator(store: ResidentStore, turns: EventLoopTurns): SnapshotEvaluator {
  return {
    currentView: store.currentView,
    async ask({ organization, evaluate }) {
      const view = store.currentView()
      const slice = turns.newSlice()
      const fresh = <T>(value: T | undefined): Fresh<T> => {
        if (value === undefined) throw new TypeError('an evaluation lacked rows of a store that holds everything')
        const logs = journalsFor(view, organization) ?? []
        return { value, vector: store.positions(logs), logs, validUntilMs: view.validUntilMs }
      }
      const found = evaluate(view, slice)
      if (!(found instanceof Paused)) return fresh(found)
      // The snapshot begins before any other code can run, so it shows the state that the evaluation began with.
      return store.snapshot(async () => fresh(await turns.finish(found, slice)))
    },
  }
}
