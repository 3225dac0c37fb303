/**
 * Searches from the subject: when a relation names too many parents or usersets to visit all, only those found here are looked up in it.
 * The search follows every tuple and rule that may lead up from the subject, so it misses none; each found name is then evaluated as usual.
 */
import type { JournalId } from '../../../shared/domain/journal.ts'
import { isWildcard, typeOf } from '../../../shared/domain/names.ts'
import type { Budget } from '../budget.ts'
import type { ConditionalTuples, Named } from '../conditional-tuples.ts'
import type { Direct, From, Model } from '../model.ts'
import { inSteps, type Steps as Slow } from '../slices.ts'
import { isUserset, subjectType } from '../usersets.ts'
import { FALSE, TRUE, UNKNOWN, type View } from '../view.ts'
import { parentKindsOf, type Step, type Steps, stepsTowards, UNMODELLED, usersetKindsOf } from './upward-steps.ts'

/** A relation's names that may hold the subject. `missing`: rows are missing. `beyond`: there may be more names. */
export type Aside = { readonly named: readonly Named[]; readonly missing: boolean; readonly beyond: boolean }
/** The usersets above the subject. `whole` false: more tuples are above it than may be visited, and these are only some. */
type ClimbResult = { readonly usersets: readonly string[]; readonly whole: boolean } | 'missing'
/** A climb under way or ended; all relations that need it share it. */
type Climb = { readonly steps: Slow<ClimbResult>; found: ClimbResult | null }
/** Names one step above. Undefined while rows are missing; null when there are too many. */
type Reached = readonly string[] | null | undefined

export type SubjectSideOptions = {
  readonly view: View
  readonly log: JournalId
  readonly model: Model
  readonly subject: string
  readonly conditions: ConditionalTuples
  readonly budget: Budget
}

export class SubjectSide {
  readonly #view: View
  readonly #log: JournalId
  readonly #model: Model
  readonly #subject: string
  readonly #conditions: ConditionalTuples
  readonly #budget: Budget
  /** Climbs by the kinds that they look for. */
  readonly #climbs = new Map<string, Climb>()

  constructor(of: SubjectSideOptions) {
    this.#conditions = of.conditions
    this.#view = of.view
    this.#log = of.log
    this.#model = of.model
    this.#subject = of.subject
    this.#budget = of.budget
  }

  /** Parents through which the rule may hold the subject. Null: too many tuples are above the subject. */
  *parents(object: string, rule: From): Slow<Aside | null> {
    const found = yield* this.#holding(parentKindsOf(this.#model, rule))
    if (found === 'missing') return MISSING
    if (!found.whole) return null
    const held = found.usersets.filter((userset) => userset.slice(userset.indexOf('#') + 1) === rule.relation)
    return yield* this.#named({ object, relation: rule.tupleset }, rule.parents, held.map(objectOf))
  }

  /** Usersets that may hold the subject, and the wildcard that does. Null: too many tuples are above the subject. */
  *usersets(place: { readonly object: string; readonly relation: string }, allowed: Direct | null): Slow<Aside | null> {
    const found = yield* this.#holding(usersetKindsOf(allowed))
    if (found === 'missing') return MISSING
    if (!found.whole) return null
    const subject = this.#subject
    const everybody = isWildcard(subject) ? subject : `${typeOf(subject)}:*`
    const wildcards = allowed === null || subject.includes('#') ? [] : [everybody]
    // `#named` also finds tuples with a condition, so wildcards are searched there, too.
    return yield* this.#named(place, allowed, [...wildcards, ...found.usersets])
  }

  /** Objects of the type whose relation may hold the subject. `whole`: false if there may be more. Undefined while rows are missing. */
  *objects(
    type: string,
    relation: string,
  ): Slow<{ readonly found: readonly string[]; readonly whole: boolean } | undefined> {
    const climb = yield* this.#holding([`${type}#${relation}`])
    return climb === 'missing' ? undefined : { found: climb.usersets.map(objectOf), whole: climb.whole }
  }

