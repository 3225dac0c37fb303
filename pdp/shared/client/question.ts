/** A question of `DecideStream` about the bearer of a token, or about a guest. */
import type { PermissionCheck } from '../domain/decision.ts'
import type { Decision } from './codec.ts'

export type StreamedQuestion = {
  /** The organization in which a guest is asked about, whose token and digest are empty; absent: the bearer is. */
  readonly guest?: string
  /** An access token, with its SHA-256 digest. */
  readonly token: string
  readonly digest: string
  readonly permissions: readonly PermissionCheck[]
  readonly entitlements: readonly string[]
  /** A JSON object: values of parameters of conditions; empty for none. */
  readonly context: string
  /** The id of the request that led to the question, under which the PDP keeps its answer; empty: none. */
  readonly requestId: string
  /** The address of the client whose request led to the question, for the PDP's decision log. */
  readonly clientAddress?: string
  /** The request's route, as a route file writes it, under which the PDP keeps its answer. */
  readonly route?: string
  /** The span that asks (W3C Trace Context). */
  readonly traceparent?: string
}

/** Whether the answer is about exactly what was asked: a result for each permission in its order, and each entitlement key. */
export function echoes(
  { permissions, entitlements }: Decision,
  question: Pick<StreamedQuestion, 'permissions' | 'entitlements'>,
): boolean {
  return (
    permissions.length === question.permissions.length &&
    question.permissions.every(
      ({ relation, resource }, at) => permissions[at]?.relation === relation && permissions[at]?.resource === resource,
    ) &&
    question.entitlements.every((key) => entitlements.has(key))
  )
}
