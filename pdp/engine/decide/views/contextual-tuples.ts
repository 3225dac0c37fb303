/**
 * Tuples that a question brings and that count only in its answer: a view that adds them to the stored tuples. One with the same object,
 * relation and subject as a stored tuple replaces it. Only relations use this view and it keeps nothing, so no cached row, membership or
 * role depends on these tuples.
 */

import type { ContextualTuple } from '../../../shared/domain/decision.ts'
import { invalidRequest, type ValidationIssue } from '../../../shared/domain/errors.ts'
import type { JournalId } from '../../../shared/domain/journal.ts'
import { MEMBERSHIP_RELATIONS } from '../../../shared/domain/membership.ts'
import { conditionIssue, formatTuple, tupleIssue, typeOf } from '../../../shared/domain/names.ts'
import type { TupleCondition } from '../../../shared/domain/tuple.ts'
import type { Model } from '../model.ts'
import { restrictionIssue } from '../restrictions.ts'
import { isUserset, Userset } from '../usersets.ts'
import {
  type Closure,
  type ConditionalSubject,
  FALSE,
  GROUPS_MAX,
  TRUE,
  type Truth,
  truthIn,
  type View,
} from '../view.ts'
import { viewWithout } from './removed-tuples.ts'

export const CONTEXTUAL_TUPLES_MAX = 100

/** Issues of contextual tuples that need no model to be found. */
export function contextualIssues(tuples: readonly ContextualTuple[]): readonly ValidationIssue[] {
  if (tuples.length > CONTEXTUAL_TUPLES_MAX)
    return [{ place: '/contextualTuples', message: `has more than ${CONTEXTUAL_TUPLES_MAX} items` }]
  const seen = new Set<string>()
  return tuples.flatMap((tuple, i) => {
    const message =
      tupleIssue(tuple) ?? conditionIssue(tuple.condition) ?? reservedIssue(tuple) ?? repeatedIssue(tuple, seen)
    return message === null ? [] : [{ place: placeOf(i), message }]
  })
}

/**
 * The view that relations are read from, with `tuples` and without `without`. Undefined when that is the stored view, and while the
 * model is not loaded (null), since the tuples cannot be validated before.
 * Throws PdpError `request_invalid` when the model does not let one of the tuples count.
 */
export function relationViewOf(
  stored: View,
  model: Model | null,
  log: JournalId,
  tuples: readonly ContextualTuple[],
  without: readonly ContextualTuple[] = [],
): View | undefined {
  if (model === null || (tuples.length === 0 && without.length === 0)) return undefined
  requireAllowed(tuples, model)
  const rest = viewWithout(stored, log, without)
  return tuples.length === 0 ? rest : new ContextualView(rest, log, tuples)
}

/** Problems of `withoutTuples`, the tuples that the question leaves out. They are found without the model. */
export function withoutIssues(tuples: readonly ContextualTuple[]): readonly ValidationIssue[] {
  const place = '/withoutTuples'
  if (tuples.length > CONTEXTUAL_TUPLES_MAX) return [{ place, message: `has more than ${CONTEXTUAL_TUPLES_MAX} items` }]
  return tuples.flatMap((tuple, i) => {
    const message = tupleIssue(tuple)
    return message === null ? [] : [{ place: `${place}/${i}`, message }]
  })
}

function requireAllowed(tuples: readonly ContextualTuple[], model: Model): void {
  const issues = tuples.flatMap((tuple, i) => {
    const message = restrictionIssue(model, tuple)
    return message === null ? [] : [{ place: placeOf(i), message }]
  })
  if (issues.length > 0) throw invalidRequest(issues)
}

const placeOf = (index: number): string => `/contextualTuples/${index}`

function reservedIssue({ object, relation }: ContextualTuple): string | null {
  const type = typeOf(object)
  if (type === 'organization' && MEMBERSHIP_RELATIONS.has(relation))
    return `organization#${relation} comes from memberships only, and not from a question`
  return type === 'app' ? 'what is held on an app comes from roles only, and not from a question' : null
}

function repeatedIssue(tuple: ContextualTuple, seen: Set<string>): string | null {
  const name = formatTuple(tuple)
  if (seen.has(name)) return `${name} occurs twice`
  seen.add(name)
  return null
}

const NONE: ReadonlySet<string> = new Set()
const NO_CONDITIONS: ReadonlyMap<string, TupleCondition> = new Map()
const setName = (object: string, relation: string): string => `${object}#${relation}`

class ContextualView implements View {
  readonly #stored: View
  readonly #log: JournalId
  /** The subjects of the tuples, by `object#relation`. */
  readonly #subjects = new Map<string, Set<string>>()
  /** Conditions of tuples by `object#relation`, then by subject. */
  readonly #conditional = new Map<string, Map<string, TupleCondition>>()
  /** Groups by subject, from the tuples that make it a member. */
  readonly #groups = new Map<string, Set<string>>()

