/** Runs what was added since the last run in one call: whatever arrives while a call is under way joins the next. */

/** Lets everything that the current tick brings join. */
export type Schedule = (run: () => void) => void

export class Batcher<T> {
  #items: T[] = []
  #running = 0
  #scheduled = false
  readonly #runningMax: number
  readonly #run: (items: readonly T[]) => Promise<void>
  readonly #schedule: Schedule

  /** `run` must not reject. `runningMax`: calls under way at once. */
  constructor(options: { runningMax: number; schedule: Schedule; run: (items: readonly T[]) => Promise<void> }) {
    this.#runningMax = options.runningMax
    this.#schedule = options.schedule
    this.#run = options.run
  }

  add(item: T): void {
    this.#items.push(item)
    this.#start()
  }

  #start(): void {
    if (this.#scheduled || this.#running >= this.#runningMax || this.#items.length === 0) return
    this.#scheduled = true
    this.#schedule(() => {
      this.#scheduled = false
      const items = this.#items
      this.#items = []
      this.#running++
      void this.#run(items).then(() => {
        this.#running--
        this.#start()
      })
    })
  }
}
