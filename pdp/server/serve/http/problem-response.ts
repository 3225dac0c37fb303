/** Sends every HTTP error as RFC 9457 problem details: ours, the framework's and the parser's. */
import { STATUS_CODES } from 'node:http'
import type { Socket } from 'node:net'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { PROBLEM_MEDIA_TYPE, problem } from '../../../shared/base/problems.ts'
import type { ValidationIssue } from '../../../shared/domain/errors.ts'
import { pointer } from '../../../shared/domain/json.ts'
import { FORM } from './schemas.ts'
import { asRequestProblem, RequestProblem, type RequestProblemCode, STATUS } from './status.ts'

const ISSUES_MAX = 100
/** Keeps browsers from taking an answer for a page or script. */
export const NOSNIFF = ['x-content-type-options', 'nosniff'] as const
const RETRY_AFTER_S = '1'
/** Answers with these status codes say when to try again (RFC 9110 section 10.2.3, RFC 6585 section 4). */
const RETRIED: ReadonlySet<number> = new Set([STATUS.store_unavailable.http, STATUS.overloaded.http])

type SchemaError = {
  readonly instancePath: string
  readonly keyword: string
  readonly params: { readonly [name: string]: unknown }
  readonly message?: string
  /** The name that breaks a `propertyNames` rule. */
  readonly propertyName?: string
  readonly parentSchema?: { readonly [keyword: string]: unknown }
}

const FRAMEWORK_CODES: { readonly [code: string]: readonly [RequestProblemCode, string] } = {
  FST_ERR_CTP_BODY_TOO_LARGE: ['request_too_large', 'the body is larger than this server reads'],
  FST_ERR_CTP_INVALID_MEDIA_TYPE: ['media_type_unsupported', 'send the body as application/json'],
  FST_ERR_CTP_EMPTY_TYPE: ['media_type_unsupported', 'send the body as application/json'],
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: ['request_invalid', 'the length of the body differs from Content-Length'],
  FST_ERR_BAD_URL: ['request_invalid', 'the path is not correctly percent-encoded'],
  FST_ERR_MAX_PARAM_LENGTH: ['request_invalid', 'a path segment is too long'],
}

/** Does what asRequestProblem does, also for the framework's errors. */
export function asHttpProblem(err: unknown): RequestProblem {
  if (!(err instanceof Error)) return asRequestProblem(err)
  if ('validation' in err && Array.isArray(err.validation)) {
    const context = 'validationContext' in err ? String(err.validationContext) : 'body'
    return invalid(err.validation, context)
  }
  const known = 'code' in err ? FRAMEWORK_CODES[String(err.code)] : undefined
  if (known !== undefined) return new RequestProblem(known[0], known[1], { cause: err })
  if (isCallersIssue(err)) return new RequestProblem('request_invalid', 'the request cannot be read', { cause: err })
  return asRequestProblem(err)
}

/** True for each framework error with status 4xx, even one of a newer version. */
const isCallersIssue = (err: Error): boolean =>
  'code' in err &&
  String(err.code).startsWith('FST_') &&
  'statusCode' in err &&
  typeof err.statusCode === 'number' &&
  err.statusCode >= STATUS.request_invalid.http &&
  err.statusCode < STATUS.internal.http

function invalid(errors: readonly SchemaError[], context: string): RequestProblem {
  const places = new Map<string, ValidationIssue>()
  for (const error of errors.slice(0, ISSUES_MAX)) {
    const place = placeOf(error, context)
    // For `["string", "object"]`, each branch is reported; the first message about a position is enough.
    if (!places.has(place)) places.set(place, { place, message: messageOf(error, context) })
  }
  const issues = [...places.values()]
  return new RequestProblem(
    'request_invalid',
    issues.map(({ place, message }) => `${place || 'the body'} ${message}`).join('; '),
    { issues },
  )
}

/** A JSON pointer into the body; `?name` for the query, `:name` for the path. */
function placeOf({ instancePath, params, propertyName }: SchemaError, context: string): string {
  const member = params.additionalProperty ?? params.missingProperty ?? params.propertyName ?? propertyName
  const place = typeof member === 'string' ? pointer(instancePath, member) : instancePath
  if (context === 'body') return place
  return `${context === 'params' ? ':' : '?'}${place.slice(1)}`
}

