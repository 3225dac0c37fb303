/**
 * The relationship engine: does `object#relation` hold `subject`? Synchronous over one view, so it sees one moment.
 * The check is the first subgoal. What it leans on is expanded level by level, each relation of each object once, and solved
 * as it comes in.
 */
import type { Reason } from '../domain/decision.ts'
import { PdpError } from '../domain/errors.ts'
import type { LogId } from '../domain/log.ts'
import { Budget } from './budget.ts'
import { CheckTerms } from './check-terms.ts'
import type { ConditionRun } from './conditions/run.ts'
import { Expansion } from './expansion.ts'
import { explanationOf } from './explanation.ts'
import type { Model } from './model.ts'
import { OwnTuples } from './own-tuples.ts'
import { EDGES_PER_STEP, EDGES_PER_VISIT, settleInSteps } from './settle.ts'
import { Slice, type Steps } from './slices.ts'
import { isNeeded, OPEN, type Subgoal, type Way } from './subgoals.ts'
import { FALSE, TRUE, type Truth, UNKNOWN, type View } from './view.ts'

/** Tuples that are visited for one check at most. */
export const TUPLES_PER_CHECK_MAX = 100_000

/** The slice is used up. */
export const PAUSED = 3

export type RelationCheckOptions = {
  readonly view: View
  readonly log: LogId
  readonly model: Model
  readonly subject: string
  /** Expands everything, and notes it for `explanation`. */
  readonly explains?: boolean
  readonly tuplesMax?: number | undefined
  /** Shared by the checks of one question. Default: a question without context. */
  readonly conditions?: ConditionRun | undefined
}

/** One check. What else can be read of it is read afterwards. */
export class RelationCheck {
  readonly #options: RelationCheckOptions
  readonly #terms: CheckTerms
  readonly #own: OwnTuples
  readonly #explains: boolean
  readonly #budget: Budget
  /** How the root is allowed where its own tuples do so at once. */
  #ownWay: Way | null = null
  /** The check; null where its own tuples decide, as they mostly do. */
  #root: Subgoal | null = null
  #expansion: Expansion | null = null
  #settling: Steps<void> | null = null

  constructor(options: RelationCheckOptions) {
    this.#options = options
    this.#budget = new Budget(options.tuplesMax ?? TUPLES_PER_CHECK_MAX)
    this.#terms = new CheckTerms(options)
    this.#own = new OwnTuples(options, this.#terms, this.#budget)
    this.#explains = options.explains === true
  }

  /** Tuples visited so far. */
  get tuplesCount(): number {
    return this.#budget.tuplesCount
  }

  /** How an allow came about. */
  get way(): Way {
    return this.#ownWay ?? this.#root?.way ?? 'tuple'
  }

  /** Rows were missing, on which the answer did not depend, but its explanation may. */
  get lacksRows(): boolean {
    return this.#budget.missing
  }

  /** Of an answer to a check that explains. */
  get explanation(): Omit<Reason, 'code' | 'message'> {
    return explanationOf(this.#root, (count) => this.#budget.count(count))
  }

  /**
   * Throws PdpError `evaluation_limit` where the answer lies beyond a bound, or depends on its own absence;
   * `condition_failed` where it depends on a condition that could not be evaluated.
   */
  holds(object: string, relation: string): Truth {
    const truth = this.holdsWithin(new Slice(Number.POSITIVE_INFINITY), object, relation)
    if (truth === PAUSED) throw new TypeError('a slice without an end was used up')
    return truth
  }

  /** As `holds`, as far as the slice reaches. Called again, it goes on where it stopped. */
  holdsWithin(slice: Slice, object: string, relation: string): Truth | typeof PAUSED {
    const before = this.#budget.tuplesCount
    const root = this.#root ?? this.#begin(object, relation)
    if (root === null) return this.#ownWay === null ? FALSE : TRUE
    const isDone = this.#search(root, before + slice.left)
    slice.left -= this.#budget.tuplesCount - before
    return isDone && (root.truth !== OPEN || this.#settled(slice, root)) ? this.#solved(root) : PAUSED
  }

  /** @returns false when the slice was used up before it was. */
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
    // What is not loaded yet may decide it, whatever bound was reached in search of it.
    if (this.#budget.missing) return UNKNOWN
    const failure = this.#own.failure
    if (failure != null) throw failure
    const absent = `${root.object}#${root.relation} depends on its own absence ("but not")`
    throw new PdpError('evaluation_limit', this.#budget.limit ?? absent)
  }

  /** Null where the relation's own tuples decide. */
  #begin(object: string, relation: string): Subgoal | null {
    const own = this.#explains
      ? null
      : this.#own.answer(object, relation, this.#terms.relationsOf(this.#terms.typeOf(object)))
    if (own !== null) {
      this.#ownWay = own === FALSE ? null : own
      return null
    }
    this.#expansion = new Expansion(this.#options, this.#terms, this.#own, this.#budget)
    this.#root = this.#expansion.begin(object, relation)
    return this.#root
  }

  /** @returns false when `until` tuples were visited before there was an end to it. */
  #search(root: Subgoal, until: number): boolean {
    while (root.truth === OPEN || (root.truth === FALSE && this.#explains)) {
      if (this.#budget.tuplesCount >= until) return false
      const next = this.#expansion?.next()
      if (next === undefined) return true
      if (this.#explains || next === root || isNeeded(next)) this.#expansion?.expand(next)
      else next.queued = false // it may come to be needed
    }
    return true
  }
}
