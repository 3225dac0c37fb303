/** The PDP's own metrics: answered checks, waiting questions, token hooks and HTTP requests. */
import { Counter, Gauge, Histogram, type Registry } from 'prom-client'
import type { LogoutOutcome } from '../../identity/issuer/logouts.ts'
import type { HookOutcome } from '../../identity/issuer/tokens/token-hook.ts'
import type { Admission } from '../serve/authentication/admission.ts'
import type { Question } from '../serve/decisions/answer.ts'
import type { AnswerObserver } from '../serve/decisions/observed-answers.ts'
import { asRequestProblem } from '../serve/http/status.ts'
import type { HttpDeps } from '../serve/http-server.ts'

/**
 * Returns a function for the gauges of a scrape, which prom-client collects at the same time: they share a reading, which is made
 * again when it is older than `ageMs`. It resolves to whether the reading succeeded; if not, the gauges keep their values.
 */
export function sharedReading(ageMs: number, read: () => Promise<void>): () => Promise<boolean> {
  let reading: Promise<boolean> | null = null
  let readAtMs = Number.NEGATIVE_INFINITY
  return () => {
    if (reading !== null && performance.now() - readAtMs < ageMs) return reading
    readAtMs = performance.now()
    reading = read().then(
      () => true,
      () => false,
    )
    return reading
  }
}

/** Counts the answered checks, and the questions that were refused or wait. */
export function countAnswers(registry: Registry, admission: Admission): AnswerObserver {
  const shed = new Counter({
    name: 'portcullis_questions_shed_total',
    help: 'Questions that were refused because too many were waiting.',
    registers: [registry],
  })
  new Gauge({
    name: 'portcullis_questions_waiting',
    help: 'Questions that wait for their turn.',
    registers: [registry],
    collect() {
      this.set(admission.waitingCount)
    },
  })
  const checks = new Counter({
    name: 'portcullis_checks_total',
    help: 'Permission checks answered, by outcome.',
    labelNames: ['outcome'],
    registers: [registry],
  })
  // Looked up in advance: a lookup by labels takes as long as a decision.
  const outcomes = {
    allowed: checks.labels('allowed'),
    denied: checks.labels('denied'),
    evaluation_limit: checks.labels('evaluation_limit'),
    condition_failed: checks.labels('condition_failed'),
  }
  const observeTime = questionTimes(registry)
  return {
    answered({ question, answer, durationMs }) {
      observeTime(question, 'answered', durationMs)
      for (const { allowed, error } of answer.permissions) outcomes[error ?? (allowed ? 'allowed' : 'denied')].inc()
    },
    failed(question, error, durationMs) {
      const { code } = asRequestProblem(error)
      if (code === 'overloaded') shed.inc()
      observeTime(question, code, durationMs)
    },
  }
}

function questionTimes(registry: Registry): (question: Question, outcome: string, durationMs: number) => void {
  const durations = new Histogram({
    name: 'portcullis_question_duration_seconds',
    help: 'Questions over HTTP and gRPC, with their wait, by what they ask for and by outcome: answered, or a problem code.',
    labelNames: ['asks', 'outcome'],
    buckets: [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1],
    registers: [registry],
  })
  const answered = new Map(ASKS.map((asks) => [asks, durations.labels(asks, 'answered')]))
  return (question, outcome, durationMs) => {
    const asks = asksOf(question)
    const histogram = outcome === 'answered' ? answered.get(asks) : durations.labels(asks, outcome)
    histogram?.observe(durationMs / 1_000)
  }
}

const ASKS = ['permissions', 'entitlements', 'both', 'token'] as const

/** The kind of question. `token`: a route without checks asks only whether the token is active. */
function asksOf({ permissions, entitlements }: Question): (typeof ASKS)[number] {
  if (entitlements.length === 0) return permissions.length === 0 ? 'token' : 'permissions'
  return permissions.length === 0 ? 'entitlements' : 'both'
}

export function hookOutcomes(registry: Registry): (outcome: HookOutcome) => void {
  const outcomes = new Counter({
    name: 'portcullis_token_hook_total',
    help: 'Tokens for which the token hook was called, by outcome.',
    labelNames: ['outcome'],
    registers: [registry],
  })
  return (outcome) => outcomes.inc({ outcome })
}

export function logoutOutcomes(registry: Registry): (outcome: LogoutOutcome) => void {
  const attempts = new Counter({
    name: 'portcullis_logout_attempts_total',
    help: 'Logout tokens sent to clients by outcome: delivered, refused (not sent again), failed (tried again), given_up.',
    labelNames: ['outcome'],
    registers: [registry],
  })
  return (outcome) => attempts.inc({ outcome })
}

export function requestMetrics(registry: Registry): HttpDeps['observe'] {
  const durations = new Histogram({
    name: 'portcullis_http_request_duration_seconds',
    help: 'HTTP requests by route.',
    labelNames: ['route', 'method', 'status'],
    buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5],
    registers: [registry],
  })
  // Looked up only once per label: a lookup takes as long as a decision.
  const known = new Map<string, ReturnType<typeof durations.labels>>()
  return ({ route, method, status, durationMs }) => {
    const key = `${status} ${method} ${route}`
    const child = known.get(key) ?? durations.labels(route, method, String(status))
    known.set(key, child)
    child.observe(durationMs / 1_000)
  }
}
