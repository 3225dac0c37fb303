/** Standing questions of a run: watched, and judged. What was told last must have been right within the promised second. */
import { setTimeout as delay } from 'node:timers/promises'
import { ENVIRONMENT, type JournalId, TOKENS } from '../../../pdp/shared/domain/journal.ts'
import { Answers, type Logs, type Revision, stateOf } from './answers.ts'
import type { Question } from './mix.ts'
import type { OpenNode } from './nodes.ts'
import {
  type Answered,
  type Asked,
  type DecisionRecord,
  type Push,
  type ReaderToken,
  STANDING,
  type StandingRecord,
} from './records.ts'
import { lineageIn, NOTHING, type State } from './state.ts'

type Held = Pick<Answered, 'active' | 'allowed' | 'gates'>
/** The bound that is promised, to which comes what a plain question takes at the same time: to look, and to ask. */
const LATE_MS = 1_000
const SLOWNESS_SHARE = 2
const SLOWNESS_BUCKET_MS = 250
const SAMPLE_MS = 50
/** Between the samples that decide. */
const EXACT_MS = 4
const WATCH_MS = { least: 1_500, most: 4_000 }
const REVOKED_SHARE = 0.3

/** Watches one watched question for a while, in which its token may be revoked. Ends early once `isOver`. */
export async function watchStanding(watched: {
  readonly node: OpenNode
  readonly question: Question
  readonly token: ReaderToken
  readonly revoke: (token: ReaderToken) => Promise<void>
  readonly isOver: () => boolean
}): Promise<StandingRecord> {
  const { node, question, token, isOver } = watched
  const pushes: Push[] = []
  const [startAt, startMs] = [performance.now(), Date.now()]
  const end = node.stand(question, token.value, (answered) => void pushes.push({ at: performance.now(), answered }))
  const watch = async (): Promise<void> => {
    const forMs = WATCH_MS.least + Math.random() * (WATCH_MS.most - WATCH_MS.least)
    for (let waitedMs = 0; waitedMs < forMs && !isOver(); waitedMs += SAMPLE_MS) await delay(SAMPLE_MS)
  }
  await watch()
  if (Math.random() < REVOKED_SHARE && !isOver()) {
    await watched.revoke(token)
    await watch()
  }
  end()
  return { question, token, pushes, startAt, startMs, endAt: performance.now(), endMs: Date.now() }
}

/** Each answer that was told is a decision, made between the asking and its arrival. */
export function decisionsOf({ question, pushes, startAt, startMs }: StandingRecord): readonly DecisionRecord[] {
  return pushes.flatMap(({ at, answered }) => {
    if (answered === null || !answered.active) return []
    const { active: _, ...said } = answered
    return [
      {
        question,
        ...said,
        startAt,
        startMs,
        endAt: at,
        endMs: at - startAt + startMs + 1,
        from: STANDING,
      },
    ]
  })
}

export function judgeStandings(
  logs: Logs,
  { standings, decisions }: { standings: readonly StandingRecord[]; decisions: readonly Asked[] },
  report: (message: string) => void,
): void {
  const truth = new Truth(logs)
  const boundAt = boundOver(decisions)
  for (const standing of standings) {
    const { question, startAt, endAt } = standing
    for (let at = startAt + LATE_MS; at <= endAt; at += SAMPLE_MS) {
      const held = heldAt(standing, at)
      const fromAt = at - boundAt(at)
      if (fromAt < startAt || held === 'unknown' || wasRight(truth, standing, { held, fromAt, at })) continue
      const said = held === null ? 'nothing' : held.active ? held.allowed.join(' ') : 'inactive'
      const asked = question.permissions.map((c) => `${c.resource}#${c.relation}`).join(' ')
      const wrongMs = Math.round(at - fromAt)
      report(`${question.subject} in ${question.organization} ${asked}: told ${said}, wrong for ${wrongMs} ms`)
      break
    }
  }
}

/** Milliseconds after which a standing answer may no longer be what was right before them. */
function boundOver(decisions: readonly Asked[]): (at: number) => number {
  const slowest = new Map<number, number>()
  const bucketOf = (at: number): number => Math.floor(at / SLOWNESS_BUCKET_MS)
  for (const { startAt, endAt } of decisions) {
    for (let bucket = bucketOf(startAt); bucket <= bucketOf(endAt + LATE_MS); bucket++)
      slowest.set(bucket, Math.max(slowest.get(bucket) ?? 0, endAt - startAt))
  }
  return (at) => LATE_MS + SLOWNESS_SHARE * (slowest.get(bucketOf(at)) ?? 0)
}

/** Null: nothing was told yet. */
function heldAt({ pushes }: StandingRecord, at: number): Held | null | 'unknown' {
  const last = pushes.findLast((push) => push.at <= at)
  return last === undefined ? null : (last.answered ?? 'unknown')
}

/** At some instant between the two. */
function wasRight(
  truth: Truth,
  standing: StandingRecord,
  { held, fromAt, at }: { held: Held | null; fromAt: number; at: number },
): boolean {
  if (held === null) return false
  const rightAt = (when: number): boolean => truth.isRight(standing, held, when)
  // Most are right now, or were at one of a few instants; only a suspect is looked at closely.
  for (const step of [SAMPLE_MS * 4, EXACT_MS])
    for (let when = at; when >= fromAt; when -= step) if (rightAt(when)) return true
  const { startAt, startMs } = standing
  return truth
    .changes({ fromMs: fromAt - startAt + startMs, toMs: at - startAt + startMs })
    .some((ms) => rightAt(ms - startMs + startAt))
}

/** What was right when, as far as the database's clock tells the order of commits and instants. */
export class Truth {
  readonly #logs: Logs
  readonly #answers = new Answers()

  constructor(logs: Logs) {
    this.#logs = logs
  }

  /** Instants at which something was committed. */
  changes({ fromMs, toMs }: { fromMs: number; toMs: number }): readonly number[] {
    return [...this.#logs.values()].flatMap((revisions) =>
      revisions.flatMap(({ committingMs: ms }) => (ms >= fromMs && ms <= toMs ? [ms] : [])),
    )
  }

  isRight({ question, token, startAt, startMs }: StandingRecord, held: Held, at: number): boolean {
    const { revokingAt, revokedAt } = token
    if (!held.active) return revokingAt !== null && at >= revokingAt
    if (revokedAt !== null && at > revokedAt) return false
    const clockMs = at - startAt + startMs
    const { states, right } = this.#at(question, clockMs)
    const gates = states.get(question.organization)?.gates
    return (
      right.every((allowed, i) => allowed === held.allowed[i]) &&
      question.entitlements.every((key) => held.gates[key]?.enabled === gates?.get(key))
    )
  }

  answers(question: Question, clockMs: number): readonly (boolean | null)[] {
    return this.#at(question, clockMs).right
  }

  #at(question: Question, clockMs: number) {
    const vector = this.#vectorAt(question.organization, clockMs)
    const states = new Map(vector.map(([log, revision]) => [log, stateOf(this.#logs, log, revision) ?? NOTHING]))
    return { states, right: this.#answers.at(states, vector, { question, clockMs }) }
  }

  #vectorAt(organization: string, ms: number): readonly (readonly [JournalId, number])[] {
    const revisionAt = (log: JournalId): Revision | undefined =>
      this.#logs.get(log)?.findLast(({ committingMs }) => committingMs <= ms)
    const environment: State = revisionAt(ENVIRONMENT)?.state ?? NOTHING
    return [ENVIRONMENT, TOKENS, ...lineageIn(environment, organization)].map((log) => [
      log,
      revisionAt(log)?.revision ?? 0,
    ])
  }
}
