/** Ends an open exchange early, with a reason. */
import type { ProblemCode } from '../../pdp/shared/base/problems.ts'

/** A class: with an object literal, V8 would keep values alive to which its accessors refer. */
export class Cancellation {
  /** True for an exchange without a natural end: a WebSocket or an event stream. */
  endless = false
  #code: ProblemCode | null = null
  #listener: ((code: ProblemCode) => void) | null = null

  /** Null: not cancelled. */
  get code(): ProblemCode | null {
    return this.#code
  }

  /** Calls `end` once, at once if already cancelled. A later listener replaces an earlier one. */
  listen(end: (code: ProblemCode) => void): void {
    this.#listener = end
    if (this.#code !== null) end(this.#code)
  }

  cancel(code: ProblemCode): void {
    if (this.#code !== null) return
    this.#code = code
    this.#listener?.(code)
  }
}
