/** The only table from a problem code to its HTTP and gRPC status, and the error that carries a code to the transport. */
import { status as grpc } from '@grpc/grpc-js'
import type { ProblemCode } from '../../../shared/base/problems.ts'
import { PdpError, type ValidationIssue } from '../../../shared/domain/errors.ts'
import { TokenError } from '../../../shared/token/errors.ts'

export const STATUS = {
  request_invalid: { http: 400, grpc: grpc.INVALID_ARGUMENT },
  token_missing: { http: 401, grpc: grpc.UNAUTHENTICATED },
  token_invalid: { http: 401, grpc: grpc.UNAUTHENTICATED },
  proof_missing: { http: 401, grpc: grpc.UNAUTHENTICATED },
  proof_invalid: { http: 401, grpc: grpc.UNAUTHENTICATED },
  proof_replayed: { http: 401, grpc: grpc.UNAUTHENTICATED },
  scope_insufficient: { http: 403, grpc: grpc.PERMISSION_DENIED },
  permission_denied: { http: 403, grpc: grpc.PERMISSION_DENIED },
  route_unknown: { http: 404, grpc: grpc.UNIMPLEMENTED },
  not_found: { http: 404, grpc: grpc.NOT_FOUND },
  organization_unknown: { http: 404, grpc: grpc.NOT_FOUND },
  method_unsupported: { http: 405, grpc: grpc.UNIMPLEMENTED },
  request_timeout: { http: 408, grpc: grpc.DEADLINE_EXCEEDED },
  conflict: { http: 409, grpc: grpc.ALREADY_EXISTS },
  precondition_failed: { http: 412, grpc: grpc.FAILED_PRECONDITION },
  request_too_large: { http: 413, grpc: grpc.RESOURCE_EXHAUSTED },
  media_type_unsupported: { http: 415, grpc: grpc.INVALID_ARGUMENT },
  condition_failed: { http: 422, grpc: grpc.FAILED_PRECONDITION },
  evaluation_limit: { http: 422, grpc: grpc.RESOURCE_EXHAUSTED },
  overloaded: { http: 429, grpc: grpc.RESOURCE_EXHAUSTED },
  headers_too_large: { http: 431, grpc: grpc.RESOURCE_EXHAUSTED },
  internal: { http: 500, grpc: grpc.INTERNAL },
  store_unavailable: { http: 503, grpc: grpc.UNAVAILABLE },
  keys_unavailable: { http: 503, grpc: grpc.UNAVAILABLE },
  issuer_unavailable: { http: 503, grpc: grpc.UNAVAILABLE },
  replay_memory_unavailable: { http: 503, grpc: grpc.UNAVAILABLE },
  draining: { http: 503, grpc: grpc.UNAVAILABLE },
  handle_unknown: { http: 400, grpc: grpc.INVALID_ARGUMENT },
  watched_limit: { http: 400, grpc: grpc.RESOURCE_EXHAUSTED },
} as const satisfies { readonly [Code in ProblemCode]?: { readonly http: number; readonly grpc: grpc } }
export type RequestProblemCode = keyof typeof STATUS

/** A problem that answers a request. The caller gets the message; `cause` is only logged. */
export class RequestProblem extends Error {
  override readonly name = 'RequestProblem'
  readonly code: RequestProblemCode
  readonly issues: readonly ValidationIssue[]
  readonly headers: { readonly [name: string]: string }
  constructor(
    code: RequestProblemCode,
    message: string,
    options: {
      readonly issues?: readonly ValidationIssue[]
      readonly headers?: { readonly [name: string]: string }
      readonly cause?: unknown
    } = {},
  ) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause })
    this.code = code
    this.issues = options.issues ?? []
    this.headers = options.headers ?? {}
  }
}

/** Turns anything thrown into what the caller may see. An unexpected error becomes `internal`, without its message. */
export function asRequestProblem(err: unknown): RequestProblem {
  if (err instanceof RequestProblem) return err
  if (err instanceof PdpError) return new RequestProblem(err.code, err.message, { issues: err.issues, cause: err })
  if (err instanceof TokenError && (err.code === 'keys_unavailable' || err.code === 'issuer_unavailable'))
    return new RequestProblem(err.code, err.message, { cause: err })
  return new RequestProblem(
    'internal',
    'an unexpected error occurred; the log of this server has it under the request id',
    {
      cause: err,
    },
  )
}

/** True if the operator must act, not the caller. */
export function isFault(code: RequestProblemCode): boolean {
  return STATUS[code].http >= 500
}

export const SUCCESS = { ok: 200, created: 201, empty: 204, unmodified: 304 } as const
