/**
 * The relationship engine: does `object#relation` hold `subject`? Synchronous over one view, so it sees one moment.
 * What the relation leans on is looked at level by level, each relation of each object once, and solved as it comes in.
 */
import type { Reason, ReasonStep } from '../domain/decision.ts'
import { PdpError } from '../domain/errors.ts'
import type { LogId } from '../domain/log.ts'
import { Budget } from './budget.ts'
import { CheckTerms } from './check-terms.ts'
import type { ConditionRun } from './conditions/run.ts'
import { explanationOf, notesOf, ruleStep, tupleStep } from './explanation.ts'
import { Frontier } from './frontier.ts'
import { completed, Edge, found, Gate, isNeeded, lean, OPEN, type Way, wayBy } from './gates.ts'
import type { Direct, Expression, Model } from './model.ts'
import { OwnTuples } from './own-tuples.ts'
import { EDGES_PER_STEP, EDGES_PER_VISIT, settleInSteps } from './settle.ts'
import { Slice, type Steps } from './slices.ts'
import { isUserset, Userset } from './usersets.ts'
import { FALSE, TRUE, type Truth, UNKNOWN, type View } from './view.ts'
import { WideRelations } from './wide/wide-relations.ts'

/** Tuples that are visited for one check at most. */
export const TUPLES_PER_CHECK_MAX = 100_000

/** What is within so many levels of what is being looked at is looked at along with it. */
const ALONG_MAX = 2

