/** Plays one fault under load, and says what did not hold. */
import { setTimeout as delay } from 'node:timers/promises'
import type { Fault } from './catalogue.ts'
import type { Asked, Load } from './load.ts'
import type { System } from './system.ts'

export type Verdict = {
  readonly name: string
  readonly complaints: readonly string[]
  readonly asked: number
  readonly unavailable: number
  /** Used proofs that were sent again. */
  readonly replays: number
  readonly writes: number
  readonly slowestAskMs: number
  readonly slowestWriteMs: number
  /** From the end of the fault to the last question or write that nobody could answer. */
  readonly backMs: number
}

/** The product's own deadlines are 1 s for a decision and 5 s for a write; a busy machine takes its time. */
const ASK_MS = 3_000
const WRITE_MS = 8_000
const BACK_MS = 6_000
/** For the others to notice that a part is gone. */
const NOTICED_MS = 4_000
const BEFORE_MS = 700
/** At the end all must be well for so long. */
const WELL_MS = 1_500
/** On a busy machine it takes a while until each part has had a turn. */
const HEARD_MS = 10_000
/** Of those that the others could answer, while a part that is gone is routed around. */
const MISSED_SHARE_MAX = 0.01
/** Of unaffected ones, and one at least: a question may run into its own deadline on a machine without time. */
const LATE_SHARE_MAX = 0.002

export async function playFault(
  fault: Fault,
  { system, load }: { readonly system: System; readonly load: Load },
): Promise<Verdict> {
  await delay(BEFORE_MS)
  const from = { asked: load.asked.length, wrote: load.wrote.length, wrong: load.wrong.length, replays: load.replays() }
  const beginMs = performance.now()
  await fault.begin(system, load)
  await delay(fault.lastsMs)
  await fault.end(system, load)
  const endMs = performance.now()
  const backMax = fault.backMs ?? BACK_MS
  await settle(load, { system, endMs, backMax })
  const asked = load.asked.slice(from.asked)
  const wrote = load.wrote.slice(from.wrote)
  const failures = [
    ...asked.filter(({ outcome }) => outcome === 'unavailable'),
    ...wrote.filter(({ acknowledged }) => !acknowledged),
  ]
  const backMs = Math.max(0, ...failures.map((one) => one.endMs - endMs))
  const slowestAskMs = slowest(asked)
  const slowestWriteMs = slowest(wrote)
  const complaints = [
    ...load.wrong.slice(from.wrong, from.wrong + 3),
    ...(await load.lost().catch((err: unknown) => [err instanceof Error ? err.message : String(err)])).slice(0, 3),
    ...(slowestAskMs > (fault.withinMs ?? ASK_MS) ? [`a question took ${Math.round(slowestAskMs)} ms`] : []),
    ...(slowestWriteMs > WRITE_MS + (fault.freezesPdp === true ? fault.lastsMs : 0)
      ? [`a write took ${Math.round(slowestWriteMs)} ms`]
      : []),
    ...(backMs > backMax ? [`not well again ${Math.round(backMs)} ms after its end`] : []),
    ...unanswered(fault.questions, { system, asked: asked.filter(({ kind }) => kind !== 'proof'), beginMs, endMs }),
    ...unanswered(fault.proofs ?? fault.questions, {
      system,
      asked: asked.filter(({ kind }) => kind === 'proof'),
      beginMs,
      endMs,
    }),
    ...silent(load, { system, sinceMs: endMs }),
  ]
  const unavailable = asked.filter(({ outcome }) => outcome === 'unavailable').length
  return {
    name: fault.name,
    complaints,
    asked: asked.length,
    unavailable,
    replays: load.replays() - from.replays,
    writes: wrote.length,
    slowestAskMs,
    slowestWriteMs,
    backMs,
  }
}

