/** Answers as bytes of the protocol, written straight from what was decided: building messages first costs more than deciding. */
import { create, type DescField, toBinary } from '@bufbuild/protobuf'
import { BinaryWriter, WireType } from '@bufbuild/protobuf/wire'
import {
  DecideResponseSchema,
  DecideStreamResponseSchema,
  EntitlementResultSchema,
  PermissionResultSchema,
  ReasonSchema,
  ReasonStepSchema,
  StreamAnswerSchema,
  SubjectSchema,
} from '../../proto/gen/portcullis/v1/decision_pb.ts'
import type { EntitlementResult, PermissionResult, Reason, ReasonStep, Subject } from '../pdp.ts'
import type { JsonObject, JsonValue } from '../store/contracts.ts'
import type { Answer } from './questions.ts'

/** What came of a question of a stream: its answer, or the code of the problem. */
export type Outcome = { readonly answer: Answer } | { readonly error: string }
export type StreamAnswer = { readonly id: number; readonly outcome: Outcome }

export type AnswerEncoder = {
  /** A DecideResponse. */
  one(answer: Answer): Buffer
  /** A DecideStreamResponse. */
  all(answers: readonly StreamAnswer[]): Buffer
}

/** Its memory is used again for every message, so it writes one at a time. */
export function createAnswerEncoder(): AnswerEncoder {
  let writer = new BinaryWriter()
  function written(write: (writer: BinaryWriter) => void): Buffer {
    try {
      write(writer)
      const bytes = writer.finish()
      return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    } catch (err) {
      writer = new BinaryWriter() // half a message stands in the old one
      throw err
    }
  }
  return {
    one: (answer) => written((to) => writeAnswer(to, answer)),
    all: (answers) =>
      written((to) => {
        for (const answer of answers) writeStreamAnswer(to, answer)
      }),
  }
}

/** What precedes the bytes of a field. */
const tag = ({ number }: DescField, type: WireType): number => ((number << 3) | type) >>> 0
const long = (field: DescField): number => tag(field, WireType.LengthDelimited)
const short = (field: DescField): number => tag(field, WireType.Varint)
const { field: ofAnswer } = DecideResponseSchema
const { field: ofSubject } = SubjectSchema
const { field: ofResult } = PermissionResultSchema
const { field: ofStream } = StreamAnswerSchema
const TAGS = {
  answers: long(DecideStreamResponseSchema.field.answers),
  stream: { id: short(ofStream.id), decision: long(ofStream.decision), error: long(ofStream.error) },
  active: short(ofAnswer.active),
  subject: long(ofAnswer.subject),
  organization: long(ofAnswer.organization),
  permissions: long(ofAnswer.permissions),
  entitlements: long(ofAnswer.entitlements),
  // Entries of a map are messages with these two fields.
  entry: { key: (1 << 3) | WireType.LengthDelimited, value: (2 << 3) | WireType.LengthDelimited },
  decisionId: long(ofAnswer.decisionId),
  revision: long(ofAnswer.revision),
  validUntilMs: tag(ofAnswer.validUntilMs, WireType.Bit64),
  acr: long(ofAnswer.acr),
  authTime: short(ofAnswer.authTime),
  subjectFields: { type: long(ofSubject.type), id: long(ofSubject.id) },
  result: {
    relation: long(ofResult.relation),
    resource: long(ofResult.resource),
    allowed: short(ofResult.allowed),
    error: long(ofResult.error),
    reason: long(ofResult.reason),
    reasonCode: long(ofResult.reasonCode),
  },
} as const

function writeStreamAnswer(to: BinaryWriter, { id, outcome }: StreamAnswer): void {
  to.uint32(TAGS.answers).fork()
  if (id !== 0) to.uint32(TAGS.stream.id).uint32(id)
  if ('error' in outcome) to.uint32(TAGS.stream.error).string(outcome.error)
  else {
    to.uint32(TAGS.stream.decision).fork()
    writeAnswer(to, outcome.answer)
    to.join()
  }
  to.join()
}

function writeAnswer(to: BinaryWriter, answer: Answer): void {
  if (answer.active) to.uint32(TAGS.active).bool(true)
  if (answer.subject !== null) writeSubject(to, answer.subject)
  writeText(to, TAGS.organization, answer.organization)
  for (const result of answer.permissions) writeResult(to, result)
  for (const [key, result] of answer.entitlements) {
    to.uint32(TAGS.entitlements).fork()
    to.uint32(TAGS.entry.key).string(key)
    to.uint32(TAGS.entry.value).bytes(toBinary(EntitlementResultSchema, entitlementMessage(result)))
    to.join()
  }
  writeText(to, TAGS.decisionId, answer.decisionId)
  writeText(to, TAGS.revision, answer.revision)
  if (answer.validUntilMs !== null) to.uint32(TAGS.validUntilMs).double(answer.validUntilMs)
  writeText(to, TAGS.acr, answer.acr)
  if (answer.authTime !== null) to.uint32(TAGS.authTime).uint32(answer.authTime)
}

/** An empty text is not there. */
function writeText(to: BinaryWriter, textTag: number, text: string | null | undefined): void {
  if (text !== null && text !== undefined && text !== '') to.uint32(textTag).string(text)
}

function writeSubject(to: BinaryWriter, { type, id }: Subject): void {
  to.uint32(TAGS.subject).fork()
  writeText(to, TAGS.subjectFields.type, type)
  writeText(to, TAGS.subjectFields.id, id)
  to.join()
}

function writeResult(to: BinaryWriter, result: PermissionResult): void {
  const { result: tags } = TAGS
  to.uint32(TAGS.permissions).fork()
  writeText(to, tags.relation, result.relation)
  writeText(to, tags.resource, result.resource)
  if (result.allowed) to.uint32(tags.allowed).bool(true)
  writeText(to, tags.error, result.error)
  if (result.reason !== undefined) to.uint32(tags.reason).bytes(toBinary(ReasonSchema, reasonMessage(result.reason)))
  writeText(to, tags.reasonCode, result.reasonCode)
  to.join()
}

function reasonMessage({ code, path, missing }: Reason) {
  return create(ReasonSchema, { code, path: path.map(stepMessage), missing: [...missing] })
}

function stepMessage(step: ReasonStep) {
  if ('tuple' in step) return create(ReasonStepSchema, { step: { case: 'tuple', value: step.tuple } })
  if ('member' in step) return create(ReasonStepSchema, { step: { case: 'member', value: step.member } })
  if ('rule' in step) return create(ReasonStepSchema, { step: { case: 'rule', value: step.rule } })
  return create(ReasonStepSchema, { step: { case: 'roleGrant', value: step.role_grant } })
}

type StructValue = { [member: string]: StructMember }
type StructMember = null | boolean | number | string | StructMember[] | StructValue

/** Without a value when the organization does not have it. */
function entitlementMessage(result: EntitlementResult | null) {
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
