/** Errors of SCIM calls in SCIM's own form (RFC 7644 section 3.12). */
import type { FastifyReply, FastifyRequest } from 'fastify'
import { asError, asHttpProblem } from '../http/problem-response.ts'
import { RequestProblem, type RequestProblemCode } from '../http/status.ts'

export const SCIM_PATH = '/scim/v2'
export const SCIM_TYPE = 'application/scim+json; charset=utf-8'
const ERROR_SCHEMA = 'urn:ietf:params:scim:api:messages:2.0:Error'

/** Types of errors in RFC 7644 table 9. */
export type ScimType =
  | 'invalidFilter'
  | 'tooMany'
  | 'uniqueness'
  | 'mutability'
  | 'invalidSyntax'
  | 'invalidPath'
  | 'noTarget'
  | 'invalidValue'

const CODES: { readonly [type in ScimType]: RequestProblemCode } = {
  invalidFilter: 'request_invalid',
  tooMany: 'request_invalid',
  uniqueness: 'conflict',
  mutability: 'request_invalid',
  invalidSyntax: 'request_invalid',
  invalidPath: 'request_invalid',
  noTarget: 'request_invalid',
  invalidValue: 'request_invalid',
}

/** SCIM's types for our own errors: a body that cannot be read, a name that is taken. */
const TYPES: { readonly [code in RequestProblemCode]?: ScimType } = {
  request_invalid: 'invalidSyntax',
  conflict: 'uniqueness',
}

/** A request's error with its SCIM type. */
export class ScimError extends Error {
  override readonly name = 'ScimError'
  readonly scimType: ScimType
  constructor(scimType: ScimType, message: string) {
    super(message)
    this.scimType = scimType
  }
}

export const isScimPath = (url: string): boolean => /^\/scim(?:\/|\?|$)/.test(url)

/** The problem that decides the status and the line of the log. */
export const problemOfScim = (err: unknown): RequestProblem =>
  err instanceof ScimError ? new RequestProblem(CODES[err.scimType], err.message) : asHttpProblem(err)

export function sendScimError(request: FastifyRequest, reply: FastifyReply, err: unknown): FastifyReply {
  const found = problemOfScim(err)
  const scimType = err instanceof ScimError ? err.scimType : TYPES[found.code]
  return sendError(asError(request, reply, found), {
    ...(scimType !== undefined && { scimType }),
    detail: found.message,
  })
}

export function sendNotSupported(request: FastifyRequest, reply: FastifyReply, path: string): FastifyReply {
  const detail = `this service does not support ${path}; /ServiceProviderConfig says what it supports`
  return sendError(reply.code(501).header('x-request-id', request.id).header('cache-control', 'no-store'), { detail })
}

function sendError(
  reply: FastifyReply,
  error: { readonly scimType?: ScimType; readonly detail: string },
): FastifyReply {
  const body = { schemas: [ERROR_SCHEMA], status: String(reply.statusCode), ...error }
  return reply.type(SCIM_TYPE).send(JSON.stringify(body))
}
