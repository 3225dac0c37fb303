/** The latest answers, in memory: what was asked about whom and how it was answered, and nothing that a caller kept secret. */
import type { PermissionResult } from '../../domain/decision.ts'
import { subjectName } from '../../domain/subjects.ts'
import type { AnswerQuestion } from './answer.ts'

/** No token, no context of conditions and no contextual tuple: these may hold what no reader of decisions should see. */
export type KeptDecision = {
  readonly number: number
  readonly atMs: number
  readonly decisionId: string
  /** Of the request that led to the question; null: the caller did not say. */
  readonly requestId: string | null
  readonly clientId: string | null
  readonly subject: string | null
  readonly organization: string | null
  readonly permissions: readonly Pick<PermissionResult, 'relation' | 'resource' | 'allowed' | 'reasonCode'>[]
  readonly entitlements: readonly { readonly key: string; readonly present: boolean }[]
  readonly isInactive: boolean
  readonly durationMs: number
  /** The question brought a context or contextual tuples, without which its answer may be another one. */
  readonly hasContext: boolean
}
export type DecisionRing = {
  readonly countMax: number
  record(decision: Omit<KeptDecision, 'number'>): void
  /** The latest first, those before `before` only. */
  latest(before: number | null): IterableIterator<KeptDecision>
  /** Calls `onDecision` for each from now on. The returned function ends it. */
  follow(onDecision: (decision: KeptDecision) => void): () => void
}

/** `countMax` 0 keeps nothing. A decision waits for nobody: followers get it later. */
export function createDecisionRing(countMax: number): DecisionRing {
  const kept: KeptDecision[] = []
  const followers = new Set<(decision: KeptDecision) => void>()
  let count = 0
  return {
    countMax,
    record(decision) {
      if (countMax === 0) return
      const numbered = { ...decision, number: count }
      kept[count % countMax] = numbered
      count += 1
      if (followers.size > 0) setImmediate(() => followers.forEach((send) => void send(numbered)))
    },
    *latest(before) {
      const from = before === null ? count : Math.min(before, count)
      for (let number = from - 1; number >= 0 && number >= count - countMax; number--) {
        const found = kept[number % countMax]
        if (found?.number === number) yield found
      }
    },
    follow(onDecision) {
      followers.add(onDecision)
      return () => void followers.delete(onDecision)
    },
  }
}

/** Keeps each answer of `answer`. */
export function keepDecisions(
  answer: AnswerQuestion,
  { ring, clock }: { readonly ring: DecisionRing; readonly clock: () => number },
): AnswerQuestion {
  if (ring.countMax === 0) return answer
  return async (token, question) => {
    const startedMs = clock()
    const found = await answer(token, question)
    ring.record({
      atMs: startedMs,
      decisionId: found.decisionId,
      requestId: question.requestId ?? null,
      clientId: token.active ? token.clientId : null,
      subject: found.subject === null ? null : subjectName(found.subject),
      organization: found.organization,
      permissions: found.permissions.map(({ relation, resource, allowed, reasonCode }) => ({
        relation,
        resource,
        allowed,
        reasonCode,
      })),
      entitlements: [...found.entitlements].map(([key, value]) => ({ key, present: value !== null })),
      isInactive: !found.active,
      durationMs: clock() - startedMs,
      hasContext: question.context !== undefined || (question.contextualTuples ?? []).length > 0,
    })
    return found
  }
}
