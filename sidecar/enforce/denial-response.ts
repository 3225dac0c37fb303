/** The only table of status numbers. Makes the answer to a request that is denied, or whose upstream fails. */
import type { Duplex } from 'node:stream'
import {
  PROBLEM_MEDIA_TYPE,
  PROBLEM_TITLES,
  type ProblemCode,
  type ProblemMembers,
  problem,
} from '../../pdp/shared/base/problems.ts'
import { type ChallengeError, type ChallengeScheme, challenge } from '../../pdp/shared/token/challenge.ts'
import { PROOF_ALGORITHMS } from '../../pdp/shared/token/dpop.ts'
import type { ClientAnswer } from '../http/client-request.ts'
import { pairsOf } from '../http/fields.ts'
import { grpcEnd } from '../http/grpc.ts'
import { RPC, type RpcReply, rpcError } from '../mcp/rpc-error.ts'
import type { PermissionQuestion } from '../pdp-client/question.ts'
import type { StepUp } from '../routes/step-up.ts'

type Row = {
  readonly status: number
  /** Replaces the code of `GRPC_STATUSES`, for FAILED_PRECONDITION and RESOURCE_EXHAUSTED. */
  readonly grpc?: number
  readonly error?: ChallengeError
  readonly challenged?: true
  readonly retry?: true
  /** True: in shadow mode this denial is only recorded, and the request is still permitted. */
  readonly shadowed?: true
}

const ROWS: { readonly [code in ProblemCode]?: Row } = {
  request_invalid: { status: 400 },
  path_too_complex: { status: 400 },
  route_ambiguous: { status: 400 },
  target_too_long: { status: 414 },
  request_timeout: { status: 408 },
  request_too_large: { status: 413 },
  media_type_unsupported: { status: 415 },
  headers_too_large: { status: 431 },
  route_unknown: { status: 404 },
  method_unsupported: { status: 405 },
  host_unknown: { status: 421 },
  // RFC 6750 section 3.1: no error code when there were no credentials.
  token_missing: { status: 401, challenged: true, shadowed: true },
  token_invalid: { status: 401, challenged: true, error: 'invalid_token', shadowed: true },
  token_expired: { status: 401, challenged: true, error: 'invalid_token', shadowed: true },
  proof_missing: { status: 401, challenged: true, error: 'invalid_dpop_proof', shadowed: true },
  proof_invalid: { status: 401, challenged: true, error: 'invalid_dpop_proof', shadowed: true },
  proof_replayed: { status: 401, challenged: true, error: 'invalid_dpop_proof', shadowed: true },
  scope_insufficient: { status: 403, challenged: true, error: 'insufficient_scope', shadowed: true },
  permission_denied: { status: 403, shadowed: true },
  // The code of the challenge tells the client what to do (RFC 9449 section 9, RFC 9470 section 3).
  proof_nonce_required: { status: 401, challenged: true, error: 'use_dpop_nonce', shadowed: true },
  step_up_required: { status: 401, challenged: true, error: 'insufficient_user_authentication', shadowed: true },
  origin_refused: { status: 403, shadowed: true },
  entitlement_required: { status: 403, shadowed: true },
  pdp_unavailable: { status: 503, retry: true, shadowed: true },
  // No Retry-After: the PDP has answered, and a retry would get the same answer.
  condition_failed: { status: 503, grpc: 9, shadowed: true },
  evaluation_limit: { status: 503, grpc: 8, shadowed: true },
  overloaded: { status: 503, retry: true, shadowed: true },
  keys_unavailable: { status: 503, retry: true, shadowed: true },
  issuer_unavailable: { status: 503, retry: true, shadowed: true },
  issuer_mismatch: { status: 503, retry: true, shadowed: true },
  replay_memory_unavailable: { status: 503, retry: true, shadowed: true },
  session_unavailable: { status: 503, retry: true, shadowed: true },
  draining: { status: 503, retry: true },
  busy: { status: 503, retry: true },
  upstream_unavailable: { status: 502 },
  upstream_timeout: { status: 504 },
  internal: { status: 500 },
}
/** Answers of the sidecar itself that are not denials. */
export const OWN_STATUS = { options: 204, metadata: 200, ready: 200, notReady: 503 } as const
const INTERNAL: Row = { status: 500 }
const RETRY_AFTER_SECONDS = '1'
/** gRPC status codes by HTTP status. They follow the protocol's own mapping where it has the right meaning. */
const GRPC_STATUSES: { readonly [status: number]: number } = {
  400: 3, // INVALID_ARGUMENT
  401: 16, // UNAUTHENTICATED
  403: 7, // PERMISSION_DENIED
  404: 12, // UNIMPLEMENTED
  405: 12,
  408: 4, // DEADLINE_EXCEEDED
  413: 8, // RESOURCE_EXHAUSTED
  414: 3,
  415: 3,
  421: 14, // UNAVAILABLE
  431: 8,
  502: 14,
  503: 14,
  504: 4,
}
const GRPC_INTERNAL = 13
const GRPC_HTTP_STATUS = 200

