/** A question to a store, and its answer: it is evaluated over one state, whose positions the answer names. */

import { ENVIRONMENT, type JournalId, TOKENS, type Vector } from '../../../shared/domain/journal.ts'
import { ancestors } from '../../decide/roles.ts'
import type { Slice, Sliced } from '../../decide/slices.ts'
import type { View } from '../../decide/view.ts'

/** A view that notes the earliest expiry among the rows that it showed (milliseconds; null for none). */
export type NotingView = View & { readonly validUntilMs: number | null }
/**
 * `evaluate` is pure and synchronous, and returns undefined while the view lacks rows. It may throw. When the slice is
 * used up, it returns a `Paused`, which is resumed after the slice was refilled.
 */
export type Question<T> = {
  /** The organization that the question is about: its answer depends on this journal and those of its ancestors. Null for none. */
  readonly organization: JournalId | null
  readonly evaluate: (view: NotingView, slice: Slice) => Sliced<T | undefined>
}
/** An answer, the positions that it holds for, and when it may stop to hold by an expiry (milliseconds; null for never). */
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
  /** The view of a store that holds everything in this process: a question is evaluated over it at once. */
  readonly currentView?: () => NotingView
}

/** The journals that every question depends on. */
export const COMMON_LOGS: readonly JournalId[] = [ENVIRONMENT, TOKENS]

/** The journals that a question about the organization depends on; undefined while the view lacks rows of the tree. */
export function journalsFor(view: View, organization: JournalId | null): readonly JournalId[] | undefined {
  if (organization === null) return COMMON_LOGS
  const path = ancestors(view, organization)
  if (path === undefined) return undefined
  // An unknown organization has no journal yet; the environment's journal moves when it is created.
  return [...(path.length === 0 ? [organization] : path), ...COMMON_LOGS]
}
