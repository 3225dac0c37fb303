/** Tells whoever carries an exchange that it must end before its time, and why. */
import type { ProblemCode } from '../pdp/process/problems.ts'

export type Cut = {
  /** Null: it may go on. */
  readonly code: ProblemCode | null
  /** `end` is called once, at once when the cut was made before. Only the last one given counts. */
  listen(end: (code: ProblemCode) => void): void
  make(code: ProblemCode): void
}

export function createCut(): Cut {
  let made: ProblemCode | null = null
  let listener: ((code: ProblemCode) => void) | null = null
  return {
    get code() {
      return made
    },
    listen(end) {
      listener = end
      if (made !== null) end(made)
    },
    make(code) {
      if (made !== null) return
      made = code
      listener?.(code)
    },
  }
}
