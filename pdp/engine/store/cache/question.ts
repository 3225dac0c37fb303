/** How questions are asked of a store: all of one question is evaluated over one state, whose position the answer names. */

import { ENVIRONMENT, type JournalId, TOKENS, type Vector } from '../../../shared/domain/journal.ts'
import { ancestors } from '../../decide/roles.ts'
import type { Slice, Sliced } from '../../decide/slices.ts'
import type { View } from '../../decide/view.ts'

/** A view that notes the earliest expiry among the rows that it showed (milliseconds; null for none). */
export type NotingView = View & { readonly validUntilMs: number | null }
/**
 * `evaluate` is pure and synchronous, and returns undefined while the view lacks rows. It may throw. Where the slice is used
 * up, what it returns is resumed once the slice has been given more.
 */
export type Question<T> = {
  /** Its journal and those of its ancestors are read at the position of the answer. Null: a question about no organization. */
  readonly organization: JournalId | null
  readonly evaluate: (view: NotingView, slice: Slice) => Sliced<T | undefined>
}
/** An answer, the moment that it holds for, and the instant from which it may not (milliseconds; null for never). */
export type Fresh<T> = {
  readonly value: T
  readonly vector: Vector
  /** Those of the vector that the answer depends on. */
  readonly logs: readonly JournalId[]
  readonly validUntilMs: number | null
}
export interface SnapshotEvaluator {
  /** Throws PdpError `store_unavailable`, `evaluation_limit`, and whatever the evaluation throws. */
  ask<T>(question: Question<T>): Promise<Fresh<T>>
  /** Where everything is in this process, a question can be evaluated at once, and lacks nothing. */
  readonly currentView?: () => NotingView
}

/** The logs that every question depends on. */
export const COMMON_LOGS: readonly JournalId[] = [ENVIRONMENT, TOKENS]

/** The journals that a question about the organization depends on; undefined while the view lacks rows of the tree. */
export function journalsFor(view: View, organization: JournalId | null): readonly JournalId[] | undefined {
  if (organization === null) return COMMON_LOGS
  const path = ancestors(view, organization)
  if (path === undefined) return undefined
  // The environment's journal is what changes when an unknown organization is created.
  return [...(path.length === 0 ? [organization] : path), ...COMMON_LOGS]
}
