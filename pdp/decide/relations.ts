/** The relationship engine: does `object#relation` hold `subject`? Synchronous over one view, so it sees one moment. */
import type { ReasonStep } from '../domain/decision.ts'
import { PdpError } from '../domain/errors.ts'
import type { LogId } from '../domain/log.ts'
import { MEMBERSHIP_RELATIONS } from '../domain/membership.ts'
import { typeOf } from '../domain/names.ts'
import { type Explanation, groupSteps } from './explanation.ts'
import { KnownResults } from './known-results.ts'
import type { Direct, Expression, Model } from './model.ts'
import { subjectType, type Userset } from './usersets.ts'
import { DEPTH_MAX, FALSE, TRUE, type Truth, UNKNOWN, type View } from './view.ts'

export const TUPLES_PER_CHECK_MAX = 10_000

/** How the allow came about, for the reason code: a tuple, a membership, a group above the subject, a rule of a model. */
export type Way = 'tuple' | 'membership' | 'group' | 'model'
/** The relations being evaluated, innermost first: what makes cycles visible. */
type Frame = {
  readonly object: string
  /** Of the object; '' where there is no model. */
  readonly type: string
  readonly relation: string
  readonly up: Frame | null
  readonly depth: number
}

const NO_STEPS: readonly ReasonStep[] = []
/** Deeper than any frame. */
const NOWHERE = DEPTH_MAX + 1

/** One check. `way` and `tuplesCount` are read afterwards. */
export class RelationCheck {
  way: Way = 'tuple'
  /** Tuples looked at so far. */
  tuplesCount = 0
  readonly #view: View
  readonly #log: LogId
  readonly #model: Model
  readonly #subject: string
  /** As models name it: `user`, or `group#member` for a userset. Known once it is needed. */
  #subjectType: string | null = null
  /** Results of this check that do not depend on a relation still being evaluated. */
  #known: KnownResults | null = null
  /** The outermost frame that a cycle was cut at, as its depth; results below it depend on it. */
  #cutAt = NOWHERE
  readonly #notes: Explanation | null
  /** Rows were missing somewhere. */
  #missing = false

  /** `notes`: where to note how the answer comes about, if that is asked for. */
  constructor(options: { view: View; log: LogId; model: Model; subject: string; notes: Explanation | null }) {
    this.#view = options.view
    this.#log = options.log
    this.#model = options.model
    this.#subject = options.subject
    this.#notes = options.notes
  }

  /** @throws PdpError `evaluation_limit` past 25 levels or 10,000 tuples. */
  holds(object: string, relation: string): Truth {
    try {
      return this.#relation(object, relation, null)
    } catch (error) {
      // What is not loaded yet may hold the allow that the bound was passed in search of.
      if (this.#missing && error instanceof PdpError && error.code === 'evaluation_limit') return UNKNOWN
      throw error
    }
  }

  #unknown(): Truth {
    this.#missing = true
    return UNKNOWN
  }

