/**
 * Judges a run. A decision is right if its vector stood at some point of the order in which writes became visible, not before
 * anything that was known when it was asked, not after it was answered, and if the reference gives the same answers there.
 */
import { isDeepStrictEqual } from 'node:util'
import type { Change } from '../../../pdp/shared/domain/change.ts'
import { ENVIRONMENT, type JournalId, TOKENS } from '../../../pdp/shared/domain/journal.ts'
import { Answers, CLOCK_SLACK_MS, type Logs, type Revision, stateOf } from './answers.ts'
import type { Committed } from './archive.ts'
import { type Claimed, judgeClaims } from './delegated.ts'
import {
  type DecisionRecord,
  type Rule,
  STANDING,
  type StandingRecord,
  type Violation,
  type WriteRecord,
} from './records.ts'
import { judgeStandings } from './standing.ts'
import { describe, lineageIn, NOTHING, replay, type State } from './state.ts'

export function judge(history: {
  readonly archive: readonly Committed[]
  readonly writes: readonly WriteRecord[]
  readonly decisions: readonly DecisionRecord[]
  readonly standings: readonly StandingRecord[]
  readonly claimed: readonly Claimed[]
  readonly tables: ReadonlyMap<JournalId, readonly string[]> | null
}): readonly Violation[] {
  const violations: Violation[] = []
  const report = (rule: Rule, message: string): void => void violations.push({ rule, message })
  const logs = replayArchive(history, report)
  judgeDecisions(logs, history, report)
  // Those of watched questions say nothing of how long one takes.
  const asked = history.decisions.filter(({ from }) => from !== STANDING)
  judgeStandings(logs, { standings: history.standings, decisions: asked }, (message) => report('late', message))
  violations.push(...judgeClaims(logs, history.claimed))
  for (const [log, items] of history.tables ?? []) {
    const expected = describe(logs.get(log)?.at(-1)?.state ?? NOTHING)
    if (!isDeepStrictEqual(items, expected)) report('table', `the tables of ${log} are not what its log makes`)
  }
  return violations
}

/** Every log's states, from what the writers asked for; the archive only says what was committed, and when. */
function replayArchive(
  { archive, writes }: { archive: readonly Committed[]; writes: readonly WriteRecord[] },
  report: (rule: Rule, message: string) => void,
): Logs {
  const requests = new Map(writes.map((w) => [w.requestId, w]))
  const logs = new Map<JournalId, Revision[]>()
  for (const entry of archive) {
    const { log, revision } = entry
    const done = logs.get(log) ?? []
    logs.set(log, done)
    const before = done.at(-1)
    if (revision !== (before?.revision ?? 0) + 1)
      report('write', `${log} ${revision} became visible after ${before?.revision ?? 0}`)
    // A deletion also empties the organization's own log; nobody asked for that by name.
    const known = entry.requestIds.map((id) => requests.get(id)?.changes)
    const asked = known.some((all) => all === undefined) ? undefined : known.flatMap((all) => all ?? [])
    const isCleared = entry.changes.some((c) => c.kind === 'clear')
    const { state, effective } = replay(before?.state ?? NOTHING, isCleared ? entry.changes : (asked ?? entry.changes))
    if (!isDeepStrictEqual(new Set(effective.map(textOf)), new Set(entry.changes.map(textOf))))
      report('write', `the entries of ${log} ${revision} are not what took effect`)
    done.push({ ...entry, state })
  }
  for (const write of writes) judgeWrite(write, logs, report)
  return logs
}

function judgeWrite(write: WriteRecord, logs: Logs, report: (rule: Rule, message: string) => void): void {
  const { log, outcome } = write
  const own = revisionOf(logs, write)
  if (outcome === null) return
  if (outcome === 'refused') {
    if (own !== undefined) report('write', `${log} ${own.revision} was refused, and yet committed`)
  } else if (outcome.changed) {
    if (own === undefined || own.revision !== (outcome.revision ?? own.revision))
      report('write', `${log} ${outcome.revision ?? write.requestId} was acknowledged and is not there`)
  } else {
    const at = stateOf(logs, log, outcome.revision ?? 0)
    if (at === undefined || replay(at, write.changes).effective.length > 0)
      report('write', `a write to ${log} that changes something at ${outcome.revision} was said to change nothing`)
  }
}

const revisionOf = (logs: Logs, { log, requestId }: WriteRecord): Revision | undefined =>
  logs.get(log)?.find(({ requestIds }) => requestIds.includes(requestId))

const textOf = (change: Change): string =>
  JSON.stringify(change, (_, value: unknown) =>
    value !== null && typeof value === 'object' && !Array.isArray(value)
      ? Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)))
      : value,
  )

