/** Serves many items with one call: items that arrive while a call runs join the next call. */
import { PdpError } from '../../domain/errors.ts'

/** Lets everything that the current tick brings join. */
export type Schedule = (run: () => void) => void

export type BatcherOptions<T> = {
  /** Calls under way at once. */
  readonly runningMax: number
  readonly schedule: Schedule
  /** All or nothing: when it rejects, none of the items was served. */
  run(items: readonly T[]): Promise<void>
  /** An item whose own call failed, or one of a call that failed for a reason that concerns them all. */
  fail(item: T, error: unknown): void
}

/** A call that fails is made again for each half of its items: one that cannot be served never fails another. */
export class Batcher<T> {
  #items: T[] = []
  #running = 0
  #scheduled = false
  readonly #options: BatcherOptions<T>

  constructor(options: BatcherOptions<T>) {
    this.#options = options
  }

  add(item: T): void {
    this.#items.push(item)
    this.#start()
  }

  #start(): void {
    if (this.#scheduled || this.#running >= this.#options.runningMax || this.#items.length === 0) return
    this.#scheduled = true
    this.#options.schedule(() => {
      this.#scheduled = false
      const items = this.#items
      this.#items = []
      this.#running++
      void this.#attempt(items).then(() => {
        this.#running--
        this.#start()
      })
    })
  }

  async #attempt(items: readonly T[]): Promise<void> {
    const { run, fail } = this.#options
    try {
      await run(items)
    } catch (error) {
      if (items.length === 1 || concernsAll(error)) {
        for (const item of items) fail(item, error)
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