  #relation(object: string, relation: string, up: Frame | null): Truth {
    const type = up?.object === object ? up.type : this.#model.size === 0 ? '' : typeOf(object)
    const relations = type === '' ? undefined : this.#model.get(type)
    const expression = relations?.get(relation)
    if (relations !== undefined && expression === undefined && !this.#isTier(object, relation)) return FALSE
    if (this.#isSubject(object, relation)) return TRUE
    for (let frame = up; frame !== null; frame = frame.up) {
      if (frame.object === object && frame.relation === relation) {
        this.#cutAt = Math.min(this.#cutAt, frame.depth)
        return FALSE
      }
    }
    const depth = up === null ? 1 : up.depth + 1
    if (depth > DEPTH_MAX) throw limit(`${object}#${relation} is more than ${DEPTH_MAX} levels deep`)
    const known = this.#known?.find(object, relation)
    if (known !== undefined) {
      this.#notes?.step(...known.path)
      return known.truth
    }
    const frame: Frame = { object, type, relation, up, depth }
    const outer = this.#cutAt
    const mark = this.#notes?.stepsCount ?? 0
    this.#cutAt = NOWHERE
    const result = expression === undefined ? this.#direct(frame, null) : this.#expression(frame, expression)
    // A result that leaned on a cycle cut further out may differ when asked from elsewhere.
    if (up !== null && result !== UNKNOWN && this.#cutAt >= depth) {
      this.#known ??= new KnownResults()
      this.#known.add({ object, relation, truth: result, path: this.#notes?.stepsFrom(mark) ?? NO_STEPS })
    }
    this.#cutAt = Math.min(outer, this.#cutAt >= depth ? NOWHERE : this.#cutAt)
    return result
  }

  #expression(frame: Frame, expression: Expression): Truth {
    switch (expression.kind) {
      case 'direct':
        return this.#direct(frame, expression.allowed)
      case 'computed':
        return this.#byRule(frame, expression.relation, this.#relation(frame.object, expression.relation, frame))
      case 'from':
        return this.#byRule(frame, `${expression.relation} from ${expression.tupleset}`, this.#from(frame, expression))
      case 'union':
        return this.#union(frame, expression.parts)
      case 'intersection':
        return this.#byRule(frame, 'and', this.#intersection(frame, expression.parts))
      case 'exclusion':
        return this.#byRule(frame, 'but not', this.#exclusion(frame, expression))
    }
  }

