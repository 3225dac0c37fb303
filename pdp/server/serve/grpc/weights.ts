/** Estimates the memory of questions and answers that are under way. */
import type { ContextualTuple } from '../../../../proto/gen/portcullis/v1/decision_pb.ts'
import type { EntitlementResult } from '../../../shared/domain/decision.ts'
import type { Question } from '../decisions/answer.ts'
import type { AnswerOrError } from './answer-codec.ts'

/** A question and the closures and timers that wait for its answer. */
const QUESTION_BYTES = 2_048
/** A check or a key with its result, without its texts. */
const MEMBER_BYTES = 128

/** The memory of a question, in bytes. */
export function questionWeight({
  permissions,
  entitlements,
  context,
  requestId,
  traceparent = '',
  clientAddress = '',
  route = '',
  guest = '',
  contextualTuples = [],
}: Pick<Question, 'permissions' | 'entitlements'> & {
  readonly context: string
  readonly requestId: string
  readonly traceparent?: string
  readonly clientAddress?: string
  readonly route?: string
  readonly guest?: string
  readonly contextualTuples?: readonly ContextualTuple[]
}): number {
  let weight = QUESTION_BYTES + MEMBER_BYTES * (permissions.length + entitlements.length)
  for (const { relation, resource } of permissions) weight += relation.length + resource.length
  for (const key of entitlements) weight += key.length
  // The context counts twice: as text, and as parsed values.
  weight +=
    4 * context.length + requestId.length + traceparent.length + clientAddress.length + route.length + guest.length
  for (const { object, relation, subject, conditionContext } of contextualTuples)
    weight += MEMBER_BYTES + object.length + relation.length + subject.length + 4 * conditionContext.length
  return weight
}

/** The memory of an answer until it was sent, in bytes. */
export type OutcomeWeight = (outcome: AnswerOrError) => number

/** Measures answers. A value of an entitlement that many answers share is measured once. */
export function createOutcomeWeight(): OutcomeWeight {
  const known = new WeakMap<EntitlementResult['value'], number>()

  function valueWeight(value: EntitlementResult['value']): number {
    const weight = known.get(value) ?? JSON.stringify(value).length
    known.set(value, weight)
    return weight
  }

  return (outcome) => {
    if ('error' in outcome) return MEMBER_BYTES
    const { permissions, entitlements, revision } = outcome.answer
    let weight = QUESTION_BYTES + MEMBER_BYTES * (permissions.length + entitlements.size) + (revision?.length ?? 0)
    for (const { relation, resource } of permissions) weight += relation.length + resource.length
    for (const [key, result] of entitlements) weight += key.length + (result === null ? 0 : valueWeight(result.value))
    return weight
  }
}
