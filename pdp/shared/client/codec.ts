/** The questions of a PDP stream, encoded here, and those fields of answers that callers use. */
import { create, fromBinary } from '@bufbuild/protobuf'
import { BinaryReader, type BinaryWriter } from '@bufbuild/protobuf/wire'
import {
  ANSWER,
  ANSWERS,
  CHECK,
  DECISION,
  ENTRY,
  QUESTION,
  REQUEST,
  RESULT,
  SUBJECT,
  TOKEN,
} from '../../../proto/decision-tags.ts'
import { type EntitlementResult, EntitlementResultSchema } from '../../../proto/gen/portcullis/v1/decision_pb.ts'
import type { PermissionCheck } from '../domain/decision.ts'
import { createMessageWriter, readFields } from '../process/grpc/wire.ts'

/** A question of `DecideStream` about the bearer of a token, or about a guest. */
export type StreamedQuestion = {
  /** A guest's organization: token and digest are then empty; absent: the question is about the bearer of the token. */
  readonly guest?: string
  /** An access token, with its SHA-256 digest. */
  readonly token: string
  readonly digest: string
  readonly permissions: readonly PermissionCheck[]
  readonly entitlements: readonly string[]
  /** Values for parameters of conditions, as a JSON object; empty: no values. */
  readonly context: string
  /** The id of the request behind the question, under which the PDP keeps its answer; empty: no request. */
  readonly requestId: string
  /** The client's address in the request behind the question, for the PDP's decision log. */
  readonly clientAddress?: string
  /** The route of the request, as a route file writes it, under which the PDP keeps its answer. */
  readonly route?: string
  /** The trace span of the question (W3C Trace Context). */
  readonly traceparent?: string
}
/** A DecideStreamRequest. What is absent in a question is the empty string. */
export type Questions = {
  readonly tokens: readonly { readonly handle: number; readonly token: string }[]
  readonly questions: readonly ({ readonly id: number; readonly handle: number; readonly watched: boolean } & Required<
    Omit<StreamedQuestion, 'token' | 'digest'>
  >)[]
  /** Ids of watched questions to end. */
  readonly cancel: readonly number[]
}
/** A DecideResponse; absent fields are the empty string, false or 0. */
export type Decision = {
  active: boolean
  subjectType: string
  subjectId: string
  organization: string
  readonly permissions: PermissionResult[]
  /** Entitlements by key. */
  readonly entitlements: Map<string, EntitlementResult>
  /** The revision vector at which everything was answered. */
  revision: string
  acr: string
  authTime: number
}
type PermissionResult = {
  relation: string
  resource: string
  allowed: boolean
  error: string
  reasonCode: string
  missingContext: readonly string[]
}
/** An answer. Without a decision, `error` is the problem code, or `no outcome` if the PDP sent no code. */
export type StreamAnswer = { id: number; decision: Decision | null; error: string }

const NO_OUTCOME = 'no outcome'
const NONE: readonly string[] = []
const NO_ENTITLEMENT = create(EntitlementResultSchema)

/** True if the answer has exactly one result for each question: permissions in their order, and each entitlement key. */
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

const encode = createMessageWriter()

export function encodeQuestions({ tokens, questions, cancel }: Questions): Buffer {
  return encode((to) => {
    for (const { handle, token } of tokens) {
      to.uint32(REQUEST.tokens).fork()
      to.uint32(TOKEN.handle).uint32(handle).uint32(TOKEN.token).string(token).join()
    }
    for (const question of questions) writeQuestion(to, question)
    for (const id of cancel) to.uint32(REQUEST.cancel).uint32(id)
  })
}

