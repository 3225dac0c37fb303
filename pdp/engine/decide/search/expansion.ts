/** Expands a subgoal: adds the subgoals that it depends on by its definition and its tuples. Each relation of an object is one subgoal. */

import type { ReasonStep } from '../../../shared/domain/decision.ts'
import type { JournalId } from '../../../shared/domain/journal.ts'
import type { Budget } from '../budget.ts'
import { CheckTerms } from '../check-terms.ts'
import type { Doubt } from '../conditional-tuples.ts'
import type { ConditionRun } from '../conditions/run.ts'
import { notesOf, ruleStep, tupleStep } from '../explanation.ts'
import type { Direct, Expression, From, Model } from '../model.ts'
import { levelAfter, Near } from '../near.ts'
import { OwnTuples } from '../own-tuples.ts'
import { completed, Edge, found, lean, OPEN, Subgoal, wayBy, wayByTuple } from '../subgoals.ts'
import { isUserset, Userset } from '../usersets.ts'
import { FALSE, TRUE, UNKNOWN, type View } from '../view.ts'
import { type Lean, WideRelations } from '../wide/wide-relations.ts'
import { Frontier } from './frontier.ts'

export type ExpansionOptions = {
  readonly view: View
  readonly log: JournalId
  readonly model: Model
  readonly subject: string
  readonly explains?: boolean
  readonly conditions?: ConditionRun | undefined
}

export class Expansion {
  readonly #view: View
  readonly #log: JournalId
  readonly #subject: string
  readonly #of: ExpansionOptions
  readonly #explains: boolean
  readonly #terms: CheckTerms
  readonly own: OwnTuples
  readonly #near: Near
  readonly #budget: Budget
  #root: Subgoal | null = null
  /** The queue of subgoals; null while the root depends only on its own tuples, as most do. */
  #frontier: Frontier | null = null
  #wide: WideRelations | null = null