function messageOf({ keyword, params, message, parentSchema }: SchemaError, context: string): string {
  switch (keyword) {
    case 'additionalProperties':
      return 'is not a known member'
    case 'required':
      return 'is missing'
    case 'enum':
      return `must be one of ${[params.allowedValues].flat().join(', ')}`
    case 'pattern':
      return `must be ${parentSchema?.[FORM] ?? 'as its description says'}`
    case 'format':
      return params.format === 'date-time'
        ? 'must be an instant such as 2030-01-31T12:00:00Z'
        : `must be a ${params.format}`
    case 'type':
      // A query parameter that was given several times is not one string.
      return context === 'querystring' ? 'must be given once' : `must be ${[params.type].flat().join(' or ')}`
    default:
      return message ?? 'is not valid'
  }
}

function body(found: RequestProblem, requestId: string | null): string {
  return JSON.stringify(problemOf(found, requestId))
}

/** RFC 9457 problem details with the status and every issue. */
export function problemOf(found: RequestProblem, requestId: string | null): object {
  return {
    ...problem(found.code, { detail: found.message }),
    status: STATUS[found.code].http,
    ...(found.issues.length === 0 ? {} : { errors: found.issues.map(presentIssue) }),
    ...(requestId === null ? {} : { request_id: requestId }),
  }
}

// RFC 9457 section 3 shows `pointer` for a JSON body. An issue in YAML or lines has a line; in the path or query, a name.
function presentIssue({ place, message }: ValidationIssue): { [member: string]: string | number } {
  const [line, column] = /^\d+(?::\d+)?$/.test(place) ? place.split(':').map(Number) : []
  if (line !== undefined) return { line, ...(column === undefined ? {} : { column }), detail: message }
  return /^[?:]/.test(place) ? { parameter: place.slice(1), detail: message } : { pointer: place, detail: message }
}

/** The answer to an error without its body: the status, and the fields of every error. */
export function asError(request: FastifyRequest, reply: FastifyReply, found: RequestProblem): FastifyReply {
  const { http } = STATUS[found.code]
  reply.headers(found.headers)
  if (RETRIED.has(http)) reply.header('retry-after', RETRY_AFTER_S)
  return reply.code(http).header('x-request-id', request.id).header('cache-control', 'no-store')
}

export function sendProblem(request: FastifyRequest, reply: FastifyReply, found: RequestProblem): FastifyReply {
  return asError(request, reply, found)
    .header(...NOSNIFF)
    .type(PROBLEM_MEDIA_TYPE)
    .send(body(found, request.id))
}

const PARSER_CODES: { readonly [code: string]: readonly [RequestProblemCode, string] } = {
  HPE_HEADER_OVERFLOW: ['headers_too_large', 'the header fields are larger than this server reads'],
  ERR_HTTP_REQUEST_TIMEOUT: ['request_timeout', 'the request did not arrive in time'],
}

/** Answers bytes that are no HTTP, on the bare socket. `pageFor`: the page for a browser; null: another client. */
export function answerClientError(
  err: Error & { readonly code?: string; readonly rawPacket?: unknown },
  socket: Socket,
  pageFor: (packet: string) => string | null,
): void {
  if (err.code === 'ECONNRESET' || !socket.writable) return void socket.destroy()
  const [code, message] = PARSER_CODES[err.code ?? ''] ?? ['request_invalid', 'this is not an HTTP request']
  const packet = code === 'headers_too_large' && err.rawPacket instanceof Buffer ? err.rawPacket.toString('latin1') : ''
  const page = pageFor(packet)
  if (page !== null) return void socket.end(page)
  const found = new RequestProblem(code, message)
  const text = body(found, null)
  const status = STATUS[code].http
  socket.end(
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\nContent-Type: ${PROBLEM_MEDIA_TYPE}\r\nContent-Length: ${Buffer.byteLength(text)}\r\n${NOSNIFF.join(': ')}\r\nConnection: close\r\n\r\n${text}`,
  )
}
