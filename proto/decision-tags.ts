/** The tags before the fields of the messages of `DecideStream`, for those who write and read them byte by byte. */
import type { DescField } from '@bufbuild/protobuf'
import { WireType } from '@bufbuild/protobuf/wire'
import {
  DecideResponseSchema,
  DecideStreamRequestSchema,
  DecideStreamResponseSchema,
  PermissionCheckSchema,
  PermissionResultSchema,
  StreamAnswerSchema,
  StreamQuestionSchema,
  SubjectSchema,
  TokenHandleSchema,
} from './gen/portcullis/v1/decision_pb.ts'

const tagOf = ({ number }: DescField, type: WireType): number => ((number << 3) | type) >>> 0
/** The tag of texts, messages and packed lists. */
const longTag = (field: DescField): number => tagOf(field, WireType.LengthDelimited)
/** The tag of numbers and booleans. */
const shortTag = (field: DescField): number => tagOf(field, WireType.Varint)

const { field: ofRequest } = DecideStreamRequestSchema
const { field: ofToken } = TokenHandleSchema
const { field: ofQuestion } = StreamQuestionSchema
const { field: ofCheck } = PermissionCheckSchema
const { field: ofStream } = StreamAnswerSchema
const { field: ofDecision } = DecideResponseSchema
const { field: ofSubject } = SubjectSchema
const { field: ofResult } = PermissionResultSchema

export const REQUEST = {
  tokens: longTag(ofRequest.tokens),
  questions: longTag(ofRequest.questions),
  /** One id; a list of them is packed or not, as its writer likes. */
  cancel: shortTag(ofRequest.cancel),
  cancelPacked: longTag(ofRequest.cancel),
}
export const TOKEN = { handle: shortTag(ofToken.handle), token: longTag(ofToken.token) }
export const QUESTION = {
  id: shortTag(ofQuestion.id),
  handle: shortTag(ofQuestion.handle),
  permissions: longTag(ofQuestion.permissions),
  entitlements: longTag(ofQuestion.entitlements),
  context: longTag(ofQuestion.context),
  watched: shortTag(ofQuestion.watched),
  requestId: longTag(ofQuestion.requestId),
  traceparent: longTag(ofQuestion.traceparent),
  clientAddress: longTag(ofQuestion.clientAddress),
  route: longTag(ofQuestion.route),
  guest: longTag(ofQuestion.guest),
}
export const CHECK = {
  relation: longTag(ofCheck.relation),
  resource: longTag(ofCheck.resource),
  any: shortTag(ofCheck.any),
}

export const ANSWERS = longTag(DecideStreamResponseSchema.field.answers)
export const ANSWER = {
  id: shortTag(ofStream.id),
  decision: longTag(ofStream.decision),
  error: longTag(ofStream.error),
}
export const DECISION = {
  active: shortTag(ofDecision.active),
  subject: longTag(ofDecision.subject),
  organization: longTag(ofDecision.organization),
  permissions: longTag(ofDecision.permissions),
  entitlements: longTag(ofDecision.entitlements),
  decisionId: longTag(ofDecision.decisionId),
  revision: longTag(ofDecision.revision),
  validUntilMs: tagOf(ofDecision.validUntilMs, WireType.Bit64),
  acr: longTag(ofDecision.acr),
  authTime: shortTag(ofDecision.authTime),
}
export const SUBJECT = {
  type: longTag(ofSubject.type),
  id: longTag(ofSubject.id),
  relation: longTag(ofSubject.relation),
}
export const RESULT = {
  relation: longTag(ofResult.relation),
  resource: longTag(ofResult.resource),
  allowed: shortTag(ofResult.allowed),
  error: longTag(ofResult.error),
  reason: longTag(ofResult.reason),
  reasonCode: longTag(ofResult.reasonCode),
  missingContext: longTag(ofResult.missingContext),
}
/** Entries of a map are messages with these two fields. */
export const ENTRY = { key: (1 << 3) | WireType.LengthDelimited, value: (2 << 3) | WireType.LengthDelimited }
