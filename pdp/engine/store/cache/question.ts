/** A question to a store, and its answer, which is evaluated over one state and names that state's positions. */

import { ENVIRONMENT, type JournalId, TOKENS, type Vector } from '../../../shared/domain/journal.ts'
import { ancestors } from '../../decide/roles.ts'
import type { Slice, Sliced } from '../../decide/slices.ts'
import type { View } from '../../decide/view.ts'

/** A view that notes the earliest expiry of the rows that it showed, in milliseconds; null: none expires. */
export type NotingView = View & { readonly validUntilMs: number | null }
/**
 * `evaluate` is pure and synchronous, and returns undefined while the view lacks rows. It may throw. When the slice is
 * used up, it returns a `Paused`, which is resumed after the slice was refilled.
 */
export type Question<T> = {
  /** The question's organization: the answer depends on its journal and its ancestors'. Null: none. */
  readonly organization: JournalId | null
  readonly evaluate: (view: NotingView, slice: Slice) => Sliced<T | undefined>
}
/** An answer, its positions, and the time in milliseconds when an expiry may end it; null: never. */
export type Fresh<T> = {
  readonly value: T
  readonly vector: Vector
  /** The journals of the vector that the answer depends on. */
  readonly logs: readonly JournalId[]
  readonly validUntilMs: number | null
}
export interface SnapshotEvaluator {
  /** Throws PdpError `store_unavailable`, `evaluation_limit`, and whatever the evaluation throws. */
  ask<T>(question: Question<T>): Promise<Fresh<T>>
  /** A view over a store in this process, by which a question is answered at once. */
  readonly currentView?: () => NotingView
}

/** The journals that every question depends on. */
export const COMMON_LOGS: readonly JournalId[] = [ENVIRONMENT, TOKENS]

/** The journals on which a question about the organization depends; undefined while rows of the tree are missing. */
export function journalsFor(view: View, organization: JournalId | null): readonly JournalId[] | undefined {
  if (organization === null) return COMMON_LOGS
  const path = ancestors(view, organization)
  if (path === undefined) return undefined
  // An unknown organization has no journal yet; the environment's journal moves when it is created.
  return [...(path.length === 0 ? [organization] : path), ...COMMON_LOGS]
}