/** Until all was well for a while and every part was heard, or it cannot be in time any more. */
async function settle(
  load: Load,
  { system, endMs, backMax }: { system: System; endMs: number; backMax: number },
): Promise<void> {
  const deadline = endMs + backMax + HEARD_MS
  for (;;) {
    await delay(100)
    const now = performance.now()
    const recent = (one: { endMs: number }): boolean => one.endMs > Math.max(endMs, now - WELL_MS)
    const bad =
      load.asked.some((one) => recent(one) && one.outcome === 'unavailable') ||
      load.wrote.some((one) => recent(one) && !one.acknowledged)
    if (now > deadline) return
    if (!bad && now - endMs > WELL_MS && silent(load, { system, sinceMs: endMs }).length === 0) return
  }
}

const slowest = (ones: readonly { startMs: number; endMs: number }[]): number =>
  ones.reduce((most, { startMs, endMs }) => Math.max(most, endMs - startMs), 0)

type Period = { readonly asked: readonly Asked[]; readonly beginMs: number; readonly endMs: number }

/** What is wrong with the questions that nobody answered, in words. */
export function unanswered(
  questions: Fault['questions'],
  { system, asked, beginMs, endMs }: Period & { readonly system: Pick<System, 'sidecars'> },
): string[] {
  if (questions === 'back') return []
  const noticedMs = questions === 'routed around' ? beginMs + NOTICED_MS : beginMs
  const missed = asked.filter(
    ({ outcome, startMs }) => outcome === 'unavailable' && startMs >= noticedMs && startMs <= endMs,
  )
  const judged = asked.filter(({ startMs }) => startMs >= noticedMs && startMs <= endMs).length
  if (missed.length === 0) return []
  const logs = system.sidecars.map(({ part }) => part.log())
  const told = missed.map((one) => ({ one, line: lineOf(one.id, logs[one.sidecar] ?? '') }))
  const isLate = ({ line }: { line: string }): boolean => LATE.test(line)
  const lost = told.filter((one) => !isLate(one))
  // Those that ran into a deadline may have been kept waiting by the machine; no part has lost them.
  const late = told.filter(isLate)
  const fewLate = questions === 'kept' ? late.length : Math.max(1, judged * LATE_SHARE_MAX)
  // Redis has a shorter deadline than the PDP, and no other address.
  const elsewhere = told.filter(({ line }) => line.includes(REDIS_LATE)).length
  const fits =
    questions === 'routed around'
      ? missed.length - elsewhere <= judged * MISSED_SHARE_MAX
      : lost.length === 0 && late.length <= fewLate
  const [first] = lost.length > 0 ? lost : late
  if (fits || first === undefined) return []
  const { one, line } = first
  return [
    `${missed.length} questions unanswered though others could, ${late.length} of them late, first ${Math.round(one.startMs - beginMs)} ms in: ${one.detail}`,
    line,
  ]
}

const REDIS_LATE = 'the replay memory did not answer'
/** What the sidecar's log says of a deadline. */
const LATE = /"detail":"[^"]*\b(?:in time|too busy to ask|the replay memory did not answer)\b/

function lineOf(id: string, log: string): string {
  const at = log.indexOf(`"${id}"`)
  return at < 0 ? '' : log.slice(log.lastIndexOf('\n', at) + 1, log.indexOf('\n', at))
}

/** Parts from which nothing was heard since then. */
function silent({ asked, wrote, serving }: Load, { system, sinceMs }: { system: System; sinceMs: number }): string[] {
  const heard = new Set(
    asked.filter(({ startMs, outcome }) => startMs > sinceMs && outcome !== 'unavailable').map((one) => one.sidecar),
  )
  const written = new Set(
    wrote.filter(({ startMs, acknowledged }) => startMs > sinceMs && acknowledged).map((one) => one.pdp),
  )
  return [
    ...[...serving].filter((at) => !heard.has(at)).map((at) => `sidecar ${at} answers nothing since its end`),
    ...[...system.pdps.keys()].filter((at) => !written.has(at)).map((at) => `PDP ${at} takes no write since its end`),
  ]
}
