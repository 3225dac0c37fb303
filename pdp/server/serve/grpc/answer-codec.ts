/** Encodes answers as protocol bytes directly from decisions. Building message objects first costs more than deciding. */
import { create, toBinary } from '@bufbuild/protobuf'
import type { BinaryWriter } from '@bufbuild/protobuf/wire'
import { ANSWER, ANSWERS, DECISION, ENTRY, RESULT, SUBJECT } from '../../../../proto/decision-tags.ts'
import {
  EntitlementResultSchema,
  ReasonSchema,
  ReasonStepSchema,
} from '../../../../proto/gen/portcullis/v1/decision_pb.ts'
import type {
  AskedSubject,
  EntitlementResult,
  PermissionResult,
  Reason,
  ReasonStep,
} from '../../../shared/domain/decision.ts'
import type { JsonObject, JsonValue } from '../../../shared/domain/json.ts'
import { createMessageWriter } from '../../../shared/process/grpc/wire.ts'
import type { Answer } from '../decisions/answer.ts'

/** The outcome of a question of a stream: its answer, or the code of its error. */
export type AnswerOrError = { readonly answer: Answer } | { readonly error: string }
export type StreamAnswer = { readonly id: number; readonly outcome: AnswerOrError }

export function createAnswerEncoder(): {
  /** The bytes of a DecideResponse. */
  one(answer: Answer): Buffer
  /** The bytes of a DecideStreamResponse. */
  all(answers: readonly StreamAnswer[]): Buffer
} {
  const written = createMessageWriter()
  return {
    one: (answer) => written((to) => writeAnswer(to, answer)),
    all: (answers) =>
      written((to) => {
        for (const answer of answers) writeStreamAnswer(to, answer)
      }),
  }
}

function writeStreamAnswer(to: BinaryWriter, { id, outcome }: StreamAnswer): void {
  to.uint32(ANSWERS).fork()
  if (id !== 0) to.uint32(ANSWER.id).uint32(id)
  if ('error' in outcome) to.uint32(ANSWER.error).string(outcome.error)
  else {
    to.uint32(ANSWER.decision).fork()
    writeAnswer(to, outcome.answer)
    to.join()
  }
  to.join()
}

function writeAnswer(to: BinaryWriter, answer: Answer): void {
  if (answer.active) to.uint32(DECISION.active).bool(true)
  if (answer.subject !== null) writeSubject(to, answer.subject)
  writeText(to, DECISION.organization, answer.organization)
  for (const result of answer.permissions) writeResult(to, result)
  for (const [key, result] of answer.entitlements) {
    to.uint32(DECISION.entitlements).fork()
    to.uint32(ENTRY.key).string(key)
    to.uint32(ENTRY.value).bytes(toBinary(EntitlementResultSchema, entitlementMessage(result)))
    to.join()
  }
  writeText(to, DECISION.decisionId, answer.decisionId)
  writeText(to, DECISION.revision, answer.revision)
  if (answer.validUntilMs !== null) to.uint32(DECISION.validUntilMs).double(answer.validUntilMs)
  writeText(to, DECISION.acr, answer.acr)
  if (answer.authTime !== null) to.uint32(DECISION.authTime).uint32(answer.authTime)
}

/** The protocol omits an empty text. */
function writeText(to: BinaryWriter, textTag: number, text: string | null | undefined): void {
  if (text !== null && text !== undefined && text !== '') to.uint32(textTag).string(text)
}

function writeSubject(to: BinaryWriter, { type, id, relation }: AskedSubject): void {
  to.uint32(DECISION.subject).fork()
  writeText(to, SUBJECT.type, type)
  writeText(to, SUBJECT.id, id)
  writeText(to, SUBJECT.relation, relation)
  to.join()
}

function writeResult(to: BinaryWriter, result: PermissionResult): void {
  to.uint32(DECISION.permissions).fork()
  writeText(to, RESULT.relation, result.relation)
  writeText(to, RESULT.resource, result.resource)
  if (result.allowed) to.uint32(RESULT.allowed).bool(true)
  writeText(to, RESULT.error, result.error)
  if (result.reason !== undefined) to.uint32(RESULT.reason).bytes(toBinary(ReasonSchema, reasonMessage(result.reason)))
  writeText(to, RESULT.reasonCode, result.reasonCode)
  for (const name of result.missingContext ?? []) to.uint32(RESULT.missingContext).string(name)
  to.join()
}

function reasonMessage({ code, message, path, missing, details = [] }: Reason) {
  return create(ReasonSchema, {
    code,
    message,
    path: path.map(stepMessage),
    missing: [...missing],
    details: [...details],
  })
}

function stepMessage(step: ReasonStep) {
  if ('tuple' in step) return create(ReasonStepSchema, { step: { case: 'tuple', value: step.tuple } })
  if ('member' in step) return create(ReasonStepSchema, { step: { case: 'member', value: step.member } })
  if ('rule' in step) return create(ReasonStepSchema, { step: { case: 'rule', value: step.rule } })
  return create(ReasonStepSchema, { step: { case: 'roleGrant', value: step.role_grant } })
}

type StructValue = { [member: string]: StructMember }
type StructMember = null | boolean | number | string | StructMember[] | StructValue

/** A message without a value, if the organization does not have the entitlement. */
function entitlementMessage(result: EntitlementResult | null) {
  if (result === null) return create(EntitlementResultSchema)
  return create(EntitlementResultSchema, { value: copyObject(result.value), version: BigInt(result.version) })
}

// A copy for the types: the generated one is mutable, ours is readonly.
function copyObject(value: JsonObject): StructValue {
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, copy(member)]))
}

function copy(value: JsonValue): StructMember {
  if (value === null || typeof value !== 'object') return value
  return isArray(value) ? value.map(copy) : copyObject(value)
}

const isArray = (value: readonly JsonValue[] | JsonObject): value is readonly JsonValue[] => Array.isArray(value)
