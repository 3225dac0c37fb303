/**
 * Reads the questions of a stream from bytes. The generated code would allocate messages; because it has also allocated
 * many long-lived ones, V8 would put these in the old space, where each waits for a full garbage collection.
 */
import { BinaryReader } from '@bufbuild/protobuf/wire'
import { CHECK, QUESTION, REQUEST, TOKEN } from '../../../../proto/decision-tags.ts'
import type { PermissionCheck } from '../../../shared/domain/decision.ts'
import { endOf, readFields, requireAt } from '../../../shared/process/grpc/wire.ts'

export type TokenHandle = { readonly handle: number; readonly token: string }
export type StreamQuestion = {
  readonly id: number
  readonly handle: number
  readonly permissions: readonly PermissionCheck[]
  readonly entitlements: readonly string[]
  /** A JSON object; empty: no context. */
  readonly context: string
  readonly watched: boolean
  /** The id that the caller gives the request; it is not verified. */
  readonly requestId: string
  /** The caller's trace; empty: no trace. */
  readonly traceparent: string
  /** The client's address as the caller reports it; empty: unknown. */
  readonly clientAddress: string
  /** The route as the caller reports it; empty: no route. */
  readonly route: string
  /** A guest's organization; empty: the question is about the token's bearer. */
  readonly guest: string
}
export type StreamRequest = {
  readonly tokens: readonly TokenHandle[]
  readonly questions: readonly StreamQuestion[]
  /** Ids of watched questions to end. */
  readonly cancel: readonly number[]
}

/** How many members a message may have: small members take many times their bytes after decoding. */
const MEMBERS_MAX = 100_000

/** Decodes a DecideStreamRequest. Throws Error if the bytes are not one, or have too many members. */
export function decodeStreamRequest(bytes: Uint8Array): StreamRequest {
  let membersCount = 0
  const count = (): void => {
    membersCount += 1
    if (membersCount > MEMBERS_MAX) throw new Error(`a message has ${MEMBERS_MAX} questions, checks and keys at most`)
  }
  const from = new BinaryReader(bytes)
  const tokens: TokenHandle[] = []
  const questions: StreamQuestion[] = []
  const cancel: number[] = []
  readFields(from, bytes.length, (field) => {
    count()
    if (field === REQUEST.questions) questions.push(readQuestion(from, count))
    else if (field === REQUEST.tokens) tokens.push(readToken(from))
    else if (field === REQUEST.cancel) cancel.push(from.uint32())
    else if (field === REQUEST.cancelPacked) {
      const end = endOf(from, from.uint32())
      while (from.pos < end) {
        count()
        cancel.push(from.uint32())
      }
      requireAt(from, end)
    } else return false
    return true
  })
  return { tokens, questions, cancel }
}

function readToken(from: BinaryReader): TokenHandle {
  let handle = 0
  let token = ''
  readFields(from, from.uint32(), (field) => {
    if (field === TOKEN.handle) handle = from.uint32()
    else if (field === TOKEN.token) token = from.string(true)
    else return false
    return true
  })
  return { handle, token }
}

function readQuestion(from: BinaryReader, count: () => void): StreamQuestion {
  const permissions: PermissionCheck[] = []
  const entitlements: string[] = []
  let id = 0
  let handle = 0
  let context = ''
  let watched = false
  let requestId = ''
  let traceparent = ''
  let clientAddress = ''
  let route = ''
  let guest = ''
  readFields(from, from.uint32(), (field) => {
    count()
    if (field === QUESTION.permissions) permissions.push(readCheck(from))
    else if (field === QUESTION.id) id = from.uint32()
    else if (field === QUESTION.handle) handle = from.uint32()
    else if (field === QUESTION.entitlements) entitlements.push(from.string(true))
    else if (field === QUESTION.context) context = from.string(true)
    else if (field === QUESTION.watched) watched = from.bool()
    else if (field === QUESTION.requestId) requestId = from.string(true)
    else if (field === QUESTION.traceparent) traceparent = from.string(true)
    else if (field === QUESTION.clientAddress) clientAddress = from.string(true)
    else if (field === QUESTION.route) route = from.string(true)
    else if (field === QUESTION.guest) guest = from.string(true)
    else return false
    return true
  })
  return {
    id,
    handle,
    permissions,
    entitlements,
    context,
    watched,
    requestId,
    traceparent,
    clientAddress,
    route,
    guest,
  }
}

function readCheck(from: BinaryReader): PermissionCheck {
  let relation = ''
  let resource = ''
  let any = false
  readFields(from, from.uint32(), (field) => {
    if (field === CHECK.relation) relation = from.string(true)
    else if (field === CHECK.resource) resource = from.string(true)
    else if (field === CHECK.any) any = from.bool()
    else return false
    return true
  })
  return { relation, resource, any }
}