function writeQuestion(to: BinaryWriter, question: Questions['questions'][number]): void {
  to.uint32(REQUEST.questions).fork()
  to.uint32(QUESTION.id).uint32(question.id).uint32(QUESTION.handle).uint32(question.handle)
  for (const { relation, resource, any } of question.permissions) {
    to.uint32(QUESTION.permissions).fork()
    to.uint32(CHECK.relation).string(relation).uint32(CHECK.resource).string(resource)
    if (any === true) to.uint32(CHECK.any).bool(true)
    to.join()
  }
  for (const key of question.entitlements) to.uint32(QUESTION.entitlements).string(key)
  if (question.context !== '') to.uint32(QUESTION.context).string(question.context)
  if (question.watched) to.uint32(QUESTION.watched).bool(true)
  if (question.requestId !== '') to.uint32(QUESTION.requestId).string(question.requestId)
  if (question.traceparent !== '') to.uint32(QUESTION.traceparent).string(question.traceparent)
  if (question.clientAddress !== '') to.uint32(QUESTION.clientAddress).string(question.clientAddress)
  if (question.route !== '') to.uint32(QUESTION.route).string(question.route)
  if (question.guest !== '') to.uint32(QUESTION.guest).string(question.guest)
  to.join()
}

/** Throws Error when the bytes are not a DecideStreamResponse. */
export function decodeAnswers(bytes: Uint8Array): StreamAnswer[] {
  const from = new BinaryReader(bytes)
  const answers: StreamAnswer[] = []
  readFields(from, bytes.length, (tag) => {
    if (tag !== ANSWERS) return false
    answers.push(readAnswer(from))
    return true
  })
  return answers
}

function readAnswer(from: BinaryReader): StreamAnswer {
  const answer: StreamAnswer = { id: 0, decision: null, error: '' }
  readFields(from, from.uint32(), (tag) => {
    if (tag === ANSWER.decision) answer.decision = readDecision(from)
    else if (tag === ANSWER.id) answer.id = from.uint32()
    else if (tag === ANSWER.error) answer.error = from.string(true) || NO_OUTCOME
    else return false
    return true
  })
  if (answer.decision === null) answer.error ||= NO_OUTCOME
  // An answer with an error never allows, even if it also has a decision.
  else if (answer.error !== '') answer.decision = null
  return answer
}

function readDecision(from: BinaryReader): Decision {
  const decision: Decision = {
    active: false,
    subjectType: '',
    subjectId: '',
    organization: '',
    permissions: [],
    entitlements: new Map(),
    revision: '',
    acr: '',
    authTime: 0,
  }
  readFields(from, from.uint32(), (tag) => {
    if (tag === DECISION.active) decision.active = from.bool()
    else if (tag === DECISION.subject) readSubject(from, decision)
    else if (tag === DECISION.organization) decision.organization = from.string(true)
    else if (tag === DECISION.permissions) decision.permissions.push(readResult(from))
    else if (tag === DECISION.entitlements) readEntitlement(from, decision.entitlements)
    else if (tag === DECISION.revision) decision.revision = from.string(true)
    else if (tag === DECISION.acr) decision.acr = from.string(true)
    else if (tag === DECISION.authTime) decision.authTime = from.uint32()
    else return false
    return true
  })
  return decision
}

function readSubject(from: BinaryReader, decision: Decision): void {
  readFields(from, from.uint32(), (tag) => {
    if (tag === SUBJECT.type) decision.subjectType = from.string(true)
    else if (tag === SUBJECT.id) decision.subjectId = from.string(true)
    else return false
    return true
  })
}

function readResult(from: BinaryReader): PermissionResult {
  const result: PermissionResult = {
    relation: '',
    resource: '',
    allowed: false,
    error: '',
    reasonCode: '',
    missingContext: NONE,
  }
  readFields(from, from.uint32(), (tag) => {
    if (tag === RESULT.relation) result.relation = from.string(true)
    else if (tag === RESULT.resource) result.resource = from.string(true)
    else if (tag === RESULT.allowed) result.allowed = from.bool()
    else if (tag === RESULT.error) result.error = from.string(true)
    else if (tag === RESULT.reasonCode) result.reasonCode = from.string(true)
    else if (tag === RESULT.missingContext) result.missingContext = [...result.missingContext, from.string(true)]
    else return false
    return true
  })
  return result
}

function readEntitlement(from: BinaryReader, entitlements: Decision['entitlements']): void {
  let key = ''
  let value: EntitlementResult = NO_ENTITLEMENT
  readFields(from, from.uint32(), (tag) => {
    if (tag === ENTRY.key) key = from.string(true)
    else if (tag === ENTRY.value) value = fromBinary(EntitlementResultSchema, from.bytes())
    else return false
    return true
  })
  entitlements.set(key, value)
}
