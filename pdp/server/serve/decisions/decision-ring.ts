/** The latest answers, in memory: questions and their answers, without anything that a caller may keep secret. */
import type { PermissionResult } from '../../../shared/domain/decision.ts'
import { subjectName } from '../../../shared/domain/subjects.ts'
import { type ActingFor, actingFor, entitlementsOf, isWhole } from './decision-log.ts'
import type { AnswerObserver } from './observed-answers.ts'

type KeptPermission = Pick<PermissionResult, 'relation' | 'resource' | 'allowed' | 'reasonCode' | 'missingContext'>
/** Tokens, contexts of conditions and contextual tuples are left out: they may hold what no reader of decisions should see. */
export type KeptDecision = {
  readonly number: number
  readonly atMs: number
  readonly decisionId: string
  /** The id of the request that led to the question; null: the caller did not say. */
  readonly requestId: string | null
  /** The route in the sidecar's route file; null: unknown. */
  readonly route: string | null
  readonly clientId: string | null
  readonly subject: string | null
  readonly organization: string | null
  /** The app whose roles answered permission keys; `*`: all apps; null: none. */
  readonly app: string | null
  readonly acting: ActingFor
  readonly permissions: readonly KeptPermission[]
  readonly entitlements: readonly { readonly key: string; readonly present: boolean }[]
  readonly isInactive: boolean
  readonly durationMs: number
  /** True if the ring keeps all parts of the question. Without a missing part, the answer could be different. */
  readonly isWhole: boolean
}
export type DecisionRing = {
  readonly countMax: number
  record(decision: Omit<KeptDecision, 'number'>): void
  /** Decisions, the latest first. A slow reader misses decisions that newer ones displaced meanwhile. */
  latest(): IterableIterator<KeptDecision>
}

/** The most characters in all decisions together: a question may have 256 checks, each with long names. */
const CHARACTERS_MAX = 16_000_000
/** How many characters a decision counts for, besides its names. */
const DECISION_CHARACTERS = 256
const CHECK_CHARACTERS = 64

/** Keeps the last `countMax` decisions; 0: none. A large decision may replace several others. */
export function createDecisionRing(countMax: number, charactersMax = CHARACTERS_MAX): DecisionRing {
  const kept: (Omit<KeptDecision, 'number'> | undefined)[] = []
  let [first, count, characters] = [0, 0, 0]

  function dropFirst(): void {
    const dropped = kept[first % countMax]
    kept[first % countMax] = undefined
    if (dropped !== undefined) characters -= charactersOf(dropped)
    first += 1
  }

  return {
    countMax,
    record(decision) {
      if (countMax === 0) return
      const size = charactersOf(decision)
      while (count - first >= countMax || (count > first && characters + size > charactersMax)) dropFirst()
      kept[count % countMax] = decision
      characters += size
      count += 1
    },
    *latest() {
      for (let number = count - 1; number >= first; number--) {
        const found = kept[number % countMax]
        // Newer decisions have displaced this one while the reader was reading.
        if (found === undefined || number < first) return
        yield { ...found, number }
      }
    },
  }
}

function charactersOf({ subject, route, permissions, entitlements }: Omit<KeptDecision, 'number'>): number {
  let size = DECISION_CHARACTERS + (subject?.length ?? 0) + (route?.length ?? 0)
  for (const { relation, resource } of permissions) size += CHECK_CHARACTERS + relation.length + resource.length
  for (const { key } of entitlements) size += CHECK_CHARACTERS + key.length
  return size
}

export function keepDecisions(ring: DecisionRing): AnswerObserver {
  return {
    answered({ token, question, answer, startedMs, durationMs }) {
      const { decisionId, subject, organization, permissions, active } = answer
      ring.record({
        atMs: startedMs,
        decisionId,
        requestId: question.requestId || null,
        route: question.route || null,
        clientId: token.active && token.clientId !== '' ? token.clientId : null,
        subject: subject === null ? null : subjectName(subject),
        organization,
        app: answer.app,
        acting: actingFor(token, question),
        // Results are kept without their explanations, which are large.
        permissions: question.explain ? permissions.map(withoutReason) : permissions,
        entitlements: answer.entitlements.size === 0 ? NONE : entitlementsOf(answer),
        isInactive: !active,
        durationMs,
        isWhole: isWhole(token, question),
      })
    },
  }
}

const NONE: readonly never[] = []

const withoutReason = ({
  relation,
  resource,
  allowed,
  reasonCode,
  missingContext,
}: PermissionResult): KeptPermission => ({
  relation,
  resource,
  allowed,
  reasonCode,
  ...(missingContext !== undefined && { missingContext }),
})
