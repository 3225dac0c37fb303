/** What a run hands to its judges. */
import type { Change } from '../../../pdp/shared/domain/change.ts'
import type { JournalId } from '../../../pdp/shared/domain/journal.ts'
import type { Question } from './mix.ts'

/** Times are the checker's: `At` monotonic, `Ms` the wall clock, which the database on the same machine shares. */
export type Asked = {
  readonly startAt: number
  readonly startMs: number
  readonly endAt: number
  readonly endMs: number
}
export type DecisionRecord = Asked & {
  readonly question: Question
  /** Null: nothing could be said, since a condition lacked a value. */
  readonly allowed: readonly (boolean | null)[]
  readonly gates: Readonly<Record<string, { readonly enabled: boolean; readonly version: number } | null>>
  readonly vector: readonly (readonly [log: JournalId, revision: number, writeId: string])[]
  /** Undefined where the transport does not tell it. */
  readonly validUntilMs: number | null | undefined
  readonly from: string
}
/** `revision` null: its entry arrived without one, and had one before the answer. */
export type Written = { readonly revision: number | null; readonly changed: boolean } | 'refused'
/** `outcome` null: the answer was lost, so that only the archive knows whether it was committed. */
export type WriteRecord = Asked & {
  readonly log: JournalId
  readonly changes: readonly Change[]
  readonly requestId: string
  readonly outcome: Written | null
}
export type Rule = 'write' | 'vector' | 'stale' | 'future' | 'answer' | 'validity' | 'late' | 'table' | 'cache'
export type Violation = { readonly rule: Rule; readonly message: string }
/** What a decision says, however it was asked for. */
export type Answered = Pick<DecisionRecord, 'allowed' | 'gates' | 'vector' | 'validUntilMs'> & {
  /** False: the token was taken for dead, and so nothing was decided. */
  readonly active: boolean
}
/** Times are performance.now()'s: when the revocation was sent, and when it was acknowledged. */
export type ReaderToken = { readonly value: string; revokingAt: number | null; revokedAt: number | null }
export type TokenUse = Asked & { readonly token: ReaderToken; readonly active: boolean }
/** `answered` null: the node said that nobody can say. */
export type Push = { readonly at: number; readonly answered: Answered | null }
export type StandingRecord = Asked & {
  readonly question: Question
  readonly token: ReaderToken
  readonly pushes: readonly Push[]
}

/** How records of their answers are marked. */
export const STANDING = 'a watched question'
