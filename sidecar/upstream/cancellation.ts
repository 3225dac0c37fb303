/** Tells whoever carries an exchange that it must end before its time, and why. */
import type { ProblemCode } from '../../pdp/process/problems.ts'

/** A class, as all that is made for each request and has accessors: V8 keeps for long what an accessor of a literal refers to. */
export class Cancellation {
  /** The exchange has no end of its own: a WebSocket, or a stream of events. */
  endless = false
  #code: ProblemCode | null = null
  #listener: ((code: ProblemCode) => void) | null = null

  /** Null: it may go on. */
  get code(): ProblemCode | null {
    return this.#code
  }

  /** `end` is called once, at once when the cut was made before. Only the last one given counts. */
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
