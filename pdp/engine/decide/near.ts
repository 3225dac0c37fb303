/**
 * Answers a check by recursion, if few levels and tuples suffice; it makes no subgoals. Answers UNKNOWN to anything larger or cyclic.
 * Operands are taken in the order in which a search expands subgoals, so that the reason code is the same.
 */
import type { JournalId } from '../../shared/domain/journal.ts'
import { isWildcard } from '../../shared/domain/names.ts'
import { CheckTerms, isTierOf, isUsersetOf, type Relations } from './check-terms.ts'
import type { Direct, Expression, From, Model } from './model.ts'
import type { Way } from './subgoals.ts'
import type { Userset } from './usersets.ts'
import { FALSE, TRUE, type Truth, UNKNOWN, type View } from './view.ts'

/** How many levels the recursion may go down. */
export const NEAR_LEVELS = 24
/** How many tuples may be visited for one answer. */
export const NEAR_TUPLES = 100
/** How many parents or usersets of one relation are followed. */
const FAN_OUT_MAX = 8

/** A relation whose answer is being computed. `relations`: all relations of the object's type. */
type OpenRelation = {
  readonly object: string
  readonly relations: Relations
  readonly relation: string
  readonly level: number
}

/** The level below: a step to many objects counts as several levels. */
export const levelAfter = (level: number, fanOut: number): number => level + 32 - Math.clz32(fanOut)

export class Near {
  /** The way of the last allow. */
  way: Way = 'tuple'
  /** How many tuples the last answer visited. */
  tuplesCount = 0
  readonly #view: View
  readonly #log: JournalId
  readonly #subject: string
  /** The model's terms; null without a model. */
  readonly #terms: CheckTerms | null
  #levelMax = 0

  constructor(of: { readonly view: View; readonly log: JournalId; readonly model: Model; readonly subject: string }) {
    this.#view = of.view
    this.#log = of.log
    this.#subject = of.subject
    this.#terms = of.model.size === 0 ? null : new CheckTerms(of)
  }

  /** UNKNOWN when it cannot decide. `levelMax`: how many levels it may go down; 0: only to the groups of the subject. */
  answer(object: string, relation: string, levelMax: number): Truth {
    this.#levelMax = levelMax
    this.tuplesCount = 0
    return this.#relation(object, this.#relationsOf(object), relation, 0)
  }

