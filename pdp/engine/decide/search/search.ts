/**
 * Decides whether `object#relation` holds `subject`, when near.ts could not. Reads one view synchronously, so it sees one moment. The check
 * is the first subgoal. The subgoals on which it depends are expanded level by level, each relation of an object once, and decided as soon
 * as possible.
 */
import type { Reason } from '../../../shared/domain/decision.ts'
import { PdpError } from '../../../shared/domain/errors.ts'
import { Budget } from '../budget.ts'
import { explanationOf } from '../explanation.ts'
import type { Slice, Steps } from '../slices.ts'
import { isNeeded, OPEN, type Subgoal, type Way } from '../subgoals.ts'
import { FALSE, TRUE, type Truth, UNKNOWN } from '../view.ts'
import { Expansion, type ExpansionOptions } from './expansion.ts'
import { EDGES_PER_STEP, EDGES_PER_VISIT, settleInSteps } from './settle.ts'

/** The most tuples that are visited for one check. */
export const TUPLES_PER_CHECK_MAX = 100_000

/** The result when the slice is used up. */
export const PAUSED = 3

export class Search {
  readonly #explains: boolean
  readonly #budget: Budget
  readonly #expansion: Expansion
  #root: Subgoal | null = null
  #settling: Steps<void> | null = null

  constructor(options: ExpansionOptions & { readonly tuplesMax?: number | undefined }) {
    this.#explains = options.explains === true
    this.#budget = new Budget(options.tuplesMax ?? TUPLES_PER_CHECK_MAX)
    this.#expansion = new Expansion(options, this.#budget)
  }

  /** How many tuples have been visited. */
  get tuplesCount(): number {
    return this.#budget.tuplesCount
  }

  /** The way by which an allow holds. */
  get way(): Way {
    return this.#root?.way ?? 'tuple'
  }

  /** True when rows were missing: the answer did not depend on them, but its explanation may. */
  get lacksRows(): boolean {
    return this.#budget.missing
  }

  /** The explanation of the answer; needs `explains`. */
  get explanation(): Omit<Reason, 'code' | 'message'> {
    return explanationOf(this.#root, (count) => this.#budget.count(count))
  }

  /**
   * Searches until there is an answer or the slice ends; the next call goes on. Throws PdpError `evaluation_limit` for an answer beyond a
   * bound, or one that depends on its own absence; `condition_failed` for one that depends on a condition without a value.
   */
  holdsWithin(slice: Slice, object: string, relation: string): Truth | typeof PAUSED {
    const before = this.#budget.tuplesCount
    this.#root ??= this.#expansion.begin(object, relation)
    const root = this.#root
    const isDone = this.#searched(root, before + slice.left)
    slice.left -= this.#budget.tuplesCount - before
    return isDone && (root.truth !== OPEN || this.#settled(slice, root)) ? this.#solved(root) : PAUSED
  }

  /** Decides what is left when all is expanded. @returns false when the slice was used up before. */
  #settled(slice: Slice, root: Subgoal): boolean {
    this.#settling ??= settleInSteps(root, (count) => this.#budget.count(count))
    while (this.#settling.next().done !== true) {
      slice.left -= EDGES_PER_STEP / EDGES_PER_VISIT
      if (slice.left <= 0) return false
    }
    return true
  }

  #solved(root: Subgoal): Truth {
    if (root.truth === TRUE || root.truth === FALSE) return root.truth
    // The bound is no error yet: a row that is not loaded may still decide the root.
    if (this.#budget.missing) return UNKNOWN
    const failure = this.#expansion.own.failureOf(root)
    if (failure !== null) throw failure
    const absent = `${root.object}#${root.relation} depends on its own absence ("but not")`
    throw new PdpError('evaluation_limit', this.#budget.limit ?? absent)
  }

  /** Expands subgoals. @returns false when `until` tuples were visited before the search ended. */
  #searched(root: Subgoal, until: number): boolean {
    while (root.truth === OPEN || (root.truth === FALSE && this.#explains)) {
      if (this.#budget.tuplesCount >= until) return false
      const next = this.#expansion.next()
      if (next === undefined) return true
      if (this.#explains || next === root || isNeeded(next)) this.#expansion.expand(next)
      else next.queued = false // it may be needed later
    }
    return true
  }
}
