/**
 * The relationship engine: does `object#relation` hold `subject`? Synchronous over one view, so it sees one moment.
 * What the relation leans on is looked at level by level, each relation of each object once, and solved as it comes in.
 */
import type { Reason, ReasonStep } from '../domain/decision.ts'
import { PdpError } from '../domain/errors.ts'
import type { LogId } from '../domain/log.ts'
import { isWildcard } from '../domain/names.ts'
import { Budget } from './budget.ts'
import { CheckTerms } from './check-terms.ts'
import type { ConditionRun } from './conditions/run.ts'
import { explanationOf, notesOf, ruleStep, tupleStep } from './explanation.ts'
import { Frontier } from './frontier.ts'
import { completed, Edge, found, Gate, isNeeded, lean, OPEN, type Way, wayBy } from './gates.ts'
import type { Direct, Expression, Model } from './model.ts'
import { OwnTuples } from './own-tuples.ts'
import { settle } from './settle.ts'
import { type Aside, SubjectSide } from './subject-side.ts'
import { isUserset, subjectType, Userset } from './usersets.ts'
import { FALSE, TRUE, type Truth, UNKNOWN, type View } from './view.ts'

/** Tuples that are visited for one check at most. */
export const TUPLES_PER_CHECK_MAX = 100_000

/** What is within so many levels of what is being looked at is looked at along with it. */
const ALONG_MAX = 2

export type RelationCheckOptions = {
  readonly view: View
  readonly log: LogId
  readonly model: Model
  readonly subject: string
  /** Looks at everything, and notes it for `explanation`. */
  readonly explains?: boolean
  readonly tuplesMax?: number | undefined
  /** Shared by the checks of one question. Default: a question without context. */
  readonly conditions?: ConditionRun | undefined
}

type From = Extract<Expression, { kind: 'from' }>

/** One check. What else can be read of it is read afterwards. */
export class RelationCheck {
  readonly #view: View
  readonly #log: LogId
  readonly #subject: string
  readonly #terms: CheckTerms
  readonly #own: OwnTuples
  readonly #model: Model
  readonly #explains: boolean
  readonly #budget: Budget
  /** How the root is allowed where its own tuples do so at once. */
  #ownWay: Way | null = null
  #root: Gate | null = null
  /** Null as long as the root leans on nothing but its own tuples, as it mostly does. */
  #frontier: Frontier | null = null
  #side: SubjectSide | null = null

