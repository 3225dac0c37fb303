/** Watched questions: evaluated again when a log that they depend on changes, and answered again when the answer changes. */
import { hash } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import type { Store } from '../../../engine/store/contract.ts'
import type { TokenState } from '../../../identity/issuer/tokens/token-state.ts'
import type { Pdp } from '../../../shared/domain/decision.ts'
import { DIRECTORY, ENVIRONMENT, type JournalId, type JournalPosition, TOKENS } from '../../../shared/domain/journal.ts'
import type { Log } from '../../../shared/process/log.ts'
import { RequestProblem } from '../http/status.ts'
import type { Answer, AnswerQuestion, Question } from './answer.ts'

const INTERVAL_MS = 50
const PAUSE_MS_MAX = 250
const QUESTIONS_MAX = 100_000
/** How many logs one statement reads. ASKED_AT_ONCE: how many questions are evaluated at once. */
const LOGS_PER_STATEMENT = 1_000
const ASKED_AT_ONCE = 256
/** Logs whose changes may affect all answers: tokens and clients, the tree, roles and models. */
const COMMON_LOGS: readonly JournalId[] = [TOKENS, DIRECTORY, ENVIRONMENT]

export type WatchedDeps = {
  readonly store: Pick<Store, 'vector'>
  readonly pdp: Pick<Pdp, 'ancestors'>
  readonly recognize: (token: string) => Promise<TokenState>
  /** Answers a question without a log line, because most evaluations find no change. */
  readonly answer: AnswerQuestion
  /** Milliseconds since the epoch. */
  readonly clock: () => number
  readonly log: Log
  /** Milliseconds between two polls of the logs. Default 50. */
  readonly intervalMs?: number
}
export type WatchedQuestion = {
  /** The token, or its state if the caller has read it. */
  readonly token: string | TokenState
  readonly question: Question
  /**
   * Gets the first answer, each changed one, one at its `valid_until`, and one after an error. False: the answer could not be sent, so the
   * question is evaluated again.
   */
  readonly onAnswer: (answer: Answer) => boolean
  /** Is called once per outage: the question cannot be evaluated, and its last answer is in doubt until the next `onAnswer`. */
  readonly onError: (err: unknown) => void
}
export type WatchedQuestions = {
  /** Throws RequestProblem `watched_limit`. The returned function ends the watch; afterwards neither `onAnswer` nor `onError` is called. */
  ask(asked: WatchedQuestion): () => void
  close(): Promise<void>
}

type Item = WatchedQuestion & {
  open: boolean
  /** The organization and its ancestors. */
  logs: readonly JournalId[]
  organization: string | null
  /** The fingerprint of the last answer; null: no answer yet, or one in doubt. */
  lastAnswer: string | null
  /** True after a poll that began after the answer has found no change. */
  settled: boolean
  failing: boolean
  asking: boolean
  /** The time when the answer may change without a write; null: never. */
  dueAtMs: number | null
}
const NEW = {
  open: true,
  logs: [],
  organization: null,
  lastAnswer: null,
  settled: false,
  failing: false,
  asking: false,
  dueAtMs: null,
} as const

/** Watches questions of all callers with one poll, so that more questions cost memory, not statements. */
export function createWatchedQuestions(deps: WatchedDeps): WatchedQuestions {
  const { intervalMs = INTERVAL_MS } = deps
  const items = new Set<Item>()
  const closing = new AbortController()
  let seen: ReadonlyMap<JournalId, string> = new Map()
  let running: Promise<void> | null = null

  async function run(): Promise<void> {
    let tookMs = 0
    while (items.size > 0 && !closing.signal.aborted) {
      // A long poll is followed by an equally long pause, so that the process has time for other work.
      const pauseMs = Math.max(Math.min(tookMs, PAUSE_MS_MAX), waitMs(items, deps.clock(), intervalMs))
      await delay(pauseMs, undefined, { signal: closing.signal }).catch(() => undefined)
      const beganMs = performance.now()
      if (!closing.signal.aborted) await askMoved()
      tookMs = performance.now() - beganMs
    }
    running = null
  }

  async function askMoved(): Promise<void> {
    try {
      const now = await readPositions(deps.store, items)
      const moved = new Set([...now].filter(([log, position]) => seen.get(log) !== position).map(([log]) => log))
      seen = now
      const anyMoved = COMMON_LOGS.some((log) => moved.has(log))
      const asked = [...items].filter((item) => anyMoved || isDue(item, moved, deps.clock()))
      await askAll(deps, asked, moved.has(ENVIRONMENT))
    } catch (err) {
      fail([...items], err, deps.log)
    }
  }

  return {
    ask(asked) {
      if (items.size >= QUESTIONS_MAX) throw new RequestProblem('watched_limit', 'too many watched questions are open')
      const item: Item = { ...asked, ...NEW }
      items.add(item)
      void askAgain(deps, item, { stateOf: deps.recognize, treeMoved: true }).then(() => {
        // A change may lie before or after this answer: the next poll cannot tell, so it evaluates once more.
        item.settled = false
      })
      running ??= run()
      return () => {
        item.open = false
        items.delete(item)
      }
    },
    async close() {
      for (const item of items) item.open = false
      items.clear()
      closing.abort()
      await running
    },
  }
}

