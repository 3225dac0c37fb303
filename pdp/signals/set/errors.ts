/** The codes by which a receiver refuses a SET (RFC 8935 section 2.4). */
export const SET_ERROR_CODES = [
  'invalid_request', // it is not a SET, or its claims are not of the required form
  'invalid_key', // no key of the issuer verifies it
  'invalid_issuer',
  'invalid_audience',
  'authentication_failed',
  'access_denied',
  'invalid_state', // SSF 1.0 section 8.1.4: not the state that was asked for
] as const

/** `code` and `message` may be sent to the transmitter; `cause` may not. */
export class SetError extends Error {
  override readonly name = 'SetError'
  readonly code: (typeof SET_ERROR_CODES)[number]
  constructor(code: SetError['code'], message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause })
    this.code = code
  }
}