  constructor(options: RelationCheckOptions) {
    this.#view = options.view
    this.#log = options.log
    this.#subject = options.subject
    this.#model = options.model
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
    return explanationOf(this.#root, (gates) => this.#budget.count(gates))
  }

  /**
   * Throws PdpError `evaluation_limit` where the answer lies beyond a bound, or depends on its own absence;
   * `condition_failed` where it depends on a condition that could not be evaluated.
   */
  holds(object: string, relation: string): Truth {
    const root = this.#begin(object, relation)
    if (root === null) return this.#ownWay === null ? FALSE : TRUE
    this.#lookFurther(root)
    if (root.truth === OPEN) settle(root, (gates) => this.#budget.count(gates))
    if (root.truth === TRUE || root.truth === FALSE) return root.truth
    // What is not loaded yet may decide it, whatever bound was reached in search of it.
    if (this.#budget.missing) return UNKNOWN
    const failure = this.#own.failure
    if (failure != null) throw failure
    const absent = `${object}#${relation} depends on its own absence ("but not")`
    throw new PdpError('evaluation_limit', this.#budget.limit ?? absent)
  }

  /** Null where the relation's own tuples decide. */
  #begin(object: string, relation: string): Gate | null {
    const own = this.#explains
      ? null
      : this.#own.answer(object, relation, this.#terms.relationsOf(this.#terms.typeOf(object)))
    if (own !== null) {
      this.#ownWay = own === FALSE ? null : own
      return null
    }
    const root = this.#gate(object, relation, null)
    this.#root = root
    if (root.truth === OPEN) this.#look(root)
    return root
  }

  #lookFurther(root: Gate): void {
    while (root.truth === OPEN || (root.truth === FALSE && this.#explains)) {
      const next = this.#frontier?.next()
      if (next === undefined) return
      if (this.#explains || isNeeded(next)) this.#look(next)
      else next.queued = false // it may come to be needed
    }
  }

  /** `near`: what leans on it. */
  #gate(object: string, relation: string, near: Gate | null): Gate {
    const type = near?.object === object ? near.type : this.#terms.typeOf(object)
    const relations = this.#terms.relationsOf(type)
    const expression = relations?.get(relation) ?? null
    const gate = new Gate(object, type, relation, expression, 'relation')
    if (relations !== undefined && expression === null && !this.#terms.isTier(object, relation)) gate.truth = FALSE
    else if (this.#terms.isSubject(object, relation)) gate.truth = TRUE
    return gate
  }

  #look(gate: Gate): void {
    gate.queued = true
    if (!this.#budget.count(1)) return
    if (gate.expression === null ? this.#direct(gate, null) : this.#operand(gate, gate.expression)) completed(gate)
  }

  /** Adds what the expression leans on to an `or`. @returns false when not all of it could be looked at. */
  #operand(gate: Gate, expression: Expression): boolean {
    switch (expression.kind) {
      case 'direct':
        return this.#direct(gate, expression.allowed)
      case 'computed': {
        const { relation } = expression
        const { object } = gate
        if (this.#leansOnOwn(gate, { object, relation, fanOut: 1, byRule: true })) return true
        return this.#lean(
          gate,
          this.#reach(gate, object, relation, 1),
          true,
          this.#explains ? [ruleStep(gate, relation)] : null,
        )
      }
      case 'from':
        return this.#from(gate, expression)
      case 'union':
        return this.#union(gate, expression.parts)
      case 'intersection':
        return this.#all(gate, expression.parts, null)
      case 'exclusion':
        return this.#all(gate, [expression.base, expression.subtract], expression.subtract)
    }
  }

  #union(gate: Gate, parts: readonly Expression[]): boolean {
    let whole = true
    for (const part of parts) {
      if (!this.#operand(gate, part)) whole = false
      if (gate.truth === TRUE) break
    }
    return whole
  }

  /** All of the parts hold, but for `subtract`, which does not. */
  #all(gate: Gate, parts: readonly Expression[], subtract: Expression | null): true {
    const all = new Gate(gate.object, gate.type, gate.relation, null, 'all')
    for (const part of parts) {
      const computed = part.kind === 'computed' ? part.relation : null
      const to = computed === null ? this.#part(gate, part) : this.#reach(gate, gate.object, computed, 1)
      const steps = this.#explains && computed !== null ? [ruleStep(gate, computed)] : null
      lean(new Edge({ from: all, to, negative: part === subtract, byRule: true, steps }))
      if (all.truth === FALSE && !this.#explains) return true
    }
    completed(all)
    const rule = subtract === null ? 'and' : 'but not'
    return this.#lean(gate, all, true, this.#explains ? [ruleStep(gate, rule)] : null)
  }

  #part(gate: Gate, expression: Expression): Gate {
    const part = new Gate(gate.object, gate.type, gate.relation, expression, 'operand')
    part.level = gate.level
    this.#look(part)
    return part
  }

  /** @returns true: that it leans on it is all there is to say. */
  #lean(gate: Gate, to: Gate, byRule: boolean, steps: readonly ReasonStep[] | null): true {
    if (this.#explains || to.truth === OPEN) lean(new Edge({ from: gate, to, negative: false, byRule, steps }))
    else if (to.truth === TRUE) found(gate, wayBy(to, byRule))
    return true
  }

  /** What `#own` answers of what the `or` leans on, where that is near enough. @returns false when it does not. */
  #leansOnOwn(
    gate: Gate,
    on: { readonly object: string; readonly relation: string; readonly fanOut: number; readonly byRule: boolean },
  ): boolean {
    if (this.#explains || levelOf(gate, on.fanOut) > (this.#frontier?.level ?? 0) + ALONG_MAX) return false
    const type = on.object === gate.object ? gate.type : this.#terms.typeOf(on.object)
    const own = this.#own.answer(on.object, on.relation, this.#terms.relationsOf(type))
    if (own === null) return false
    if (own !== FALSE) found(gate, on.byRule ? 'model' : own === 'tuple' ? 'group' : own)
    return true
  }

  /** The relation of the object, which is going to be looked at. `fanOut`: how many there are like it in the same place. */
  #reach(gate: Gate, object: string, relation: string, fanOut: number): Gate {
    this.#frontier ??= new Frontier(this.#root)
    const frontier = this.#frontier
    const known = frontier.find(object, relation)
    const to = known ?? this.#gate(object, relation, gate)
    if (known === undefined) frontier.add(to)
    if (to.truth !== OPEN || to.queued) return to
    to.level = levelOf(gate, fanOut)
    // What is decided at once needs no place in the graph.
    if (to.level <= frontier.level + ALONG_MAX) this.#look(to)
    else frontier.queue(to)
    return to
  }

  /** `all`: of however many, since those that hold the subject could not be told apart. */
  #from(node: Gate, rule: From, all = false): boolean {
    const { tupleset, parents: allowed } = rule
    const { object } = node
    const countMax = this.#budget.goneThroughMax(all)
    const parents = this.#view.objects(this.#log, object, tupleset, countMax)
    if (parents === undefined) return this.#budget.missed()
    if (parents === null || !this.#budget.count(parents.length)) return this.#fromAside(node, rule, all)
    for (const parent of parents) {
      if (allowed.types.has(this.#terms.typeOf(parent))) this.#parent(node, rule, parent, parents.length)
      if (node.truth === TRUE) return true
    }
    if (allowed.conditional === null) return true
    const unmet = this.#explains ? notesOf(node).unmet : null
    const place = { object, relation: tupleset, allowed: allowed.conditional, unmet }
    const met = this.#own.conditions.met(place, { kind: 'objects', countMax })
    if (met === undefined) return this.#budget.missed()
    if (met === null || !this.#budget.count(met.rows)) return this.#fromAside(node, rule, all)
    for (const parent of met.subjects) this.#parent(node, rule, parent, met.rows)
    return !met.undecided
  }

  #fromAside(node: Gate, rule: From, all: boolean): boolean {
    if (all) return this.#budget.limited(`${node.object}#${rule.tupleset} has too many parents`)
    const aside = this.#subjectSide().parents(node.object, rule)
    if (aside === null) return this.#from(node, rule, true)
    return this.#leansAside(aside, (parent) => this.#parent(node, rule, parent, aside.named.length))
  }

  #subjectSide(): SubjectSide {
    const of = { view: this.#view, log: this.#log, model: this.#model, subject: this.#subject }
    this.#side ??= new SubjectSide({ ...of, conditions: this.#own.conditions, budget: this.#budget })
    return this.#side
  }

  #leansAside({ named, missing, undecided }: Aside, leans: (name: string) => boolean): boolean {
    let whole = !undecided
    for (const name of named) if (!leans(name)) whole = false
    return missing ? this.#budget.missed() : whole
  }

  /** @returns true: that it leans on it is all there is to say. */
  #parent(node: Gate, rule: From, parent: string, fanOut: number): true {
    if (node.truth === TRUE) return true
    const { tupleset, relation } = rule
    if (this.#leansOnOwn(node, { object: parent, relation, fanOut, byRule: true })) return true
    const to = this.#reach(node, parent, relation, fanOut)
    const tuple = `${node.object}#${tupleset}@${parent}`
    return this.#lean(
      node,
      to,
      true,
      this.#explains ? [ruleStep(node, `${relation} from ${tupleset}`), { tuple }] : null,
    )
  }

  /** The relation's own tuples. `allowed` null: no model, so anything but a wildcard. */
  #direct(gate: Gate, allowed: Direct | null): boolean {
    const { object, relation } = gate
    if (this.#terms.isTier(object, relation)) return this.#own.tier(gate, allowed)
    let whole = true
    if (this.#terms.mayName(allowed)) {
      const named = this.#view.has(this.#log, object, relation, this.#subject)
      if (named === TRUE) {
        if (this.#explains) notesOf(gate).found = [{ tuple: `${object}#${relation}@${this.#subject}` }]
        return found(gate, 'tuple')
      }
      if (named === UNKNOWN) whole = this.#budget.missed()
      if (this.#explains) notesOf(gate).missed.push(`${object}#${relation}@${this.#subject}`)
    }
    return this.#usersets(gate, allowed) && whole
  }

  #usersets(node: Gate, allowed: Direct | null, all = false): boolean {
    const { object, relation } = node
    const countMax = this.#budget.goneThroughMax(all)
    const usersets = this.#view.usersets(this.#log, object, relation, countMax)
    if (usersets === undefined) {
      this.#view.groups(this.#log, this.#subject) // both sides of the question in one load
      return this.#budget.missed()
    }
    if (usersets === null || !this.#budget.count(usersets.length)) return this.#usersetsAside(node, allowed, all)
    let whole = true
    for (const userset of usersets) {
      if (!this.#userset(node, userset, allowed, usersets.length)) whole = false
      if (node.truth === TRUE) return true
    }
    if (allowed === null || allowed.conditional === null) return whole
    const place = { object, relation, allowed: allowed.conditional, unmet: this.#explains ? notesOf(node).unmet : null }
    if (!this.#own.namedOnCondition(node, place)) whole = false
    if (![...place.allowed.keys()].some(isUserset)) return whole
    const isWanted = (subject: string): boolean => !isWildcard(subject) || this.#terms.isOf(subjectType(subject))
    const met = this.#own.conditions.met(place, { kind: 'usersets', isWanted, countMax })
    if (met === undefined) return this.#budget.missed()
    if (met === null || !this.#budget.count(met.rows)) return this.#usersetsAside(node, allowed, all)
    for (const subject of met.subjects) {
      if (!this.#counted(node, new Userset(subject), met.rows)) whole = false
      if (node.truth === TRUE) return true
    }
    return whole && !met.undecided
  }

  #usersetsAside(node: Gate, allowed: Direct | null, all: boolean): boolean {
    const { object, relation } = node
    if (all) return this.#budget.limited(`${object}#${relation} has too many usersets`)
    const aside = this.#subjectSide().usersets({ object, relation }, allowed)
    if (aside === null) return this.#usersets(node, allowed, true)
    const conditional = allowed?.conditional ?? null
    const unmet = this.#explains ? notesOf(node).unmet : null
    const whole =
      conditional === null || this.#own.namedOnCondition(node, { object, relation, allowed: conditional, unmet })
    return this.#leansAside(aside, (name) => this.#counted(node, new Userset(name), aside.named.length)) && whole
  }

  #userset(gate: Gate, userset: Userset, allowed: Direct | null, fanOut: number): boolean {
    if (userset.isWildcard) {
      if (allowed?.wildcards.has(userset.type) !== true || !this.#terms.isOf(userset.type)) return true
    } else if (allowed !== null && !allowed.usersets.has(userset.type)) return true
    return this.#counted(gate, userset, fanOut)
  }

  /** The tuple that names it counts: what it holds is held. */
  #counted(gate: Gate, userset: Userset, fanOut: number): boolean {
    if (userset.isWildcard) {
      if (this.#explains) notesOf(gate).found = [tupleStep(gate, userset)]
      return found(gate, 'tuple')
    }
    if (userset.isGroup && !this.#terms.groupsAreModelled) return this.#own.group(gate, userset)
    const { object, relation } = userset
    if (this.#leansOnOwn(gate, { object, relation, fanOut, byRule: false })) return true
    const to = this.#reach(gate, object, relation, fanOut)
    return this.#lean(gate, to, false, this.#explains ? [tupleStep(gate, userset)] : null)
  }
}

/** A wide step counts for several. */
const levelOf = (gate: Gate, fanOut: number): number => gate.level + 32 - Math.clz32(fanOut)
