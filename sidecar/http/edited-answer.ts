/** How the answer of a service is edited before the client gets it. */
import type { ProblemCode } from '../../pdp/shared/base/problems.ts'

export type AnswerFilter = {
  /** The bound of a document, of one line and of one event. */
  readonly bytesMax: number
  /** The forms that it reads. */
  readonly forms: readonly AnswerForm[]
  /** Shadow mode: what it would change is counted, and the answer passes as it is. */
  readonly shadow: boolean
  /**
   * A document, or the data of one event: as the client gets it; null: it is left out. Throws, or rejects, for what is not of the
   * expected form.
   */
  readonly edit: (text: string) => string | null | Promise<string | null>
  /** Which of these lines pass. Absent: it reads no lines. */
  readonly keepLines?: (lines: readonly string[]) => Promise<readonly boolean[]>
  /** Absent: its items are not counted. */
  readonly count?: ItemCount
  /** Resolves when what has arrived so far is counted. */
  readonly counted?: () => Promise<unknown>
  /** Names and values in turn that a document gets, when it was edited. */
  readonly fields?: () => readonly string[]
}
/** The items that were counted so far; of a document only where it could be read. */
export type ItemCount = { kept: number; removed: number }
/** `none`: a success without a body, such as of a notification. */
export type AnswerForm = 'document' | 'lines' | 'events' | 'none'

/** The answer cannot be edited, so that nobody gets it. */
export class FilterError extends Error {
  override readonly name = 'FilterError'
  readonly code: ProblemCode
  constructor(message: string, code: ProblemCode = 'upstream_unavailable') {
    super(message)
    this.code = code
  }
}
