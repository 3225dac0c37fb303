/** Serves many items with one call: items that arrive while a call runs join the next call. */
import { PdpError } from '../../shared/domain/errors.ts'

/** Calls `run` later, so that further items can join the call. */
export type Schedule = (run: () => void) => void

/** Several times as long as a healthy database takes. */
const LATE_MS = 10
/** The usual value of `BatcherOptions.late`. */
export const whenLate: Schedule = (run) => void setTimeout(run, LATE_MS).unref()

export type BatcherOptions<T> = {
  /** How many calls may run at once. */
  readonly runningMax: number
  /** The most items of one call. Default: all that wait. */
  readonly itemsMax?: number
  readonly schedule: Schedule
  /**
   * Tells when a call is late. Items that come earlier wait for its end, so that few calls serve many items; later, a second call may
   * begin. Default: while fewer than `runningMax` calls run, no item waits.
   */
  readonly late?: Schedule
  /** Serves all items. When it rejects, it has served none. */
  run(items: readonly T[]): Promise<void>
  /** Called for an item that failed in a call of its own, or in a call that failed for a reason that concerns all items. */
  fail(item: T, error: unknown): void
}

/** Collects items for joint calls. Repeats a failed call with each half of its items, so that one bad item fails no other. */
export class Batcher<T> {
  #items: T[] = []
  #running = 0
  #begun = 0
  #scheduled = false
  #watching = false
  readonly #options: BatcherOptions<T>

  constructor(options: BatcherOptions<T>) {
    this.#options = options
  }

  add(item: T): void {
    this.#items.push(item)
    this.#start()
  }

  #start(): void {
    const { runningMax, late } = this.#options
    if (this.#scheduled || this.#running >= runningMax || this.#items.length === 0) return
    if (this.#running > 0 && late !== undefined) this.#watch(late)
    else this.#begin()
  }

  #begin(): void {
    this.#scheduled = true
    this.#options.schedule(() => {
      this.#scheduled = false
      const items = this.#items.splice(0, this.#options.itemsMax ?? this.#items.length)
      this.#running++
      this.#begun++
      void this.#attempt(items).then(() => {
        this.#running--
        this.#start()
      })
      this.#start()
    })
  }

  /** Begins a second call when the first is late, perhaps by a lost connection. */
  #watch(late: Schedule): void {
    if (this.#watching) return
    this.#watching = true
    const begun = this.#begun
    late(() => {
      this.#watching = false
      const isLate = begun === this.#begun && this.#running > 0 && this.#running < this.#options.runningMax
      if (isLate && !this.#scheduled && this.#items.length > 0) this.#begin()
      else this.#start()
    })
  }

  async #attempt(items: readonly T[]): Promise<void> {
    const { run, fail } = this.#options
    try {
      await run(items)
    } catch (err) {
      if (items.length === 1 || concernsAll(err)) {
        for (const item of items) fail(item, err)
        return
      }
      const half = items.length >> 1
      await this.#attempt(items.slice(0, half))
      await this.#attempt(items.slice(half))
    }
  }
}

/** True if all items would fail alike: while the store is unavailable, a retry of single items only takes time. */
const concernsAll = (error: unknown): boolean => error instanceof PdpError && error.code === 'store_unavailable'
