/** Serves many items with one call: items that arrive while a call runs join the next call. */
import { PdpError } from '../../shared/domain/errors.ts'

/** Lets everything that the current tick brings join. */
export type Schedule = (run: () => void) => void

/** Several times what the database takes when it is well. */
const LATE_MS = 10
/** For `late`. */
export const whenLate: Schedule = (run) => void setTimeout(run, LATE_MS).unref()

export type BatcherOptions<T> = {
  /** Calls under way at once. */
  readonly runningMax: number
  /** Items of one call. Default: all that wait. */
  readonly itemsMax?: number
  readonly schedule: Schedule
  /**
   * When a call counts as late. Until then what arrives beside it waits for it to end, so that few calls serve many. Default:
   * a call begins as long as fewer than `runningMax` are under way.
   */
  readonly late?: Schedule
  /** All or nothing: when it rejects, none of the items was served. */
  run(items: readonly T[]): Promise<void>
  /** An item whose own call failed, or one of a call that failed for a reason that concerns them all. */
  fail(item: T, error: unknown): void
}

/** A call that fails is made again for each half of its items: one that cannot be served never fails another. */
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

  /** One that is late, on a connection that is gone perhaps, does not hold up everybody. */
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

/** While the store is unavailable, a retry for each item would only add waiting. */
const concernsAll = (error: unknown): boolean => error instanceof PdpError && error.code === 'store_unavailable'
