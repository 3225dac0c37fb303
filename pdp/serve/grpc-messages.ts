/** Between the protocol's messages and our questions and answers. */
import { create } from '@bufbuild/protobuf'
import {
  type DecideRequest,
  type DecideResponse,
  DecideResponseSchema,
  EntitlementResultSchema,
  PermissionResultSchema,
  ReasonSchema,
  ReasonStepSchema,
  type StreamQuestion,
  SubjectSchema,
} from '../../proto/gen/portcullis/v1/decision_pb.ts'
import type { EntitlementResult, PermissionResult, Reason, ReasonStep, Subject } from '../pdp.ts'
import type { JsonObject, JsonValue } from '../store/contracts.ts'
import type { Answer, Question } from './questions.ts'
import { Refusal } from './status.ts'

type Checks = Pick<DecideRequest | StreamQuestion, 'permissions' | 'entitlements'>
type StructValue = { [member: string]: StructMember }
type StructMember = null | boolean | number | string | StructMember[] | StructValue

/** A question of the stream: always about the token's own bearer. */
export function readStreamQuestion({ permissions, entitlements }: Checks): Question {
  const checks = permissions.map(({ relation, resource }) => ({ relation, resource }))
  return { permissions: checks, entitlements, subject: null, explain: false }
}

/** Throws Refusal `request_invalid` for a subject that is neither a user nor a service. */
export function readRequest(request: DecideRequest): Question {
  const subject = request.subject === undefined ? null : readSubject(request.subject)
  return { ...readStreamQuestion(request), subject, explain: request.explain }
}

function readSubject({ type, id }: { type: string; id: string }): Subject {
  if (type === 'user' || type === 'service') return { type, id }
  throw new Refusal('request_invalid', 'subject.type must be user or service')
}

export function writeAnswer(answer: Answer): DecideResponse {
  return create(DecideResponseSchema, {
    active: answer.active,
    ...(answer.subject === null ? {} : { subject: create(SubjectSchema, answer.subject) }),
    organization: answer.organization ?? '',
    permissions: answer.permissions.map(writePermission),
    entitlements: Object.fromEntries([...answer.entitlements].map(([key, result]) => [key, writeEntitlement(result)])),
    decisionId: answer.decisionId,
    revision: answer.revision ?? '',
    validUntilMs: answer.validUntilMs ?? 0,
    acr: answer.acr ?? '',
    authTime: answer.authTime ?? 0,
  })
}

function writePermission(result: PermissionResult) {
  return create(PermissionResultSchema, {
    relation: result.relation,
    resource: result.resource,
    allowed: result.allowed,
    error: result.error ?? '',
    reasonCode: result.reasonCode,
    ...(result.reason === undefined ? {} : { reason: writeReason(result.reason) }),
  })
}

function writeReason({ code, path, missing }: Reason) {
  return create(ReasonSchema, { code, path: path.map(writeStep), missing: [...missing] })
}

function writeStep(step: ReasonStep) {
  if ('tuple' in step) return create(ReasonStepSchema, { step: { case: 'tuple', value: step.tuple } })
  if ('member' in step) return create(ReasonStepSchema, { step: { case: 'member', value: step.member } })
  if ('rule' in step) return create(ReasonStepSchema, { step: { case: 'rule', value: step.rule } })
  return create(ReasonStepSchema, { step: { case: 'roleGrant', value: step.role_grant } })
}

function writeEntitlement(result: EntitlementResult | null) {
  if (result === null) return create(EntitlementResultSchema)
  return create(EntitlementResultSchema, { value: copyObject(result.value), version: BigInt(result.version) })
}

// The generated type is mutable, ours is not.
function copyObject(value: JsonObject): StructValue {
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, copy(member)]))
}

function copy(value: JsonValue): StructMember {
  if (value === null || typeof value !== 'object') return value
  return isArray(value) ? value.map(copy) : copyObject(value)
}

const isArray = (value: readonly JsonValue[] | JsonObject): value is readonly JsonValue[] => Array.isArray(value)