function waitMs(items: ReadonlySet<Item>, nowMs: number, intervalMs: number): number {
  let wait = intervalMs
  for (const { dueAtMs } of items) if (dueAtMs !== null && dueAtMs - nowMs < wait) wait = dueAtMs - nowMs
  return Math.max(1, wait)
}

async function askAll(deps: WatchedDeps, asked: readonly Item[], treeMoved: boolean): Promise<void> {
  // Questions about one token share one read of its state.
  const states = new Map<string, Promise<TokenState>>()
  const stateOf = (token: string): Promise<TokenState> => {
    const state = states.get(token) ?? deps.recognize(token)
    states.set(token, state)
    return state
  }
  const queue = asked.values()
  const workers = Array.from({ length: Math.min(ASKED_AT_ONCE, asked.length) }, async () => {
    for (const item of queue) if (item.open && !item.asking) await askAgain(deps, item, { stateOf, treeMoved })
  })
  await Promise.all(workers)
}

/** Never throws. */
async function askAgain(
  deps: WatchedDeps,
  item: Item,
  at: { readonly stateOf: (token: string) => Promise<TokenState>; readonly treeMoved: boolean },
): Promise<void> {
  item.asking = true
  item.settled = true
  try {
    const { token } = item
    const state = typeof token === 'string' ? await at.stateOf(token) : token
    const answer = await deps.answer(state, item.question)
    if (at.treeMoved || answer.organization !== item.organization) {
      item.logs = answer.organization === null ? [] : ((await deps.pdp.ancestors(answer.organization)) ?? [])
      item.organization = answer.organization
    }
    accept(item, {
      answer,
      expiresAtMs: state.active ? Math.min(state.expiresAtMs, state.recheckAtMs ?? state.expiresAtMs) : null,
      nowMs: deps.clock(),
    })
  } catch (err) {
    fail([item], err, deps.log)
  } finally {
    item.asking = false
  }
}

function accept(item: Item, received: { answer: Answer; expiresAtMs: number | null; nowMs: number }): void {
  const { answer, expiresAtMs, nowMs } = received
  const ends = [answer.validUntilMs, expiresAtMs].filter((at) => at !== null)
  const endMs = ends.length === 0 ? null : Math.min(...ends)
  // The end has passed by our clock but not by the database's, which decides: evaluate again shortly.
  const early = endMs !== null && endMs <= nowMs
  const due = item.dueAtMs !== null && item.dueAtMs <= nowMs && !early
  item.dueAtMs = early ? nowMs + INTERVAL_MS : endMs
  const text = fingerprint(answer)
  const changed = item.lastAnswer !== text
  item.lastAnswer = text
  item.failing = false
  if ((changed || due) && item.open && !item.onAnswer(answer)) Object.assign(item, { lastAnswer: null, settled: false })
}

function fail(items: readonly Item[], err: unknown, log: Log): void {
  const fresh = items.filter(({ failing, open }) => open && !failing)
  for (const item of items) Object.assign(item, { failing: true, settled: false, lastAnswer: null })
  for (const item of fresh) item.onError(err)
  if (fresh.length > 0) log.warn({ event: 'watched_unanswered', questions_count: fresh.length, err })
}

function isDue(item: Item, moved: ReadonlySet<JournalId>, nowMs: number): boolean {
  if (!item.settled || item.logs.some((log) => moved.has(log))) return true
  return item.dueAtMs !== null && item.dueAtMs <= nowMs
}

async function readPositions(
  store: Pick<Store, 'vector'>,
  items: ReadonlySet<Item>,
): Promise<ReadonlyMap<JournalId, string>> {
  const watched = new Set(COMMON_LOGS)
  for (const item of items) for (const log of item.logs) watched.add(log)
  const logs = [...watched]
  const positions = new Map<JournalId, string>(logs.map((log) => [log, '']))
  for (let from = 0; from < logs.length; from += LOGS_PER_STATEMENT) {
    const vector = await store.vector(logs.slice(from, from + LOGS_PER_STATEMENT))
    for (const [log, position] of vector.logs) positions.set(log, nameOf(position))
  }
  return positions
}

const nameOf = ({ revision, writeId }: JournalPosition): string => `${revision} ${writeId}`

/** A digest of the parts that callers act on. Versions and revisions are left out: each write changes them. */
function fingerprint(answer: Answer): string {
  // Only the hash is kept for each question, since answers may be large.
  return hash('sha256', textOf(answer), 'base64url')
}

function textOf(answer: Answer): string {
  const { active, subject, organization, permissions, entitlements, acr, authTime } = answer
  const results = permissions.map(({ allowed, error, reasonCode }) => [allowed, error, reasonCode])
  const values = [...entitlements].map(([key, result]) => [key, result?.value ?? null])
  return JSON.stringify([active, subject, organization, results, values, acr, authTime])
}