  *#named(
    place: { readonly object: string; readonly relation: string },
    allowed: Direct | null,
    names: readonly string[],
  ): Slow<Aside> {
    const named: Named[] = []
    let missing = false
    const conditional = allowed?.conditional ?? null
    const whole = yield* inSteps(names, (name) => {
      if (!this.#budget.count(1)) return false
      const plain = mayName(allowed, name) ? this.#view.has(this.#log, place.object, place.relation, name) : FALSE
      const met =
        plain === TRUE || conditional === null
          ? false
          : this.#conditions.names({ ...place, allowed: conditional, unmet: null }, name)
      if (plain === TRUE || met === true) named.push({ subject: name, doubt: null })
      else if (plain === UNKNOWN || met === null) missing = true
      else if (met !== false) named.push({ subject: name, doubt: met })
      return true
    })
    return { named, missing, beyond: !whole }
  }

  /** Usersets (`type:id#relation`) of these kinds that may hold the subject. */
  *#holding(kinds: readonly string[]): Slow<ClimbResult> {
    const name = [...kinds].sort().join(' ')
    const climb: Climb = this.#climbs.get(name) ?? { steps: this.#climb(kinds), found: null }
    this.#climbs.set(name, climb)
    while (climb.found === null) {
      const { done, value } = climb.steps.next()
      if (done === true) climb.found = value
      else yield
    }
    return climb.found
  }

  *#climb(kinds: readonly string[]): Slow<ClimbResult> {
    const steps = stepsTowards(this.#model, kinds)
    const names = this.#start()
    if (names === 'too many') return { usersets: [], whole: false }
    let missing = names === null
    // This loop also visits members that are added meanwhile, until no new one comes.
    const whole = yield* inSteps(names ?? [], (name) => {
      for (const reached of this.#above(name, steps)) {
        if (reached === undefined) missing = true
        else if (reached === null || !this.#budget.count(reached.length)) return false
        else for (const userset of reached) names?.add(userset)
      }
      return true
    })
    if (names === null || (whole && missing)) return 'missing'
    const isAsked = (name: string): boolean =>
      kinds.includes(subjectType(name)) || (this.#isUnmodelled(name) && kinds.includes(UNMODELLED))
    return { usersets: [...names].filter((name) => isUserset(name) && !isWildcard(name) && isAsked(name)), whole }
  }

  #isUnmodelled(name: string): boolean {
    return !this.#model.has(typeOf(name))
  }

  /** The names to begin with: the subject, its wildcard, and the tiers and groups that hold it. Null while rows are missing. */
  #start(): Set<string> | 'too many' | null {
    const subject = this.#subject
    const names = new Set([subject])
    if (isWildcard(subject)) return names
    if (!isUserset(subject)) names.add(`${typeOf(subject)}:*`)
    const membership = this.#view.membership(this.#log, subject)
    const closure = this.#model.has('group') ? NO_GROUPS : this.#view.closure(this.#log, subject)
    if (membership === undefined || closure === undefined) return null
    if (closure.truncated) return 'too many'
    if (membership?.status === 'active')
      for (const tier of ['active_member', membership.role]) names.add(`organization:${this.#log}#${tier}`)
    for (const group of closure.groups) names.add(group)
    return names
  }

  *#above(name: string, { from, any }: Steps): Iterable<Reached> {
    const kind = isWildcard(name) ? name : subjectType(name)
    for (const step of from.get(kind) ?? []) yield this.#reached(name, step)
    if (isUserset(name) && this.#isUnmodelled(name))
      for (const step of from.get(UNMODELLED) ?? []) yield this.#reached(name, step)
    if (!any || isWildcard(name)) return
    const named = this.#view.namedBy(this.#log, name, null)
    yield named?.filter((userset) => this.#isUnmodelled(userset))
  }

  #reached(name: string, step: Step): Reached {
    const object = name.includes('#') ? name.slice(0, name.indexOf('#')) : name
    if (step.by === 'rule') return [`${object}#${step.relation}`]
    const { type, relation } = step
    const by = step.by === 'tuple' ? { name, relation } : { name: object, relation: step.tupleset }
    const named = this.#view.namedBy(this.#log, by.name, { type, relation: by.relation })
    return step.by === 'tuple' ? named : named?.map((userset) => `${objectOf(userset)}#${relation}`)
  }
}

/** The result while rows are missing. */
export const MISSING: Aside = { named: [], missing: true, beyond: false }
const NO_GROUPS = { groups: new Set<string>(), truncated: false }
const objectOf = (userset: string): string => userset.slice(0, userset.indexOf('#'))

function mayName(allowed: Direct | null, name: string): boolean {
  if (isWildcard(name)) return allowed?.wildcards.has(typeOf(name)) === true
  return allowed === null || allowed.types.has(subjectType(name)) || allowed.usersets.has(subjectType(name))
}
