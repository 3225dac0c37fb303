/** Errors that end the evaluation of a request. `enforce/denial-response.ts` has the answer to each; no answer permits the request. */
import type { ProblemCode } from '../../pdp/shared/base/problems.ts'

/** The request itself is refused. The client sees the message, so it never quotes the request. */
export class RequestError extends Error {
  override readonly name = 'RequestError'
  readonly code: ProblemCode
  /** A longer reason for the log and the command line. */
  readonly reason: string
  constructor(code: ProblemCode, message: string, reason = message) {
    super(message)
    this.code = code
    this.reason = reason
  }
}

/** A value of a check that cannot be used. */
export class ValueError extends RequestError {
  /** True: the request lacks the value. False: the value is no text, number or id. */
  readonly isMissing: boolean
  constructor(message: string, { isMissing }: { readonly isMissing: boolean }) {
    super('request_invalid', message)
    this.isMissing = isMissing
  }
}

export const missing = (message: string): ValueError => new ValueError(message, { isMissing: true })
export const unusable = (message: string): ValueError => new ValueError(message, { isMissing: false })
export const malformed = (message: string): RequestError => new RequestError('request_invalid', message)

/**
 * Codes for a request that could not be decided. `overloaded`: the sidecar or the PDP has too much to do, and a retry at once would make it
 * worse. The other codes name the part behind the PDP that fails.
 */
export const UNDECIDED_CODES = [
  'pdp_unavailable',
  'overloaded',
  'keys_unavailable',
  'issuer_unavailable',
  'issuer_mismatch',
] as const

/** The PDP made no decision: none of its addresses answered in time, or its answer was not valid. */
export class PdpUnavailable extends Error {
  override readonly name = 'PdpUnavailable'
  readonly code: (typeof UNDECIDED_CODES)[number]
  constructor(message: string, code: PdpUnavailable['code'] = 'pdp_unavailable') {
    super(message)
    this.code = code
  }
}
