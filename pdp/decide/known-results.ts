/** What parts of one check came to: the first few in a list, since making and asking a table costs more than those few. */
import type { ReasonStep } from '../domain/decision.ts'
import type { Truth } from './view.ts'

const LIST_MAX = 16

type KnownResult = {
  readonly object: string
  readonly relation: string
  readonly truth: Truth
  /** What was noted on the way to it. */
  readonly path: readonly ReasonStep[]
}

export class KnownResults {
  readonly #first: KnownResult[] = []
  #others: Map<string, KnownResult> | null = null

  find(object: string, relation: string): KnownResult | undefined {
    for (const known of this.#first) if (known.object === object && known.relation === relation) return known
    return this.#others?.get(`${object}#${relation}`)
  }

  add(result: KnownResult): void {
    if (this.#first.length < LIST_MAX) {
      this.#first.push(result)
      return
    }
    this.#others ??= new Map()
    this.#others.set(`${result.object}#${result.relation}`, result)
  }
}
