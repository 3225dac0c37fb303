/** Detects a slow peer: it is idle for too long, or its average rate is too low. */

export type PaceLimits = {
  /** Longest idle time, in milliseconds. */
  readonly idleMs: number
  /** Total waiting time in milliseconds before the minimum rate counts. */
  readonly graceMs: number
  /** Minimum average rate; 0: no minimum. */
  readonly bytesPerSecondMin: number
}

/** Counts only the time between `wait` and `rest`, in which the sidecar waits for this peer. */
export class Pace {
  readonly #limits: PaceLimits
  readonly #onSlow: () => void
  #bytes = 0
  #waitedMs = 0
  #lastMs = 0
  #waiting = false
  #isSlow = false
  #timer: NodeJS.Timeout | undefined

  /** Calls `onSlow` at most once, when the transfer is idle or too slow. */
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

  /** The milliseconds until the average rate is too low. */
  #left(): number {
    const { graceMs, bytesPerSecondMin } = this.#limits
    if (bytesPerSecondMin === 0) return Number.POSITIVE_INFINITY
    return graceMs + (this.#bytes / bytesPerSecondMin) * 1_000 - this.#waitedMs
  }

  #arm(ms: number): void {
    this.#timer = setTimeout(() => this.#measure(), Math.max(1, ms))
  }

  /** Called by the timer. One timer serves many parts of a body: it is set again when the peer was active meanwhile. */
  #measure(): void {
    if (!this.#waiting) return
    const silentMs = performance.now() - this.#lastMs
    const leftMs = Math.min(this.#limits.idleMs, this.#left()) - silentMs
    // A timer may fire slightly early, so a millisecond left counts as none.
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