function judgeDecisions(
  logs: Logs,
  { writes, decisions }: { writes: readonly WriteRecord[]; decisions: readonly DecisionRecord[] },
  report: (rule: Rule, message: string) => void,
): void {
  const known: { at: number; ticket: number }[] = []
  for (const write of writes) {
    const { outcome, endAt, log } = write
    if (outcome === null || outcome === 'refused' || outcome.revision === 0) continue
    const own = outcome.revision === null ? revisionOf(logs, write) : logs.get(log)?.[outcome.revision - 1]
    known.push({ at: endAt, ticket: own?.ticket ?? 0 })
  }
  const judged = decisions.map((decision) => ({ decision, span: spanOf(logs, decision) }))
  for (const { decision, span } of judged) if (span !== null) known.push({ at: decision.endAt, ticket: span.from })
  known.sort((a, b) => a.at - b.at)
  judged.sort((a, b) => a.decision.startAt - b.decision.startAt)
  const answers = new Answers()
  let floor = 0
  let next = 0
  for (const { decision, span } of judged) {
    for (let event = known[next]; event !== undefined && event.at < decision.startAt; event = known[++next])
      floor = Math.max(floor, event.ticket)
    const where = `${textOfQuestion(decision)} from ${decision.from}`
    if (span === null || span.from >= span.to) {
      report('vector', `${where}: there never was such a moment`)
      continue
    }
    if (span.to <= floor)
      report('stale', `${where}: older than what was known when it was asked (${span.to} <= ${floor})`)
    if (span.committingMs > decision.endMs + CLOCK_SLACK_MS) report('future', `${where}: newer than its answer`)
    judgeAnswer(logs, { decision, answers, where }, report)
  }
}

const textOfQuestion = ({ question, allowed, vector }: DecisionRecord): string =>
  `${question.subject}${question.actor === undefined ? '' : ` by ${question.actor}`} in ${question.organization} ${question.permissions
    .map((c, i) => `${c.resource}#${c.relation}=${allowed[i]}`)
    .join(' ')} at ${vector.map(([log, revision]) => `${log}:${revision}`).join(' ')}`

/** The tickets between which the vector stood, `to` exclusive; null when a revision or a log is not what it should be. */
function spanOf(logs: Logs, { vector }: DecisionRecord): { from: number; to: number; committingMs: number } | null {
  let from = 0
  let to = Number.POSITIVE_INFINITY
  let committingMs = 0
  for (const [log, revision, writeId] of vector) {
    const revisions = logs.get(log) ?? []
    const at = revisions[revision - 1]
    if (revision > 0 && at?.writeId !== writeId) return null
    const since = at ?? creationOf(logs, log)
    from = Math.max(from, since?.ticket ?? 0)
    committingMs = Math.max(committingMs, since?.committingMs ?? 0)
    to = Math.min(to, revisions[revision]?.ticket ?? Number.POSITIVE_INFINITY)
  }
  return { from, to, committingMs }
}

/** Revision 0 of an organization is there from the moment that the environment has it. */
function creationOf(logs: Logs, log: JournalId): Revision | undefined {
  return logs.get(ENVIRONMENT)?.find((r) => r.state.organizations.has(log))
}

/** The answers may hold at any instant of the database's clock between the question and its answer. */
function judgeAnswer(
  logs: Logs,
  { decision, answers, where }: { decision: DecisionRecord; answers: Answers; where: string },
  report: (rule: Rule, message: string) => void,
): void {
  const { question, vector } = decision
  const states = new Map(vector.map(([log, revision]) => [log, stateOf(logs, log, revision) ?? NOTHING]))
  const environment = states.get(ENVIRONMENT)
  const path = environment === undefined ? [] : lineageIn(environment, question.organization)
  if (environment === undefined || !states.has(TOKENS) || path.some((log) => !states.has(log))) {
    report('vector', `${where}: the vector lacks a log that the answer depends on`)
    return
  }
  const at = answers.instants(states, decision).find((clockMs) => {
    const right = answers.at(states, vector, { question, clockMs })
    return right.every((allowed, i) => allowed === decision.allowed[i])
  })
  if (at === undefined) {
    report('answer', `${where}: wrong at every instant of the request`)
    return
  }
  judgeGates(states, { decision, where }, report)
  if (decision.validUntilMs === undefined) return
  const until = answers.at(states, vector, {
    question,
    clockMs: (decision.validUntilMs ?? Number.MAX_SAFE_INTEGER) - 1,
  })
  if (until.some((allowed, i) => allowed !== decision.allowed[i]))
    report('validity', `${where}: differs before its valid_until`)
}

function judgeGates(
  states: ReadonlyMap<JournalId, State>,
  { decision, where }: { decision: DecisionRecord; where: string },
  report: (rule: Rule, message: string) => void,
): void {
  const state = states.get(decision.question.organization)
  for (const key of decision.question.entitlements) {
    const enabled = state?.gates.get(key)
    const right = state === undefined || enabled === undefined ? null : { enabled, version: state.entitlementVersion }
    if (!isDeepStrictEqual(decision.gates[key] ?? null, right))
      report('answer', `${where}: ${key} is ${JSON.stringify(right)}, not ${JSON.stringify(decision.gates[key])}`)
  }
}
