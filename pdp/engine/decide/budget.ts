/** Counts the tuples that a check visits, and notes what stopped it: a bound, or missing rows. */

const GONE_THROUGH_MAX = 1_000

export class Budget {
  tuplesCount = 0
  /** True when rows were missing anywhere. */
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

  /** How many parents or usersets of one relation are visited singly. A relation with more is searched from the subject's side. */
  get goneThroughMax(): number {
    return Math.min(GONE_THROUGH_MAX, this.left)
  }

  /** Counts tuples before their visit. @returns false for too many, without counting them, so that a smaller number still fits. */
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