  #byRule(frame: Frame, rule: string, result: Truth): Truth {
    if (result !== TRUE) return result
    this.way = 'model'
    this.#notes?.step({ rule: `${frame.object}#${frame.relation}: ${rule}` })
    return TRUE
  }

  /** An allow is final whatever else is missing; the rest is visited all the same, so that one load brings it all. */
  #union(frame: Frame, parts: readonly Expression[]): Truth {
    let result: Truth = FALSE
    for (const part of parts) {
      const truth = this.#expression(frame, part)
      if (truth === TRUE) return TRUE
      if (truth === UNKNOWN) result = UNKNOWN
    }
    return result
  }

  #intersection(frame: Frame, parts: readonly Expression[]): Truth {
    const steps = this.#notes?.stepsCount ?? 0
    const missing = this.#notes?.missingCount ?? 0
    let result: Truth = TRUE
    let deniedCount = 0
    for (const part of parts) {
      const truth = this.#expression(frame, part)
      if (truth === FALSE) {
        if (this.#notes === null) return FALSE
        deniedCount++
      }
      if (truth === UNKNOWN) result = UNKNOWN
    }
    if (deniedCount === 0) return result
    // One tuple can make good for one part only.
    this.#notes?.forget(steps, deniedCount > 1 ? missing : null)
    return FALSE
  }

  #exclusion(frame: Frame, { base, subtract }: Extract<Expression, { kind: 'exclusion' }>): Truth {
    const steps = this.#notes?.stepsCount ?? 0
    const before = this.#notes?.missingCount ?? 0
    const held = this.#expression(frame, base)
    if (held === FALSE && this.#notes === null) return FALSE
    const after = this.#notes?.missingCount ?? 0
    const mark = this.#notes?.stepsCount ?? 0
    const excluded = this.#expression(frame, subtract)
    // What would make the exclusion true does not help, and what makes it true cannot be made good by a tuple.
    this.#notes?.forget(mark, excluded === TRUE ? before : after)
    if (held === FALSE) return FALSE
    if (excluded !== FALSE) this.#notes?.forget(steps, null)
    if (excluded === TRUE) return FALSE
    return held === UNKNOWN || excluded === UNKNOWN ? UNKNOWN : TRUE
  }

  #from(frame: Frame, rule: Extract<Expression, { kind: 'from' }>): Truth {
    const parents = this.#view.objects(this.#log, frame.object, rule.tupleset)
    if (parents === undefined) return this.#unknown()
    this.#count(parents.length)
    let result: Truth = FALSE
    for (const parent of parents) {
      if (!rule.parents.types.has(typeOf(parent))) continue
      const truth = this.#relation(parent, rule.relation, frame)
      if (truth === TRUE) {
        this.#notes?.step({ tuple: `${frame.object}#${rule.tupleset}@${parent}` })
        return TRUE
      }
      if (truth === UNKNOWN) result = UNKNOWN
    }
    return result
  }

  /** The relation's own tuples. `allowed` null: no model, so anything but a wildcard. */
  #direct(frame: Frame, allowed: Direct | null): Truth {
    const { object, relation } = frame
    this.#count(1)
    if (this.#isTier(object, relation)) return this.#tier(relation, allowed)
    let result: Truth = FALSE
    if (this.#mayName(allowed)) {
      const named = this.#view.has(this.#log, object, relation, this.#subject)
      if (named === TRUE) {
        this.way = 'tuple'
        this.#notes?.step({ tuple: `${object}#${relation}@${this.#subject}` })
        return TRUE
      }
      result = named === UNKNOWN ? this.#unknown() : named
      this.#notes?.miss(`${object}#${relation}@${this.#subject}`)
    }
    const usersets = this.#view.usersets(this.#log, object, relation)
    if (usersets === undefined) {
      this.#view.groups(this.#log, this.#subject) // both sides of the question in one load
      return this.#unknown()
    }
    this.#count(usersets.length)
    for (const userset of usersets) {
      const truth = this.#userset(frame, userset, allowed)
      if (truth === TRUE) return TRUE
      if (truth === UNKNOWN) result = UNKNOWN
    }
    return result
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
  #tier(relation: string, allowed: Direct | null): Truth {
    if (!this.#mayName(allowed)) return FALSE
    const membership = this.#view.membership(this.#log, this.#subject)
    if (membership === undefined) return this.#unknown()
    if (membership?.status !== 'active' || (relation !== 'active_member' && relation !== membership.role)) return FALSE
    this.way = 'membership'
    this.#notes?.step({ member: `organization:${this.#log}#${relation}@${this.#subject}` })
    return TRUE
  }

  #mayName(allowed: Direct | null): boolean {
    if (allowed === null) return true
    this.#subjectType ??= subjectType(this.#subject)
    return allowed.types.has(this.#subjectType) || allowed.usersets.has(this.#subjectType)
  }

  #userset(frame: Frame, userset: Userset, allowed: Direct | null): Truth {
    if (userset.isWildcard) {
      if (allowed?.wildcards.has(userset.type) !== true || !this.#isOf(userset.type)) return FALSE
      this.way = 'tuple'
      this.#notes?.step({ tuple: `${frame.object}#${frame.relation}@${userset.text}` })
      return TRUE
    }
    if (allowed !== null && !allowed.usersets.has(userset.type)) return FALSE
    const truth =
      userset.isGroup && (this.#model.size === 0 || !this.#model.has('group'))
        ? this.#group(userset)
        : this.#relation(userset.object, userset.relation, frame)
    if (truth !== TRUE) return truth
    if (this.way === 'tuple') this.way = 'group'
    this.#notes?.step({ tuple: `${frame.object}#${frame.relation}@${userset.text}` })
    return TRUE
  }

  /** A userset asked about is only ever found by name: it is a subject of no type. */
  #isOf(type: string): boolean {
    return this.#subject.startsWith(`${type}:`) && !this.#subject.includes('#')
  }

  /** From the subject's side, so that a large group costs nothing. */
  #group(userset: Userset): Truth {
    const truth = this.#view.inGroup(this.#log, this.#subject, userset)
    if (truth === FALSE) this.#notes?.miss(`${userset.text}@${this.#subject}`)
    if (truth !== TRUE) return truth === UNKNOWN ? this.#unknown() : truth
    this.way = 'group'
    this.#notes?.step(
      ...groupSteps(this.#view, this.#log, { subject: this.#subject, group: userset.text }).toReversed(),
    )
    return TRUE
  }

  #count(tuples: number): void {
    this.tuplesCount += tuples
    if (this.tuplesCount > TUPLES_PER_CHECK_MAX) throw limit(`more than ${TUPLES_PER_CHECK_MAX} tuples were visited`)
  }
}

function limit(message: string): PdpError {
  return new PdpError('evaluation_limit', message)
}
