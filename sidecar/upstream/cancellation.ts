/** Ends an open exchange early, with a reason. */
import type { ProblemCode } from '../../pdp/shared/base/problems.ts'

/** A class: with an object literal, V8 would keep values alive to which its accessors refer. */
export class Cancellation {
  /** True for an exchange without a natural end: a WebSocket or an event stream. */
  endless = false
  #code: ProblemCode | null = null
  #listener: ((code: ProblemCode) => void) | null = null

  /** The reason of the cancellation; null: the exchange is not cancelled. */
  get code(): ProblemCode | null {
    return this.#code
  }

  /** Calls `end` when the exchange is cancelled, or at once if it is already. A new listener replaces the one before. */
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
