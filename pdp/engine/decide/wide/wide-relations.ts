/**
 * Expands a relation that names very many parents or usersets: only with those that may hold the subject, found from the
 * subject's side; or with all, when too many tuples are above the subject.
 */
import type { Budget } from '../budget.ts'
import type { CheckTerms } from '../check-terms.ts'
import type { Met, Named } from '../conditional-tuples.ts'
import type { Direct, From } from '../model.ts'
import type { OwnTuples } from '../own-tuples.ts'
import { inSteps, type Steps } from '../slices.ts'
import type { Subgoal } from '../subgoals.ts'
import { isUserset } from '../usersets.ts'
import { TRUE } from '../view.ts'
import { type Aside, MISSING, SubjectSide, type SubjectSideOptions } from './subject-side.ts'
import { Unfinished } from './unfinished.ts'

/** Makes the goal depend on a name. @returns false when something could not be read. */
export type Lean = (named: Named, fanOut: number) => boolean
/** The result when a bound was reached, so that other names may hold the subject. */
const BEYOND: Aside = { named: [], missing: false, beyond: true }
const counting = (subject: string): Named => ({ subject, doubt: null })

export class WideRelations {
  readonly #of: SubjectSideOptions
  readonly #terms: CheckTerms
  readonly #own: OwnTuples
  readonly #budget: Budget
  readonly #side: SubjectSide
  readonly unfinished = new Unfinished()

  constructor(of: SubjectSideOptions, terms: CheckTerms, own: OwnTuples) {
    this.#of = of
    this.#terms = terms
    this.#own = own
    this.#budget = of.budget
    this.#side = new SubjectSide(of)
  }

  /**
   * Makes the goal depend on parents that may hold the subject, added step by step. `unmet` collects false conditions. Always true:
   * `unfinished` tells later whether some were left out.
   */
  parents(goal: Subgoal, rule: From, unmet: string[] | null, lean: Lean): true {
    return this.unfinished.add(goal, this.#parents(goal, rule, unmet, lean))
  }

  /** Does what `parents` does, for usersets; whether a tuple names the subject itself is decided elsewhere. */
  usersets(goal: Subgoal, allowed: Direct | null, unmet: string[] | null, lean: Lean): true {
    return this.unfinished.add(goal, this.#usersets(goal, allowed, unmet, lean))
  }

  *#parents(goal: Subgoal, rule: From, unmet: string[] | null, lean: Lean): Steps<boolean> {
    const aside = yield* this.#side.parents(goal.object, rule)
    return yield* this.#leanOn(goal, aside ?? this.#allParents(goal.object, rule, unmet), lean)
  }

  *#usersets(goal: Subgoal, allowed: Direct | null, unmet: string[] | null, lean: Lean): Steps<boolean> {
    const aside = yield* this.#side.usersets(goal, allowed)
    return yield* this.#leanOn(goal, aside ?? this.#allUsersets(goal, allowed, unmet), lean)
  }

  *#leanOn(goal: Subgoal, { named, missing, beyond }: Aside, lean: Lean): Steps<boolean> {
    let whole = !beyond
    yield* inSteps(named, (one) => {
      if (!lean(one, named.length)) whole = false
      return goal.truth !== TRUE
    })
    return missing ? this.#budget.missed() : whole
  }

  #allParents(object: string, { tupleset, parents: allowed }: From, unmet: string[] | null): Aside {
    const { view, log } = this.#of
    const tooMany = `${object}#${tupleset} has too many parents`
    const parents = view.objects(log, object, tupleset, this.#budget.left)
    if (parents === undefined) return MISSING
    if (parents === null || !this.#budget.count(parents.length)) return this.#beyond(tooMany)
    const named = parents.filter((parent) => allowed.types.has(this.#terms.typeOf(parent))).map(counting)
    if (allowed.conditional === null) return { named, missing: false, beyond: false }
    const place = { object, relation: tupleset, allowed: allowed.conditional, unmet }
    return this.#withMet(
      named,
      this.#own.conditions.met(place, { kind: 'objects', countMax: this.#budget.left }),
      tooMany,
    )
  }

  #allUsersets(
    { object, relation }: { readonly object: string; readonly relation: string },
    allowed: Direct | null,
    unmet: string[] | null,
  ): Aside {
    const { view, log } = this.#of
    const tooMany = `${object}#${relation} has too many usersets`
    const usersets = view.usersets(log, object, relation, this.#budget.left)
    if (usersets === undefined) return MISSING
    if (usersets === null || !this.#budget.count(usersets.length)) return this.#beyond(tooMany)
    const named = usersets.filter((userset) => this.#terms.lets(allowed, userset)).map(({ text }) => counting(text))
    const conditional = allowed?.conditional ?? null
    if (conditional === null || ![...conditional.keys()].some(isUserset))
      return { named, missing: false, beyond: false }
    return this.#withMet(
      named,
      this.#own.metUsersets({ object, relation, allowed: conditional, unmet }, this.#budget.left),
      tooMany,
    )
  }

  #withMet(named: readonly Named[], met: Met | null | undefined, tooMany: string): Aside {
    if (met === undefined) return { ...MISSING, named }
    if (met === null || !this.#budget.count(met.rows)) return { ...this.#beyond(tooMany), named }
    return { named: [...named, ...met.named], missing: false, beyond: false }
  }

  #beyond(message: string): Aside {
    this.#budget.limited(message)
    return BEYOND
  }
}
