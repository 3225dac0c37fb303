/** What can keep the sidecar from deciding; each is answered by enforce/denial-response.ts and never by an allow. */
import type { ProblemCode } from '../../pdp/process/problems.ts'

/** The request itself is refused. The message is told to the caller, so it is never made of the request's own text. */
export class RequestError extends Error {
  override readonly name = 'RequestError'
  readonly code: ProblemCode
  /** For the log and whoever has the route file. */
  readonly reason: string
  constructor(code: ProblemCode, message: string, reason = message) {
    super(message)
    this.code = code
    this.reason = reason
  }
}

export const malformed = (message: string): RequestError => new RequestError('request_invalid', message)

/** No decision could be had: no address answered in time, or what was answered is not an answer. */
export class PdpUnavailable extends Error {
  override readonly name = 'PdpUnavailable'
  /** `overloaded`: there is too much to do, here or there, and asking again at once would make it worse. */
  readonly code: 'pdp_unavailable' | 'overloaded'
  constructor(message: string, code: PdpUnavailable['code'] = 'pdp_unavailable') {
    super(message)
    this.code = code
  }
}