export type DenialMembers = {
  /** The client's way of authentication; absent: it had none. */
  readonly scheme?: ChallengeScheme | undefined
  readonly detail?: string | undefined
  readonly allow?: readonly string[] | undefined
  readonly scope?: string | undefined
  readonly entitlement?: string | undefined
  /** The question that the PDP answered with no, for the page that a person sees; null: the subject has no organization to ask. */
  readonly missing?: PermissionQuestion | null
  readonly stepUp?: StepUp | undefined
  /** The credentials themselves were malformed (RFC 6750 section 3.1, invalid_request). */
  readonly malformedCredentials?: boolean | undefined
  /** The reply to a client that speaks MCP; absent for other clients. */
  readonly rpc?: RpcReply | undefined
}
export type DenialAnswer = {
  readonly status: number
  /** Names and values of header fields, alternating. */
  readonly fields: readonly string[]
  readonly body: string
}
export type DenialContext = {
  readonly requestId: string
  /** URL of the protected resource metadata (RFC 9728 section 5.1); null if it is not known. */
  readonly metadataUrl: string | null
  /** The nonce for the client's next proof (RFC 9449 section 8.2); null: proofs need no nonce. */
  readonly nonce?: string | null
}

/** True for a denial that shadow mode turns into a permit: a decision about the sender, or a decision that could not be made. */
export const isShadowed = (code: ProblemCode): boolean => ROWS[code]?.shadowed === true

export const denialStatus = (code: ProblemCode): number => (ROWS[code] ?? INTERNAL).status

/** The whole answer to a denied request. */
export function describeDenial(code: ProblemCode, members: DenialMembers, context: DenialContext): DenialAnswer {
  const row = ROWS[code] ?? INTERNAL
  // A client of MCP, too, learns from status and challenge how to get a better token (MCP, Authorization): it gets no JSON-RPC error here.
  if (members.rpc !== undefined && row.challenged !== true)
    return describeRpcDenial(code, members.rpc, { members, context })
  const { detail, entitlement, scope } = members
  const extra: ProblemMembers = {
    ...(detail !== undefined && { detail }),
    ...(entitlement !== undefined && { entitlement }),
    ...(scope !== undefined && { scope }),
    instance: `urn:portcullis:request:${context.requestId}`,
  }
  const body = JSON.stringify({ ...problem(code, extra), status: row.status })
  const content = ['content-type', PROBLEM_MEDIA_TYPE, 'content-length', String(Buffer.byteLength(body))]
  return { status: row.status, fields: [...content, ...denialFields(row, members, context)], body }
}

/** An MCP client that waits for the answer to an id gets one with status 200: at any other status some clients end their session. */
function describeRpcDenial(
  code: ProblemCode,
  rpc: RpcReply,
  { members, context }: { readonly members: DenialMembers; readonly context: DenialContext },
): DenialAnswer {
  const row = ROWS[code] ?? INTERNAL
  const status = rpc.status ?? (rpc.id === null ? row.status : RPC_HTTP_STATUS)
  const body = rpcDenial(code, rpc, { ...members, requestId: context.requestId })
  const content = ['content-type', 'application/json', 'content-length', String(Buffer.byteLength(body))]
  return { status, fields: [...content, ...denialFields(row, members, context)], body }
}

/** The JSON-RPC error, as an answer or as the last event of a stream. */
export function rpcDenial(
  code: ProblemCode,
  rpc: RpcReply,
  { detail, entitlement, requestId }: Pick<DenialMembers, 'detail' | 'entitlement'> & { readonly requestId: string },
): string {
  const { status } = ROWS[code] ?? INTERNAL
  const own = status >= 500 ? RPC.internal : DENIALS.has(code) ? RPC.denied : RPC.request
  const title = PROBLEM_TITLES[code]
  const message = rpc.message ?? (detail === undefined ? title : `${title}: ${detail}`)
  const data = { code, request_id: requestId, ...(entitlement !== undefined && { entitlement }), ...rpc.data }
  return rpcError(rpc.id, { code: rpc.code ?? own, message, data })
}

