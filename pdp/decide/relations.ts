/**
 * The relationship engine: does `object#relation` hold `subject`? Synchronous over one view, so it sees one moment.
 * What the relation leans on is looked at level by level, each relation of each object once, and solved as it comes in.
 */
import type { Reason, ReasonStep } from '../domain/decision.ts'
import { PdpError } from '../domain/errors.ts'
import type { LogId } from '../domain/log.ts'
import { MEMBERSHIP_RELATIONS } from '../domain/membership.ts'
import { isWildcard, typeOf } from '../domain/names.ts'
import { ConditionalTuples, type Met, type Place, type Wanted } from './conditional-tuples.ts'
import type { ConditionRun } from './conditions/run.ts'
import { explanationOf, groupSteps, notesOf, ruleStep, tupleStep } from './explanation.ts'
import { GateTable } from './gate-table.ts'
import { completed, decide, Edge, Gate, isNeeded, lean, OPEN, type Way, wayBy } from './gates.ts'
import type { Direct, Expression, Model } from './model.ts'
import { settle } from './settle.ts'
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

/** One check. What else can be read of it is read afterwards. */
export class RelationCheck {
  /** Tuples looked at so far. */
  tuplesCount = 0
  readonly #view: View
  readonly #log: LogId
  readonly #model: Model
  readonly #subject: string
  readonly #explains: boolean
  readonly #tuplesMax: number
  readonly #conditional: ConditionalTuples
  /** As models name it: `user`, or `group#member` for a userset. Known once it is needed. */
  #subjectType: string | null = null
  #root: Gate | null = null
  /** Null as long as the root leans on nothing but its own tuples, as it mostly does. */
  #table: GateTable | null = null
  /** What is still to be looked at, by level: what is near comes first, and nothing wide goes before it. */
  #levels: (Gate[] | undefined)[] | null = null
  /** Of what is being looked at. */
  #level = 0
  /** Rows were missing somewhere. */
  #missing = false
  /** The first bound that was reached. */
  #limit: string | null = null

  constructor(options: RelationCheckOptions) {
    this.#view = options.view
    this.#log = options.log
    this.#model = options.model
    this.#subject = options.subject
    this.#explains = options.explains === true
    this.#tuplesMax = options.tuplesMax ?? TUPLES_PER_CHECK_MAX
    this.#conditional = new ConditionalTuples(options.view, options.log, options.conditions ?? null)
  }

  /** How an allow came about. */
  get way(): Way {
    return this.#root?.way ?? 'tuple'
  }

  /** Rows were missing, on which the answer did not depend, but its explanation may. */
  get lacksRows(): boolean {
    return this.#missing
  }

