/** The visits that a check may still make, and what kept it from making more: a bound, or missing rows. */

const GONE_THROUGH_MAX = 1_000

export class Budget {
  tuplesCount = 0
  /** Rows were missing somewhere. */
  missing = false
  /** The first bound that was reached. */
  limit: string | null = null
  readonly #tuplesMax: number

  constructor(tuplesMax: number) {
    this.#tuplesMax = tuplesMax
  }

  get left(): number {
    return this.#tuplesMax - this.tuplesCount
  }

  /** Parents or usersets of one relation; of more, those are looked for that hold the subject. */
  get goneThroughMax(): number {
    return Math.min(GONE_THROUGH_MAX, this.left)
  }

  /** Refuses a piece that does not fit before it is begun, so that a smaller one can still be read. */
  count(tuples: number): boolean {
    if (this.tuplesCount + tuples > this.#tuplesMax)
      return this.limited(`more than ${this.#tuplesMax} tuples would have to be visited`)
    this.tuplesCount += tuples
    return true
  }

  missed(): false {
    this.missing = true
    return false
  }

  limited(message: string): false {
    this.limit ??= message
    return false
  }
}
