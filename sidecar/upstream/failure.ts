/** The problem that the client is told when the exchange with the upstream fails, and whether the request may be tried once more. */
import type { ProblemCode } from '../../pdp/shared/base/problems.ts'
import type { Permit } from '../enforce/enforce.ts'
import { FilterError } from '../http/edited-answer.ts'
import { PdpUnavailable, RequestError } from '../request/errors.ts'
import { RefusedError } from './upstream.ts'

const SAFE_METHODS = new Set(['GET', 'HEAD', 'OPTIONS'])
const CLOSED_CODES = new Set(['ECONNRESET', 'EPIPE', 'UND_ERR_SOCKET', 'ERR_HTTP2_STREAM_CANCEL'])
const TIMEOUT_CODES = new Set([
  'UND_ERR_HEADERS_TIMEOUT',
  'UND_ERR_BODY_TIMEOUT',
  'UND_ERR_CONNECT_TIMEOUT',
  'ETIMEDOUT',
])

export function failureOf(err: Error): ProblemCode {
  // A RequestError comes only from `streamBody`: the client's body stopped or was too slow.
  if (err instanceof RequestError) return 'request_timeout'
  if (err instanceof FilterError || err instanceof PdpUnavailable) return err.code
  return TIMEOUT_CODES.has(codeOf(err)) ? 'upstream_timeout' : 'upstream_unavailable'
}

export function isRepeatable({ request, body }: Permit, cause: Error): boolean {
  if (body === null && request.bodyBytes !== 0) return false
  // RFC 9110 section 9.2.2: a safe request may be repeated, since the upstream may close an idle connection just when it is used again.
  return cause instanceof RefusedError || (SAFE_METHODS.has(request.method) && CLOSED_CODES.has(codeOf(cause)))
}

const codeOf = (err: Error): string => ('code' in err && typeof err.code === 'string' ? err.code : '')
