/** The latest answers, in memory: what was asked about whom and how it was answered, and nothing that a caller kept secret. */
import type { PermissionResult } from '../../../shared/domain/decision.ts'
import { subjectName } from '../../../shared/domain/subjects.ts'
import { type ActingFor, actingFor, entitlementsOf, isWhole } from './decision-log.ts'
import type { AnswerObserver } from './observed-answers.ts'

type KeptPermission = Pick<PermissionResult, 'relation' | 'resource' | 'allowed' | 'reasonCode' | 'missingContext'>
/** No token, no context of conditions and no contextual tuple: these may hold what no reader of decisions should see. */
export type KeptDecision = {
  readonly number: number
  readonly atMs: number
  readonly decisionId: string
  /** The id of the request that led to the question; null: the caller did not say. */
  readonly requestId: string | null
  /** The route of the sidecar's route file; null: none, or the caller did not say. */
  readonly route: string | null
  readonly clientId: string | null
  readonly subject: string | null
  readonly organization: string | null
  /** The app whose roles answered permission keys; `*`: every app; null: none. */
  readonly app: string | null
  readonly acting: ActingFor
  readonly permissions: readonly KeptPermission[]
  readonly entitlements: readonly { readonly key: string; readonly present: boolean }[]
  readonly isInactive: boolean
  readonly durationMs: number
  /** False: the question brought what is not kept, without which its answer may be another one. */
  readonly isWhole: boolean
}
export type DecisionRing = {
  readonly countMax: number
  record(decision: Omit<KeptDecision, 'number'>): void
  /** The latest first. A decision waits for no reader: readers come again. */
  latest(): IterableIterator<KeptDecision>
}

/** Bounds all that is kept: a question may have 256 checks, each with a long name. */
const CHARACTERS_MAX = 16_000_000
/** The weight of a decision, besides its names. */
const DECISION_CHARACTERS = 256
const CHECK_CHARACTERS = 64

/** `countMax` 0 keeps nothing. Large decisions take the places of several. */
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
        // Others were recorded while somebody read on.
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
        // The results themselves, unless they hold explanations, which are large.
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