/** The slice is used up. */
export const PAUSED = 3

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
  #wide: WideRelations | null = null
  #settling: Steps<void> | null = null

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
    const isDone = this.#lookFurther(root, before + slice.left)
    slice.left -= this.#budget.tuplesCount - before
    return isDone && (root.truth !== OPEN || this.#settled(slice, root)) ? this.#solved(root) : PAUSED
  }

  /** @returns false when the slice was used up before it was. */
  #settled(slice: Slice, root: Gate): boolean {
    this.#settling ??= settleInSteps(root, (count) => this.#budget.count(count))
    while (this.#settling.next().done !== true) {
      slice.left -= EDGES_PER_STEP / EDGES_PER_VISIT
      if (slice.left <= 0) return false
    }
    return true
  }

  #solved(root: Gate): Truth {
    if (root.truth === TRUE || root.truth === FALSE) return root.truth
    // What is not loaded yet may decide it, whatever bound was reached in search of it.
    if (this.#budget.missing) return UNKNOWN
    const failure = this.#own.failure
    if (failure != null) throw failure
    const absent = `${root.object}#${root.relation} depends on its own absence ("but not")`
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

  /** @returns false when `until` tuples were visited before there was an end to it. */
  #lookFurther(root: Gate, until: number): boolean {
    while (root.truth === OPEN || (root.truth === FALSE && this.#explains)) {
      if (this.#budget.tuplesCount >= until) return false
      const next = this.#frontier?.next()
      if (next === undefined) return true
      if (this.#explains || next === root || isNeeded(next)) this.#look(next)
      else next.queued = false // it may come to be needed
    }
    return true
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

  #look(node: Gate): void {
    node.queued = true
    const unfinished = this.#wide?.unfinished
    if (unfinished?.has(node) === true) {
      const whole = unfinished.goOn(node)
      if (whole === null) this.#frontierOf().queueAgain(node)
      else if (whole) completed(node)
      return
    }
    if (!this.#budget.count(1)) return
    const whole = node.expression === null ? this.#direct(node, null) : this.#operand(node, node.expression)
    if (this.#wide?.unfinished.begun(node, whole) === true) this.#frontierOf().queueAgain(node)
    else if (whole) completed(node)
  }

  #frontierOf(): Frontier {
    this.#frontier ??= new Frontier(this.#root)
    return this.#frontier
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
        const steps = this.#explains ? [ruleStep(gate, relation)] : null
        return this.#lean(gate, this.#reach(gate, object, relation, 1), true, steps)
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
    const frontier = this.#frontierOf()
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

  #from(node: Gate, rule: From): boolean {
    const { tupleset, parents: allowed } = rule
    const { object } = node
    const countMax = this.#budget.goneThroughMax
    const parents = this.#view.objects(this.#log, object, tupleset, countMax)
    if (parents === undefined) return this.#budget.missed()
    if (parents === null || !this.#budget.count(parents.length)) return this.#manyParents(node, rule)
    for (const parent of parents) {
      if (allowed.types.has(this.#terms.typeOf(parent))) this.#parent(node, rule, parent, parents.length)
      if (node.truth === TRUE) return true
    }
    if (allowed.conditional === null) return true
    const place = { object, relation: tupleset, allowed: allowed.conditional, unmet: this.#unmet(node) }
    const met = this.#own.conditions.met(place, { kind: 'objects', countMax })
    if (met === undefined) return this.#budget.missed()
    if (met === null || !this.#budget.count(met.rows)) return this.#manyParents(node, rule)
    for (const parent of met.subjects) this.#parent(node, rule, parent, met.rows)
    return !met.undecided
  }

  #unmet(node: Gate): string[] | null {
    return this.#explains ? notesOf(node).unmet : null
  }

  #manyParents(node: Gate, rule: From): true {
    const lean = (parent: string, fanOut: number): true => this.#parent(node, rule, parent, fanOut)
    return this.#wideRelations().parents(node, rule, this.#unmet(node), lean)
  }

  #wideRelations(): WideRelations {
    const of = { view: this.#view, log: this.#log, model: this.#model, subject: this.#subject }
    const side = { ...of, conditions: this.#own.conditions, budget: this.#budget }
    this.#wide ??= new WideRelations(side, this.#terms, this.#own)
    return this.#wide
  }

  /** @returns true: that it leans on it is all there is to say. */
  #parent(node: Gate, rule: From, parent: string, fanOut: number): true {
    if (node.truth === TRUE) return true
    const { tupleset, relation } = rule
    if (this.#leansOnOwn(node, { object: parent, relation, fanOut, byRule: true })) return true
    const to = this.#reach(node, parent, relation, fanOut)
    const tuple = `${node.object}#${tupleset}@${parent}`
    const steps = this.#explains ? [ruleStep(node, `${relation} from ${tupleset}`), { tuple }] : null
    return this.#lean(node, to, true, steps)
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

  #usersets(node: Gate, allowed: Direct | null): boolean {
    const { object, relation } = node
    const countMax = this.#budget.goneThroughMax
    const usersets = this.#view.usersets(this.#log, object, relation, countMax)
    if (usersets === undefined) {
      this.#view.groups(this.#log, this.#subject) // both sides of the question in one load
      return this.#budget.missed()
    }
    const isWide = usersets === null || !this.#budget.count(usersets.length)
    let whole = true
    if (!isWide)
      for (const userset of usersets) {
        if (this.#terms.lets(allowed, userset) && !this.#counted(node, userset, usersets.length)) whole = false
        if (node.truth === TRUE) return true
      }
    const conditional = allowed?.conditional ?? null
    if (conditional === null) return isWide ? this.#manyUsersets(node, allowed) : whole
    const place = { object, relation, allowed: conditional, unmet: this.#unmet(node) }
    if (!this.#own.namedOnCondition(node, place)) whole = false
    if (isWide) return this.#manyUsersets(node, allowed) && whole
    if (![...conditional.keys()].some(isUserset)) return whole
    const met = this.#own.metUsersets(place, countMax)
    if (met === undefined) return this.#budget.missed()
    if (met === null || !this.#budget.count(met.rows)) return this.#manyUsersets(node, allowed) && whole
    for (const subject of met.subjects) {
      if (!this.#counted(node, new Userset(subject), met.rows)) whole = false
      if (node.truth === TRUE) return true
    }
    return whole && !met.undecided
  }

  #manyUsersets(node: Gate, allowed: Direct | null): true {
    const lean = (name: string, fanOut: number): boolean => this.#counted(node, new Userset(name), fanOut)
    return this.#wideRelations().usersets(node, allowed, this.#unmet(node), lean)
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