const RPC_HTTP_STATUS = 200
/** Denials that are about the subject and not about the message. A running call may also end with one about the token. */
const DENIALS: ReadonlySet<ProblemCode> = new Set([
  'permission_denied',
  'entitlement_required',
  'scope_insufficient',
  'token_invalid',
  'token_expired',
  'step_up_required',
])

/** The denial of a gRPC call (HTTP status 200): a header section with the gRPC status, and no body. */
export function describeGrpcDenial(code: ProblemCode, members: DenialMembers, context: DenialContext): DenialAnswer {
  const about = members.detail ?? members.entitlement ?? members.scope
  const end = grpcDenialEnd(code, about === undefined ? '' : `: ${about}`).flat()
  const fields = denialFields(ROWS[code] ?? INTERNAL, members, context)
  return { status: GRPC_HTTP_STATUS, fields: ['content-type', 'application/grpc', ...end, ...fields], body: '' }
}

/** The trailers of a gRPC call that is denied, or whose permission has ended. */
export const grpcDenialEnd = (code: ProblemCode, about = ''): [string, string][] => [
  ...grpcEnd(ROWS[code]?.grpc ?? GRPC_STATUSES[denialStatus(code)] ?? GRPC_INTERNAL, `${PROBLEM_TITLES[code]}${about}`),
  ['portcullis-problem', code],
]

function denialFields(row: Row, members: DenialMembers, context: DenialContext): string[] {
  const fields = ['cache-control', 'no-store', 'x-request-id', context.requestId]
  for (const value of challenges(row, members, context)) fields.push('www-authenticate', value)
  if (members.allow !== undefined) fields.push('allow', members.allow.join(', '))
  if (row.challenged === true && context.nonce) fields.push('dpop-nonce', context.nonce)
  if (row.retry === true) fields.push('retry-after', RETRY_AFTER_SECONDS)
  return fields
}

const ALGS = PROOF_ALGORITHMS.join(' ')

function challenges(row: Row, members: DenialMembers, { metadataUrl }: DenialContext): string[] {
  const shared = metadataUrl === null ? {} : { resource_metadata: metadataUrl }
  if (members.malformedCredentials === true) return [challenge('Bearer', { error: 'invalid_request', ...shared })]
  if (row.challenged !== true) return []
  const { error } = row
  const { scope, stepUp } = members
  if (error === undefined) {
    const asked = { ...(scope !== undefined && { scope }), ...shared }
    return [challenge('Bearer', asked), challenge('DPoP', { algs: ALGS, ...asked })]
  }
  const parameters = { error, ...(scope !== undefined && { scope }), ...describeStepUp(stepUp), ...shared }
  if (members.scheme !== 'DPoP') return [challenge('Bearer', parameters)]
  return [challenge('DPoP', { ...parameters, algs: ALGS })]
}

function describeStepUp(stepUp: StepUp | undefined): { acr_values?: string; max_age?: number } {
  if (stepUp === undefined) return {}
  const { acrValues, maxAgeSeconds } = stepUp
  return {
    ...(acrValues.length > 0 && { acr_values: acrValues.join(' ') }),
    ...(maxAgeSeconds !== null && { max_age: maxAgeSeconds }),
  }
}

/** `close`: the connection ends after the answer, so the rest of the request's body is not read. */
export function sendDenial(res: ClientAnswer, answer: DenialAnswer, { close = false } = {}): void {
  if (res.headersSent || res.destroyed) return void res.destroy()
  res.writeHead(answer.status, close ? [...answer.fields, 'connection', 'close'] : [...answer.fields])
  res.end(answer.body)
}

/** Answers input that never became a request: unparsable bytes, CONNECT, or a request that arrived too slowly. */
export function sendRawDenial(connection: Duplex, answer: DenialAnswer): void {
  if (!connection.writable) return void connection.destroy()
  const fields = pairsOf(answer.fields).map(([name, value]) => `${name}: ${value}`)
  const lines = [`HTTP/1.1 ${answer.status} Refused`, 'connection: close', ...fields]
  connection.end(`${lines.join('\r\n')}\r\n\r\n${answer.body}`)
}