  #relationsOf(object: string): Relations | undefined {
    return this.#terms === null ? undefined : this.#terms.relationsOf(this.#terms.typeOf(object))
  }

  #relation(object: string, relations: Relations | undefined, relation: string, level: number): Truth {
    if (level > this.#levelMax || !this.#count(1)) return UNKNOWN
    if (isUsersetOf(this.#subject, object, relation)) return this.#held('tuple')
    if (relations === undefined) return this.#direct(object, relation, level, null)
    const expression = relations.get(relation)
    if (expression === undefined)
      return isTierOf(this.#log, object, relation) ? this.#direct(object, relation, level, null) : FALSE
    if (expression.kind === 'direct') return this.#direct(object, relation, level, expression.allowed)
    return this.#operand({ object, relations, relation, level }, expression)
  }

  #count(tuples: number): boolean {
    this.tuplesCount += tuples
    return this.tuplesCount <= NEAR_TUPLES
  }

  #held(way: Way): typeof TRUE {
    this.way = way
    return TRUE
  }

  #byRule(truth: Truth): Truth {
    return truth === TRUE ? this.#held('model') : truth
  }

  #operand(at: OpenRelation, expression: Expression): Truth {
    switch (expression.kind) {
      case 'direct':
        return this.#direct(at.object, at.relation, at.level, expression.allowed)
      case 'computed':
        return this.#byRule(this.#relation(at.object, at.relations, expression.relation, at.level + 1))
      case 'from':
        return this.#from(at, expression)
      case 'union':
        return this.#union(at, expression.parts)
      case 'intersection':
        return this.#byRule(this.#intersection(at, expression.parts))
      case 'exclusion':
        return this.#byRule(this.#exclusion(at, expression))
    }
  }

  #union(at: OpenRelation, parts: readonly Expression[]): Truth {
    let result: Truth = FALSE
    for (const part of parts) {
      const truth = this.#operand(at, part)
      if (truth === TRUE) return TRUE
      if (truth === UNKNOWN) result = UNKNOWN
    }
    return result
  }

  #intersection(at: OpenRelation, parts: readonly Expression[]): Truth {
    let result: Truth = TRUE
    for (const part of parts) {
      const truth = this.#operand(at, part)
      if (truth === FALSE) return FALSE
      if (truth === UNKNOWN) result = UNKNOWN
    }
    return result
  }

  #exclusion(at: OpenRelation, { base, subtract }: Extract<Expression, { kind: 'exclusion' }>): Truth {
    const held = this.#operand(at, base)
    if (held === FALSE) return FALSE
    const excluded = this.#operand(at, subtract)
    if (excluded === TRUE) return FALSE
    return excluded === FALSE ? held : UNKNOWN
  }

  #from({ object, level }: OpenRelation, { tupleset, relation, parents: allowed }: From): Truth {
    const terms = this.#terms
    if (terms === null || level >= this.#levelMax) return UNKNOWN
    const parents = this.#view.objects(this.#log, object, tupleset, FAN_OUT_MAX)
    if (parents == null || !this.#count(parents.length)) return UNKNOWN
    // `parents` has no tuples with a condition, so without an allow they leave the result open.
    let result: Truth = allowed.conditional === null ? FALSE : UNKNOWN
    for (const parent of parents) {
      if (!allowed.types.has(terms.typeOf(parent))) continue
      const truth = this.#relation(parent, this.#relationsOf(parent), relation, levelAfter(level, parents.length))
      if (truth === TRUE) return this.#held('model')
      if (truth === UNKNOWN) result = UNKNOWN
    }
    return result
  }

  /** Answers by the relation's own tuples. `allowed` null: without a model, any subject counts but a wildcard. */
  #direct(object: string, relation: string, level: number, allowed: Direct | null): Truth {
    if (isTierOf(this.#log, object, relation)) return UNKNOWN
    let result: Truth = allowed === null || allowed.conditional === null ? FALSE : UNKNOWN
    if (this.#terms === null ? !isWildcard(this.#subject) : this.#terms.mayName(allowed)) {
      const named = this.#view.has(this.#log, object, relation, this.#subject)
      if (named === TRUE) return this.#held('tuple')
      if (named === UNKNOWN) result = UNKNOWN
    }
    const usersets = this.#view.usersets(this.#log, object, relation, FAN_OUT_MAX)
    if (usersets == null || !this.#count(usersets.length)) return UNKNOWN
    for (const userset of usersets) {
      if (this.#terms === null ? userset.isWildcard : !this.#terms.lets(allowed, userset)) continue
      const isGroup = userset.isGroup && this.#terms?.groupsAreModelled !== true
      const truth = isGroup ? this.#group(userset) : this.#userset(userset, levelAfter(level, usersets.length))
      if (truth === TRUE) return TRUE
      if (truth === UNKNOWN) result = UNKNOWN
    }
    return result
  }

  #group(userset: Userset): Truth {
    if (isWildcard(this.#subject)) return FALSE // members of a group are named one by one
    const truth = this.#view.inGroup(this.#log, this.#subject, userset)
    return truth === TRUE ? this.#held('group') : (truth ?? UNKNOWN)
  }

  #userset(userset: Userset, level: number): Truth {
    if (userset.isWildcard) return this.#held('tuple')
    const { object } = userset
    const truth = this.#relation(object, this.#relationsOf(object), userset.relation, level)
    if (truth === TRUE && this.way === 'tuple') this.way = 'group'
    return truth
  }
}
