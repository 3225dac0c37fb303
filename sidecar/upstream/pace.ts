/** Notices an end of a connection that is too slow: it is silent for long, or takes too long over too few bytes. */

export type PaceLimits = {
  /** Between two pieces. */
  readonly idleMs: number
  /** For which it may be slow in all. */
  readonly graceMs: number
  /** So many bytes earn another second; 0: none are wanted. */
  readonly bytesPerSecondMin: number
}

/** Only the time between `wait` and `rest` counts: what we wait for elsewhere is not the fault of that end. */
export class Pace {
  readonly #limits: PaceLimits
  readonly #onSlow: () => void
  #bytes = 0
  #waitedMs = 0
  #lastMs = 0
  #waiting = false
  #isSlow = false
  #timer: NodeJS.Timeout | undefined

  /** `onSlow` is called once at most. */
  constructor(limits: PaceLimits, onSlow: () => void) {
    this.#limits = limits
    this.#onSlow = onSlow
  }

  wait(): void {
    if (this.#waiting || this.#isSlow) return
    this.#waiting = true
    this.#lastMs = performance.now()
    this.#arm(Math.min(this.#limits.idleMs, this.#left()))
  }

  moved(bytes: number): void {
    this.#bytes += bytes
    if (!this.#waiting) return
    const nowMs = performance.now()
    this.#waitedMs += nowMs - this.#lastMs
    this.#lastMs = nowMs
    if (this.#left() <= 0) this.#end()
  }

  rest(): void {
    if (!this.#waiting) return
    this.#waiting = false
    this.#waitedMs += performance.now() - this.#lastMs
    clearTimeout(this.#timer)
  }

  /** Until it has waited longer than its bytes have earned. */
  #left(): number {
    const { graceMs, bytesPerSecondMin } = this.#limits
    if (bytesPerSecondMin === 0) return Number.POSITIVE_INFINITY
    return graceMs + (this.#bytes / bytesPerSecondMin) * 1_000 - this.#waitedMs
  }

  #arm(ms: number): void {
    this.#timer = setTimeout(() => this.#look(), Math.max(1, ms))
  }

  /** One timer for many pieces: it goes on when the end was not silent all the time. */
  #look(): void {
    if (!this.#waiting) return
    const silentMs = performance.now() - this.#lastMs
    const leftMs = Math.min(this.#limits.idleMs, this.#left()) - silentMs
    // A timer may be a little early.
    if (leftMs <= 1) this.#end()
    else this.#arm(leftMs)
  }

  #end(): void {
    if (!this.#waiting) return
    this.rest()
    this.#isSlow = true
    this.#onSlow()
  }
}