  constructor(of: ExpansionOptions, budget: Budget) {
    this.#view = of.view
    this.#log = of.log
    this.#subject = of.subject
    this.#of = of
    this.#explains = of.explains === true
    this.#terms = new CheckTerms(of)
    this.#near = new Near(of)
    this.own = new OwnTuples(of, this.#terms, budget)
    this.#budget = budget
  }

  /** Makes the subgoal that is asked for, the root, and expands it. */
  begin(object: string, relation: string): Subgoal {
    const root = this.#subgoal(object, relation, null)
    this.#root = root
    if (root.truth === OPEN) this.expand(root)
    return root
  }

  /** The next subgoal to expand: the nearest one. */
  next(): Subgoal | undefined {
    return this.#frontier?.next()
  }

  expand(goal: Subgoal): void {
    goal.queued = true
    const unfinished = this.#wide?.unfinished
    if (unfinished?.has(goal) === true) {
      const whole = unfinished.goOn(goal)
      if (whole === null) this.#frontierOf().queueAgain(goal)
      else if (whole) completed(goal)
      return
    }
    if (!this.#budget.count(1)) return
    const whole = goal.expression === null ? this.#direct(goal, null) : this.#operand(goal, goal.expression)
    if (this.#wide?.unfinished.begun(goal, whole) === true) this.#frontierOf().queueAgain(goal)
    else if (whole) completed(goal)
  }

  /** `near`: the subgoal that depends on it; null for the root. */
  #subgoal(object: string, relation: string, near: Subgoal | null): Subgoal {
    const type = near?.object === object ? near.type : this.#terms.typeOf(object)
    const relations = this.#terms.relationsOf(type)
    const expression = relations?.get(relation) ?? null
    const goal = new Subgoal(object, type, relation, expression, 'relation')
    // Tested first, as in near.ts: a userset holds itself, whatever its definition is.
    if (this.#terms.isSubject(object, relation)) goal.truth = TRUE
    else if (relations !== undefined && expression === null && !this.#terms.isTier(object, relation)) goal.truth = FALSE
    return goal
  }

  #frontierOf(): Frontier {
    this.#frontier ??= new Frontier(this.#root)
    return this.#frontier
  }

  /** Adds to an `or` the subgoals that the expression depends on. @returns false when not everything could be read. */
  #operand(goal: Subgoal, expression: Expression): boolean {
    switch (expression.kind) {
      case 'direct':
        return this.#direct(goal, expression.allowed)
      case 'computed': {
        const { relation } = expression
        if (this.#leansOnOwn(goal, { object: goal.object, relation, fanOut: 1, byRule: true })) return true
        const steps = this.#explains ? [ruleStep(goal, relation)] : null
        return this.#lean(goal, this.#reach(goal, goal.object, relation, 1), true, steps)
      }
      case 'from':
        return this.#from(goal, expression)
      case 'union':
        return this.#union(goal, expression.parts)
      case 'intersection':
        return this.#all(goal, expression.parts, null)
      case 'exclusion':
        return this.#all(goal, [expression.base, expression.subtract], expression.subtract)
    }
  }

  #union(goal: Subgoal, parts: readonly Expression[]): boolean {
    let whole = true
    for (const part of parts) {
      if (!this.#operand(goal, part)) whole = false
      if (goal.truth === TRUE) break
    }
    return whole
  }

  /** Adds the `and` of all parts, of which `subtract` counts negated. */
  #all(goal: Subgoal, parts: readonly Expression[], subtract: Expression | null): true {
    const all = new Subgoal(goal.object, goal.type, goal.relation, null, 'all')
    for (const part of parts) {
      const computed = part.kind === 'computed' ? part.relation : null
      const to = computed === null ? this.#part(goal, part) : this.#reach(goal, goal.object, computed, 1)
      const steps = this.#explains && computed !== null ? [ruleStep(goal, computed)] : null
      lean(new Edge({ from: all, to, negative: part === subtract, byRule: true, steps }))
      if (all.truth === FALSE && !this.#explains) return true
    }
    completed(all)
    const rule = subtract === null ? 'and' : 'but not'
    return this.#lean(goal, all, true, this.#explains ? [ruleStep(goal, rule)] : null)
  }

  #part(goal: Subgoal, expression: Expression): Subgoal {
    const part = new Subgoal(goal.object, goal.type, goal.relation, expression, 'operand')
    part.level = goal.level
    this.expand(part)
    return part
  }

  /** Makes `goal` depend on `to`. @returns true: no rows are left to be read for this dependency. */
  #lean(goal: Subgoal, to: Subgoal, byRule: boolean, steps: readonly ReasonStep[] | null): true {
    if (this.#explains || to.truth === OPEN) lean(new Edge({ from: goal, to, negative: false, byRule, steps }))
    else if (to.truth === TRUE) found(goal, wayBy(to, byRule))
    return true
  }

  /** Tries to decide an operand of an `or` by `#near`, if it is near enough. @returns false if the operand is still undecided. */
  #leansOnOwn(
    goal: Subgoal,
    on: { readonly object: string; readonly relation: string; readonly fanOut: number; readonly byRule: boolean },
  ): boolean {
    if (this.#explains || !this.#frontierOf().isAlong(levelAfter(goal.level, on.fanOut), this.#budget.tuplesCount))
      return false
    const truth = this.#near.answer(on.object, on.relation, 0)
    if (truth === UNKNOWN || !this.#budget.count(this.#near.tuplesCount)) return false
    if (truth === TRUE) found(goal, on.byRule ? 'model' : wayByTuple(this.#near.way))
    return true
  }

  /** The subgoal of a relation of an object, to be expanded now or later. `fanOut`: how many such objects this step leads to. */
  #reach(goal: Subgoal, object: string, relation: string, fanOut: number): Subgoal {
    const frontier = this.#frontierOf()
    const known = frontier.find(object, relation)
    const to = known ?? this.#subgoal(object, relation, goal)
    if (known === undefined) frontier.add(to)
    if (to.truth !== OPEN || to.queued) return to
    to.level = levelAfter(goal.level, fanOut)
    // A goal that this call already decides needs no edges.
    if (frontier.isAlong(to.level, this.#budget.tuplesCount)) this.expand(to)
    else frontier.queue(to)
    return to
  }

  #from(goal: Subgoal, rule: From): boolean {
    const { tupleset, parents: allowed } = rule
    const { object } = goal
    const countMax = this.#budget.goneThroughMax
    const parents = this.#view.objects(this.#log, object, tupleset, countMax)
    if (parents === undefined) return this.#budget.missed()
    if (parents === null || !this.#budget.count(parents.length)) return this.#manyParents(goal, rule)
    for (const parent of parents) {
      if (allowed.types.has(this.#terms.typeOf(parent))) this.#parent(goal, rule, parent, parents.length, null)
      if (goal.truth === TRUE) return true
    }
    if (allowed.conditional === null) return true
    const place = { object, relation: tupleset, allowed: allowed.conditional, unmet: this.#unmet(goal) }
    const met = this.own.conditions.met(place, { kind: 'objects', countMax })
    if (met === undefined) return this.#budget.missed()
    if (met === null || !this.#budget.count(met.rows)) return this.#manyParents(goal, rule)
    for (const { subject, doubt } of met.named) this.#parent(goal, rule, subject, met.rows, doubt)
    return true
  }

  #unmet(goal: Subgoal): string[] | null {
    return this.#explains ? notesOf(goal).unmet : null
  }

  #manyParents(goal: Subgoal, rule: From): true {
    const lean: Lean = ({ subject, doubt }, fanOut) => this.#parent(goal, rule, subject, fanOut, doubt)
    return this.#wideRelations().parents(goal, rule, this.#unmet(goal), lean)
  }

  #wideRelations(): WideRelations {
    const side = { ...this.#of, conditions: this.own.conditions, budget: this.#budget }
    this.#wide ??= new WideRelations(side, this.#terms, this.own)
    return this.#wide
  }

  /** Makes `goal` depend on a parent. `doubt`: about the tuple. @returns true: no rows are left to be read for this dependency. */
  #parent(goal: Subgoal, rule: From, parent: string, fanOut: number, doubt: Doubt | null): true {
    if (goal.truth === TRUE) return true
    const { tupleset, relation } = rule
    if (doubt === null && this.#leansOnOwn(goal, { object: parent, relation, fanOut, byRule: true })) return true
    const to = this.#reach(goal, parent, relation, fanOut)
    const tuple = `${goal.object}#${tupleset}@${parent}`
    const steps = this.#explains ? [ruleStep(goal, `${relation} from ${tupleset}`), { tuple }] : null
    return this.#lean(goal, doubt === null ? to : this.own.inDoubt(to, doubt), true, steps)
  }

  /** Adds the relation's own tuples. `allowed` null: without a model, any subject counts but a wildcard. */
  #direct(goal: Subgoal, allowed: Direct | null): boolean {
    const { object, relation } = goal
    if (this.#terms.isTier(object, relation)) return this.own.tier(goal, allowed)
    let whole = true
    if (this.#terms.mayName(allowed)) {
      const named = this.#view.has(this.#log, object, relation, this.#subject)
      if (named === TRUE) {
        if (this.#explains) notesOf(goal).found = [{ tuple: `${object}#${relation}@${this.#subject}` }]
        return found(goal, 'tuple')
      }
      if (named === UNKNOWN) whole = this.#budget.missed()
      if (this.#explains) notesOf(goal).missed.push(`${object}#${relation}@${this.#subject}`)
    }
    return this.#usersets(goal, allowed) && whole
  }

  #usersets(goal: Subgoal, allowed: Direct | null): boolean {
    const { object, relation } = goal
    const countMax = this.#budget.goneThroughMax
    const usersets = this.#view.usersets(this.#log, object, relation, countMax)
    if (usersets === undefined) {
      this.#view.groups(this.#log, this.#subject) // asks for the subject's groups too, so that one load brings both
      return this.#budget.missed()
    }
    const isWide = usersets === null || !this.#budget.count(usersets.length)
    let whole = true
    if (!isWide)
      for (const userset of usersets) {
        if (this.#terms.lets(allowed, userset) && !this.#counted(goal, userset, usersets.length, null)) whole = false
        if (goal.truth === TRUE) return true
      }
    const conditional = allowed?.conditional ?? null
    if (conditional === null) return isWide ? this.#manyUsersets(goal, allowed) : whole
    const place = { object, relation, allowed: conditional, unmet: this.#unmet(goal) }
    if (!this.own.namedOnCondition(goal, place)) whole = false
    if (isWide) return this.#manyUsersets(goal, allowed) && whole
    if (![...conditional.keys()].some(isUserset)) return whole
    const met = this.own.metUsersets(place, countMax)
    if (met === undefined) return this.#budget.missed()
    if (met === null || !this.#budget.count(met.rows)) return this.#manyUsersets(goal, allowed) && whole
    for (const { subject, doubt } of met.named) {
      if (!this.#counted(goal, new Userset(subject), met.rows, doubt)) whole = false
      if (goal.truth === TRUE) return true
    }
    return whole
  }

  #manyUsersets(goal: Subgoal, allowed: Direct | null): true {
    const lean: Lean = ({ subject, doubt }, fanOut) => this.#counted(goal, new Userset(subject), fanOut, doubt)
    return this.#wideRelations().usersets(goal, allowed, this.#unmet(goal), lean)
  }

  /** Makes `goal` depend on a userset. `doubt`: about the tuple that names it. @returns false when something could not be read. */
  #counted(goal: Subgoal, userset: Userset, fanOut: number, doubt: Doubt | null): boolean {
    if (userset.isWildcard) {
      if (doubt !== null) return this.own.doubted(goal, doubt)
      if (this.#explains) notesOf(goal).found = [tupleStep(goal, userset)]
      return found(goal, 'tuple')
    }
    if (userset.isGroup && !this.#terms.groupsAreModelled) return this.own.group(goal, userset, doubt)
    const { object, relation } = userset
    if (doubt === null && this.#leansOnOwn(goal, { object, relation, fanOut, byRule: false })) return true
    const to = this.#reach(goal, object, relation, fanOut)
    const on = doubt === null ? to : this.own.inDoubt(to, doubt)
    return this.#lean(goal, on, false, this.#explains ? [tupleStep(goal, userset)] : null)
  }
}
