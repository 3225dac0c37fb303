/** The PDP's own metrics: answered checks, waiting questions, token hooks and HTTP requests. */
import { Counter, Gauge, Histogram, type Registry } from 'prom-client'
import type { HookOutcome } from '../identity/tokens/token-hook.ts'
import type { Admission } from '../serve/authentication/admission.ts'
import type { AnswerQuestion } from '../serve/decisions/answer.ts'
import type { HttpDeps } from '../serve/http-server.ts'
import { asRequestProblem } from '../serve/problems/status.ts'

/** Counts the answered checks, and the questions that were refused or wait. */
export function countAnswers(
  answer: AnswerQuestion,
  { registry, admission }: { readonly registry: Registry; readonly admission: Admission },
): AnswerQuestion {
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
  // Looked up once, because a lookup by labels takes as long as a decision.
  const outcomes = {
    allowed: checks.labels('allowed'),
    denied: checks.labels('denied'),
    evaluation_limit: checks.labels('evaluation_limit'),
    condition_failed: checks.labels('condition_failed'),
  }
  return async (token, question) => {
    const result = await answer(token, question).catch((err: unknown) => {
      if (asRequestProblem(err).code === 'overloaded') shed.inc()
      throw err
    })
    for (const { allowed, error } of result.permissions) outcomes[error ?? (allowed ? 'allowed' : 'denied')].inc()
    return result
  }
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

export function requestMetrics(registry: Registry): HttpDeps['observe'] {
  const durations = new Histogram({
    name: 'portcullis_http_request_duration_seconds',
    help: 'HTTP requests by route.',
    labelNames: ['route', 'method', 'status'],
    buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5],
    registers: [registry],
  })
  return ({ route, method, status, durationMs }) => durations.observe({ route, method, status }, durationMs / 1_000)
}
