/** What was right at any moment of a run, by the reference and the replayed logs. */
import type { JournalId } from '../../../pdp/shared/domain/journal.ts'
import { referenceAnswer, type World } from '../../support/reference.ts'
import { worldFor } from '../conditions/world.ts'
import type { Committed } from './archive.ts'
import type { Question } from './mix.ts'
import type { Asked } from './records.ts'
import { NOTHING, type State, worldOf } from './state.ts'

export type Revision = Committed & { readonly state: State }
export type Logs = ReadonlyMap<JournalId, readonly Revision[]>
/** Milliseconds by which the two clocks' readings may be rounded apart. */
export const CLOCK_SLACK_MS = 1

export function stateOf(logs: Logs, log: JournalId, revision: number): State | undefined {
  return revision === 0 ? NOTHING : logs.get(log)?.[revision - 1]?.state
}

const ANSWERS_MAX = 300_000

/** The reference's answers, kept by vector, question and the expiries that have passed. */
export class Answers {
  readonly #known = new Map<string, readonly (boolean | null)[]>()
  readonly #expiries = new WeakMap<State, readonly number[]>()

  #expiriesOf(states: ReadonlyMap<JournalId, State>): readonly number[] {
    return [...states.values()].flatMap((state) => {
      const known = this.#expiries.get(state)
      if (known !== undefined) return known
      const found = [...state.tuples.values()].flatMap((t) => (t.expiresAtMs === null ? [] : [t.expiresAtMs]))
      this.#expiries.set(state, found)
      return found
    })
  }

  /** An instant of every kind that the request's duration offers: its begin, and each expiry in it. */
  instants(states: ReadonlyMap<JournalId, State>, { startMs, endMs }: Asked): readonly number[] {
    const begin = startMs - CLOCK_SLACK_MS
    const within = this.#expiriesOf(states).filter((e) => e > begin && e <= endMs + CLOCK_SLACK_MS)
    return [begin, ...new Set(within)]
  }

  at(
    states: ReadonlyMap<JournalId, State>,
    vector: readonly (readonly [log: JournalId, revision: number, ...rest: readonly string[]])[],
    asked: { question: Question; clockMs: number },
  ): readonly (boolean | null)[] {
    const { question, clockMs } = asked
    const epoch = Math.max(0, ...this.#expiriesOf(states).filter((e) => e <= clockMs))
    const checks = question.permissions.map((c) => `${c.resource}#${c.relation}`)
    const brought = JSON.stringify([question.context, question.contextual])
    const name = `${question.organization} ${question.subject} ${question.actor} ${checks} ${brought} ${vector.map(([l, r]) => `${l}:${r}`)} ${epoch}`
    const known = this.#known.get(name)
    if (known !== undefined) return known
    const world = worldFor(worldOf(states, epoch), question)
    const stands = question.actor === undefined || isLinked(world, question)
    const answers = question.permissions.map((check) => {
      if (!stands) return false
      const own = referenceAnswer(world, { ...question, ...check, app: null })
      if (question.actor === undefined || own !== true) return own
      return referenceAnswer(world, { ...question, ...check, subject: question.actor, app: null })
    })
    if (this.#known.size >= ANSWERS_MAX) this.#known.clear()
    this.#known.set(name, answers)
    return answers
  }
}

/** The subject lets the actor act, in the organization itself. */
function isLinked({ content, clockMs }: World, { organization, subject, actor }: Question): boolean {
  const found = content
    .get(organization)
    ?.tuples.find((t) => t.object === actor && t.relation === 'acts_for' && t.subject === subject)
  return found !== undefined && (found.expiresAtMs === null || clockMs < found.expiresAtMs)
}
