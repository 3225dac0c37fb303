/** The way in which a service's answer is edited before the client gets it. */
import type { ProblemCode } from '../../pdp/shared/base/problems.ts'

export type AnswerFilter = {
  /** The bound in bytes for a document, a line, or an event. */
  readonly bytesMax: number
  /** The forms of answers that the filter reads. */
  readonly forms: readonly AnswerForm[]
  /** Shadow mode: changes are only counted, and the answer passes as it is. */
  readonly shadow: boolean
  /**
   * The edited text of a document, or of the data of one event; null: the event is left out. Throws or rejects for a text of another
   * form.
   */
  readonly edit: (text: string) => string | null | Promise<string | null>
  /** True for each of these lines that passes. Absent: the filter reads no lines. */
  readonly keepLines?: (lines: readonly string[]) => Promise<readonly boolean[]>
  /** How items are counted; absent: they are not. */
  readonly count?: ItemCount
  /** Resolves when everything that has arrived so far is counted. */
  readonly counted?: () => Promise<unknown>
  /** Names and values, alternating, that the answer with an edited document gets. */
  readonly fields?: () => readonly string[]
}
/** The items counted so far; in a document, only if it could be read. */
export type ItemCount = { kept: number; removed: number }
/** The form of an answer. `none`: a success without a body, as for a notification. */
export type AnswerForm = 'document' | 'lines' | 'events' | 'none'

/** An answer cannot be edited, so the client gets an error instead of it. */
export class FilterError extends Error {
  override readonly name = 'FilterError'
  readonly code: ProblemCode
  constructor(message: string, code: ProblemCode = 'upstream_unavailable') {
    super(message)
    this.code = code
  }
}