  /** `log`: the question's journal; the tuples are shown in no other. */
  constructor(stored: View, log: JournalId, tuples: readonly ContextualTuple[]) {
    this.#stored = stored
    this.#log = log
    for (const { object, relation, subject, condition } of tuples) {
      const set = setName(object, relation)
      if (condition !== undefined) {
        const known = this.#conditional.get(set) ?? new Map<string, TupleCondition>()
        this.#conditional.set(set, known.set(subject, condition))
        continue
      }
      add(this.#subjects, set, subject)
      if (relation === 'member' && typeOf(object) === 'group') add(this.#groups, subject, set)
    }
  }

  #of(log: JournalId, object: string, relation: string): ReadonlySet<string> | undefined {
    return log === this.#log ? this.#subjects.get(setName(object, relation)) : undefined
  }

  has(log: JournalId, object: string, relation: string, subject: string): Truth {
    if (this.#of(log, object, relation)?.has(subject) === true) return TRUE
    if (this.#conditionsOf(log, object, relation).has(subject)) return FALSE
    return this.#stored.has(log, object, relation, subject)
  }

  usersets(log: JournalId, object: string, relation: string, countMax: number): readonly Userset[] | null | undefined {
    const stored = this.#stored.usersets(log, object, relation, countMax)
    const own = this.#of(log, object, relation) ?? NONE
    const conditional = this.#conditionsOf(log, object, relation)
    if (stored === undefined || stored === null || own.size + conditional.size === 0) return stored
    const known = new Set(stored.map(({ text }) => text))
    const more = [...own].filter((subject) => isUserset(subject) && !known.has(subject))
    const all = [...stored.filter(({ text }) => !conditional.has(text)), ...more.map((subject) => new Userset(subject))]
    return all.length > countMax ? null : all
  }

  namedBy: View['namedBy'] = (log, name, where) => {
    const stored = this.#stored.namedBy(log, name, where)
    if (stored === undefined || stored === null || log !== this.#log) return stored
    const all = new Set(stored)
    for (const sets of [this.#subjects, this.#conditional])
      for (const [set, subjects] of sets) if (subjects.has(name) && isWithin(set, where)) all.add(set)
    return [...all]
  }

  objects(log: JournalId, object: string, relation: string, countMax: number): readonly string[] | null | undefined {
    const stored = this.#stored.objects(log, object, relation, countMax)
    const own = this.#of(log, object, relation) ?? NONE
    const conditional = this.#conditionsOf(log, object, relation)
    if (stored === undefined || stored === null || own.size + conditional.size === 0) return stored
    const all = new Set(stored.filter((subject) => !conditional.has(subject)))
    for (const subject of own) if (!isUserset(subject)) all.add(subject)
    return all.size > countMax ? null : [...all]
  }

  #conditionsOf(log: JournalId, object: string, relation: string): ReadonlyMap<string, TupleCondition> {
    return (log === this.#log ? this.#conditional.get(setName(object, relation)) : undefined) ?? NO_CONDITIONS
  }

  conditionOf(log: JournalId, object: string, relation: string, subject: string): TupleCondition | null | undefined {
    if (this.#of(log, object, relation)?.has(subject) === true) return null
    const own = this.#conditionsOf(log, object, relation).get(subject)
    return own ?? this.#stored.conditionOf(log, object, relation, subject)
  }

  conditional(
    log: JournalId,
    object: string,
    relation: string,
    wanted: { readonly kind: 'usersets' | 'objects'; readonly countMax: number },
  ): readonly ConditionalSubject[] | null | undefined {
    const stored = this.#stored.conditional(log, object, relation, wanted)
    const own = this.#conditionsOf(log, object, relation)
    const plain = this.#of(log, object, relation) ?? NONE
    if (stored === undefined || stored === null || own.size + plain.size === 0) return stored
    const more = [...own].filter(([subject]) => isUserset(subject) === (wanted.kind === 'usersets'))
    const others = stored.filter(({ subject }) => !own.has(subject) && !plain.has(subject))
    const all = [...others, ...more.map(([subject, condition]) => ({ subject, condition }))]
    return all.length > wanted.countMax ? null : all
  }

  groups(log: JournalId, subject: string): readonly string[] | undefined {
    const stored = this.#stored.groups(log, subject)
    const own = log === this.#log ? this.#groups.get(subject) : undefined
    return stored === undefined || own === undefined ? stored : [...new Set([...stored, ...own])]
  }

  /** Compares groups by name, because the store's index has numbers only for its own groups. */
  inGroup(log: JournalId, subject: string, group: Userset): Truth | null {
    return truthIn(this.closure(log, subject), group)
  }

  closure(log: JournalId, subject: string): Closure | undefined {
    if (this.#groups.size === 0 || log !== this.#log) return this.#stored.closure(log, subject)
    const groups = new Set<string>()
    const from = new Set([subject])
    let missing = false
    let truncated = false
    // This loop also visits members that are added meanwhile, until no new one comes.
    for (const at of from) {
      const stored = this.#stored.closure(log, at)
      if (stored === undefined) missing = true
      truncated ||= stored?.truncated === true || groups.size > GROUPS_MAX
      for (const group of stored?.groups ?? []) groups.add(group)
      for (const reached of [at, ...(stored?.groups ?? [])])
        for (const group of this.#groups.get(reached) ?? []) {
          groups.add(group)
          from.add(group)
        }
      if (truncated) break
    }
    return missing ? undefined : { groups, truncated }
  }

  clockMs: View['clockMs'] = () => this.#stored.clockMs()
  noteUntil: View['noteUntil'] = (instantMs) => this.#stored.noteUntil(instantMs)
  membership: View['membership'] = (log, subject) => this.#stored.membership(log, subject)
  grants: View['grants'] = (log, subject) => this.#stored.grants(log, subject)
  organization: View['organization'] = (id) => this.#stored.organization(id)
  manifests: View['manifests'] = () => this.#stored.manifests()
  roles: View['roles'] = () => this.#stored.roles()
  revocations: View['revocations'] = () => this.#stored.revocations()
}

const isWithin = (set: string, where: { readonly type: string; readonly relation: string } | null): boolean =>
  where === null || (typeOf(set) === where.type && set.slice(set.indexOf('#') + 1) === where.relation)

function add(sets: Map<string, Set<string>>, key: string, value: string): void {
  const known = sets.get(key)
  if (known === undefined) sets.set(key, new Set([value]))
  else known.add(value)
}
