/** Decides what a relation's own tuples say without further subgoals: tiers, groups, conditions, and doubts about them. */

import { PdpError } from '../../shared/domain/errors.ts'
import type { JournalId } from '../../shared/domain/journal.ts'
import { isWildcard } from '../../shared/domain/names.ts'
import type { Budget } from './budget.ts'
import type { CheckTerms } from './check-terms.ts'
import { type AskedRelation, ConditionalTuples, type Doubt, type Met } from './conditional-tuples.ts'
import type { ConditionRun } from './conditions/run.ts'
import { groupSteps, notesOf, tupleStep } from './explanation.ts'
import type { Direct } from './model.ts'
import { Edge, found, lean, Subgoal, undecidedBelow } from './subgoals.ts'
import { subjectType, type Userset } from './usersets.ts'
import { FALSE, UNKNOWN, type View } from './view.ts'

export class OwnTuples {
  readonly #view: View
  readonly #log: JournalId
  readonly #subject: string
  readonly #terms: CheckTerms
  readonly #budget: Budget
  readonly #explains: boolean
  readonly #run: ConditionRun | null
  /** Reads tuples with a condition; null until a relation allows one, as few do. */
  #conditional: ConditionalTuples | null = null
  /** Doubts by the subgoal that they keep from being decided. */
  readonly #doubts = new Map<Subgoal, Doubt[]>()

  constructor(
    of: {
      readonly view: View
      readonly log: JournalId
      readonly subject: string
      readonly explains?: boolean
      readonly conditions?: ConditionRun | undefined
    },
    terms: CheckTerms,
    budget: Budget,
  ) {
    this.#view = of.view
    this.#log = of.log
    this.#subject = of.subject
    this.#terms = terms
    this.#budget = budget
    this.#explains = of.explains === true
    this.#run = of.conditions ?? null
  }

  get conditions(): ConditionalTuples {
    this.#conditional ??= new ConditionalTuples(this.#view, this.#log, this.#run)
    return this.#conditional
  }

  /** Notes that the goal may hold by a tuple with a doubt. @returns false: the goal is not complete without it. */
  doubted(goal: Subgoal, doubt: Doubt): false {
    const known = this.#doubts.get(goal)
    if (known === undefined) this.#doubts.set(goal, [doubt])
    else known.push(doubt)
    return false
  }

  /** A subgoal for a tuple in doubt that leads to `to`: false when `to` is false, and otherwise undecided. */
  inDoubt(to: Subgoal, doubt: Doubt): Subgoal {
    // `both` is never completed, so it can become false but never true.
    const both = new Subgoal(to.object, to.type, to.relation, null, 'all')
    lean(new Edge({ from: both, to, negative: false, byRule: true, steps: null }))
    this.doubted(both, doubt)
    return both
  }

  /** The error for a root that conditions left undecided, with all parameters that have no value; null when another reason did. */
  failureOf(root: Subgoal): PdpError | null {
    if (this.#doubts.size === 0) return null
    const [first, ...others] = [...undecidedBelow(root)].flatMap((goal) => this.#doubts.get(goal) ?? [])
    if (first === undefined) return null
    const missing = new Set([first, ...others].flatMap((doubt) => doubt.missing))
    return new PdpError('condition_failed', first.message, { missingContext: [...missing].sort() })
  }

  /** Decides a membership tier: only a membership gives a tier, and a tier implies another only if the model says so. */
  tier(goal: Subgoal, allowed: Direct | null): boolean {
    const { relation } = goal
    if (!this.#terms.mayName(allowed)) return true
    const membership = this.#view.membership(this.#log, this.#subject)
    if (membership === undefined) return this.#budget.missed()
    if (membership?.status !== 'active' || (relation !== 'active_member' && relation !== membership.role)) return true
    if (this.#explains) notesOf(goal).found = [{ member: `organization:${this.#log}#${relation}@${this.#subject}` }]
    return found(goal, 'membership')
  }

  /** Decides whether a tuple with a condition names the subject itself. @returns false when that is not known. */
  namedOnCondition(goal: Subgoal, place: AskedRelation): boolean {
    const named = this.conditions.names(place, this.#subject)
    if (named === null) return this.#budget.missed()
    if (typeof named === 'object') return this.doubted(goal, named)
    if (!named) return true
    if (this.#explains) notesOf(goal).found = [{ tuple: `${place.object}#${place.relation}@${this.#subject}` }]
    return found(goal, 'tuple')
  }

  /** The usersets whose conditions are met, and the subject's wildcard likewise. */
  metUsersets(place: AskedRelation, countMax: number): Met | null | undefined {
    const isWanted = (subject: string): boolean => !isWildcard(subject) || this.#terms.isOf(subjectType(subject))
    return this.conditions.met(place, { kind: 'usersets', isWanted, countMax })
  }

  /** Looks among the subject's own groups, so that a large group costs nothing. `doubt`: about the tuple with the group. */
  group(goal: Subgoal, userset: Userset, doubt: Doubt | null): boolean {
    if (isWildcard(this.#subject)) return true // members of a group are named one by one
    const truth = this.#view.inGroup(this.#log, this.#subject, userset)
    if (truth === FALSE) {
      if (this.#explains) notesOf(goal).missed.push(`${userset.text}@${this.#subject}`)
      return true
    }
    if (truth === UNKNOWN) return this.#budget.missed()
    if (truth === null) return this.#budget.limited(`${this.#subject} is in too many groups`)
    if (doubt !== null) return this.doubted(goal, doubt)
    if (this.#explains) {
      const groups = groupSteps(this.#view, this.#log, { subject: this.#subject, group: userset.text })
      notesOf(goal).found = [tupleStep(goal, userset), ...groups]
    }
    return found(goal, 'group')
  }
}