  /** Of an answer to a check that explains. */
  get explanation(): Omit<Reason, 'code' | 'message'> {
    return explanationOf(this.#root, (gates) => this.#count(gates))
  }

  /**
   * Throws PdpError `evaluation_limit` where the answer lies beyond a bound, or depends on its own absence;
   * `condition_failed` where it depends on a condition that could not be evaluated.
   */
  holds(object: string, relation: string): Truth {
    const root = this.#gate(object, relation, null)
    this.#root = root
    if (root.truth === OPEN) this.#look(root)
    if (this.#levels !== null) this.#lookFurther(root, this.#levels)
    if (root.truth === OPEN) settle(root, (gates) => this.#count(gates))
    if (root.truth === TRUE || root.truth === FALSE) return root.truth
    // What is not loaded yet may decide it, whatever bound was reached in search of it.
    if (this.#missing) return UNKNOWN
    if (this.#conditional.failure !== null) throw this.#conditional.failure
    const own = `${object}#${relation} depends on its own absence ("but not")`
    throw new PdpError('evaluation_limit', this.#limit ?? own)
  }

  #lookFurther(root: Gate, levels: readonly (readonly Gate[] | undefined)[]): void {
    for (let level = 1; level < levels.length; level++) {
      this.#level = level
      for (const gate of levels[level] ?? []) {
        if (root.truth === TRUE || (root.truth === FALSE && !this.#explains)) return
        if (this.#explains || isNeeded(gate)) this.#look(gate)
        else gate.queued = false // it may come to be needed
      }
    }
  }

  /** `near`: what leans on it. */
  #gate(object: string, relation: string, near: Gate | null): Gate {
    const type = near?.object === object ? near.type : this.#model.size === 0 ? '' : typeOf(object)
    const relations = type === '' ? undefined : this.#model.get(type)
    const expression = relations?.get(relation) ?? null
    const gate = new Gate(object, type, relation, expression, 'relation')
    if (relations !== undefined && expression === null && !this.#isTier(object, relation)) gate.truth = FALSE
    else if (this.#isSubject(object, relation)) gate.truth = TRUE
    return gate
  }

  #look(gate: Gate): void {
    gate.queued = true
    if (!this.#count(1)) return
    if (gate.expression === null ? this.#direct(gate, null) : this.#operand(gate, gate.expression)) completed(gate)
  }

  /** Adds what the expression leans on to an `or`. @returns false when not all of it could be looked at. */
  #operand(gate: Gate, expression: Expression): boolean {
    switch (expression.kind) {
      case 'direct':
        return this.#direct(gate, expression.allowed)
      case 'computed': {
        const to = this.#reach(gate, gate.object, expression.relation, 1)
        return this.#lean(gate, to, true, this.#explains ? [ruleStep(gate, expression.relation)] : null)
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
    else if (to.truth === TRUE) this.#found(gate, wayBy(to, byRule))
    return true
  }

  /** The relation of the object, which is going to be looked at. `fanOut`: how many there are like it in the same place. */
  #reach(gate: Gate, object: string, relation: string, fanOut: number): Gate {
    this.#table ??= this.#newTable()
    const known = this.#table.find(object, relation)
    const to = known ?? this.#gate(object, relation, gate)
    if (known === undefined) this.#table.add(to)
    if (to.truth !== OPEN || to.queued) return to
    to.level = gate.level + 32 - Math.clz32(fanOut)
    // What is decided at once needs no place in the graph.
    if (to.level <= this.#level + ALONG_MAX) this.#look(to)
    else this.#queue(to)
    return to
  }

  #newTable(): GateTable {
    const table = new GateTable()
    if (this.#root !== null) table.add(this.#root)
    return table
  }

  #queue(gate: Gate): void {
    gate.queued = true
    this.#levels ??= []
    const ofLevel = this.#levels[gate.level]
    if (ofLevel === undefined) this.#levels[gate.level] = [gate]
    else ofLevel.push(gate)
  }

  #from(gate: Gate, rule: Extract<Expression, { kind: 'from' }>): boolean {
    const { tupleset, parents: allowed } = rule
    const { object } = gate
    const parents = this.#view.objects(this.#log, object, tupleset, this.#tuplesMax - this.tuplesCount)
    if (parents === undefined) return this.#missed()
    if (parents === null || !this.#count(parents.length))
      return this.#limited(`${object}#${tupleset} has too many parents`)
    for (const parent of parents) {
      if (allowed.types.has(typeOf(parent))) this.#parent(gate, rule, parent, parents.length)
      if (gate.truth === TRUE) return true
    }
    if (allowed.conditional === null) return true
    const unmet = this.#explains ? notesOf(gate).unmet : null
    const met = this.#met({ object, relation: tupleset, allowed: allowed.conditional, unmet }, { kind: 'objects' })
    for (const parent of met?.subjects ?? []) this.#parent(gate, rule, parent, met?.rows ?? 1)
    return met?.undecided === false
  }

  #parent(node: Gate, rule: Extract<Expression, { kind: 'from' }>, parent: string, fanOut: number): void {
    if (node.truth === TRUE) return
    const { tupleset, relation } = rule
    const to = this.#reach(node, parent, relation, fanOut)
    const tuple = `${node.object}#${tupleset}@${parent}`
    this.#lean(node, to, true, this.#explains ? [ruleStep(node, `${relation} from ${tupleset}`), { tuple }] : null)
  }

  /** Null when not all of them could be read. */
  #met(place: Place, wanted: Omit<Wanted, 'countMax'>): Met | null {
    const met = this.#conditional.met(place, { ...wanted, countMax: this.#tuplesMax - this.tuplesCount })
    if (met === undefined) this.#missed()
    else if (met === null || !this.#count(met.rows))
      this.#limited(`${place.object}#${place.relation} has too many tuples with conditions`)
    else return met
    return null
  }

  /** The relation's own tuples. `allowed` null: no model, so anything but a wildcard. */
  #direct(gate: Gate, allowed: Direct | null): boolean {
    const { object, relation } = gate
    if (this.#isTier(object, relation)) return this.#tier(gate, allowed)
    let whole = true
    if (this.#mayName(allowed)) {
      const named = this.#view.has(this.#log, object, relation, this.#subject)
      if (named === TRUE) {
        if (this.#explains) notesOf(gate).found = [{ tuple: `${object}#${relation}@${this.#subject}` }]
        return this.#found(gate, 'tuple')
      }
      if (named === UNKNOWN) whole = this.#missed()
      if (this.#explains) notesOf(gate).missed.push(`${object}#${relation}@${this.#subject}`)
    }
    const usersets = this.#view.usersets(this.#log, object, relation)
    if (usersets === undefined) {
      this.#view.groups(this.#log, this.#subject) // both sides of the question in one load
      return this.#missed()
    }
    if (!this.#count(usersets.length)) return false
    for (const userset of usersets) {
      if (!this.#userset(gate, userset, allowed, usersets.length)) whole = false
      if (gate.truth === TRUE) return true
    }
    if (allowed === null || allowed.conditional === null) return whole
    return this.#conditionalDirect(gate, allowed.conditional) && whole
  }

  /** Tuples with a condition, which are kept apart from those without. */
  #conditionalDirect(node: Gate, allowed: NonNullable<Direct['conditional']>): boolean {
    const { object, relation } = node
    const place = { object, relation, allowed, unmet: this.#explains ? notesOf(node).unmet : null }
    const named = this.#conditional.names(place, this.#subject)
    if (named === TRUE) {
      if (this.#explains) notesOf(node).found = [{ tuple: `${object}#${relation}@${this.#subject}` }]
      return this.#found(node, 'tuple')
    }
    if (named === null) this.#missed()
    const isWanted = (subject: string): boolean => !isWildcard(subject) || this.#isOf(subjectType(subject))
    const met = [...allowed.keys()].some(isUserset) ? this.#met(place, { kind: 'usersets', isWanted }) : NONE_MET
    let whole = named === FALSE && met?.undecided === false
    for (const subject of met?.subjects ?? []) {
      if (!this.#counted(node, new Userset(subject), met?.rows ?? 1)) whole = false
      if (node.truth === TRUE) break
    }
    return whole
  }

  #found(gate: Gate, way: Way): true {
    gate.way = way
    decide(gate, TRUE)
    return true
  }

  /** A userset holds itself, whatever its relation says. */
  #isSubject(object: string, relation: string): boolean {
    const subject = this.#subject
    return subject.length === object.length + 1 + relation.length && subject === `${object}#${relation}`
  }

  #isTier(object: string, relation: string): boolean {
    if (!object.startsWith('organization:') || !MEMBERSHIP_RELATIONS.has(relation)) return false
    return object.length === 'organization:'.length + this.#log.length && object.endsWith(this.#log)
  }

  /** Tiers come from memberships only; no tier implies another unless the model says so. */
  #tier(gate: Gate, allowed: Direct | null): boolean {
    const { relation } = gate
    if (!this.#mayName(allowed)) return true
    const membership = this.#view.membership(this.#log, this.#subject)
    if (membership === undefined) return this.#missed()
    if (membership?.status !== 'active' || (relation !== 'active_member' && relation !== membership.role)) return true
    if (this.#explains) notesOf(gate).found = [{ member: `organization:${this.#log}#${relation}@${this.#subject}` }]
    return this.#found(gate, 'membership')
  }

  /** Asked about everybody of a type, no tuple names them but the wildcard itself, which is a userset. */
  #mayName(allowed: Direct | null): boolean {
    if (isWildcard(this.#subject)) return false
    if (allowed === null) return true
    this.#subjectType ??= subjectType(this.#subject)
    return allowed.types.has(this.#subjectType) || allowed.usersets.has(this.#subjectType)
  }

  #userset(gate: Gate, userset: Userset, allowed: Direct | null, fanOut: number): boolean {
    if (userset.isWildcard) {
      if (allowed?.wildcards.has(userset.type) !== true || !this.#isOf(userset.type)) return true
    } else if (allowed !== null && !allowed.usersets.has(userset.type)) return true
    return this.#counted(gate, userset, fanOut)
  }

  /** The tuple that names it counts: what it holds is held. */
  #counted(gate: Gate, userset: Userset, fanOut: number): boolean {
    if (userset.isWildcard) {
      if (this.#explains) notesOf(gate).found = [tupleStep(gate, userset)]
      return this.#found(gate, 'tuple')
    }
    if (userset.isGroup && !this.#model.has('group')) return this.#group(gate, userset)
    const to = this.#reach(gate, userset.object, userset.relation, fanOut)
    return this.#lean(gate, to, false, this.#explains ? [tupleStep(gate, userset)] : null)
  }

  /** A userset asked about is only ever found by name: it is a subject of no type. */
  #isOf(type: string): boolean {
    return this.#subject.startsWith(`${type}:`) && !this.#subject.includes('#')
  }

  /** From the subject's side, so that a large group costs nothing. */
  #group(gate: Gate, userset: Userset): boolean {
    if (isWildcard(this.#subject)) return true // a group names its members
    const truth = this.#view.inGroup(this.#log, this.#subject, userset)
    if (truth === FALSE) {
      if (this.#explains) notesOf(gate).missed.push(`${userset.text}@${this.#subject}`)
      return true
    }
    if (truth === UNKNOWN) return this.#missed()
    if (truth === null) return this.#limited(`${this.#subject} is in too many groups`)
    if (this.#explains) {
      const groups = groupSteps(this.#view, this.#log, { subject: this.#subject, group: userset.text })
      notesOf(gate).found = [tupleStep(gate, userset), ...groups]
    }
    return this.#found(gate, 'group')
  }

  #missed(): false {
    this.#missing = true
    return false
  }

  #limited(message: string): false {
    this.#limit ??= message
    return false
  }

  /** What does not fit is not begun, so that what is smaller can still be looked at. */
  #count(tuples: number): boolean {
    if (this.tuplesCount + tuples > this.#tuplesMax)
      return this.#limited(`more than ${this.#tuplesMax} tuples would have to be visited`)
    this.tuplesCount += tuples
    return true
  }
}

const NONE_MET: Met = { subjects: [], undecided: false, rows: 0 }
