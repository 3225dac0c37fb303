/** Why a token or a proof was not accepted. The code is the contract, the message is for the log. */
export const TOKEN_ERROR_CODES = [
  'token_missing', // no credentials, or none of a scheme that we know
  'authorization_invalid', // credentials that cannot be told apart: two fields, a list, a broken token68
  'token_invalid',
  'token_expired',
  'proof_missing',
  'proof_invalid',
  'proof_replayed',
  'proof_nonce_required', // the proof lacks a nonce of ours that is young enough
  'proof_unverifiable', // the replay memory cannot say whether the proof was seen: not a fault of the caller
  'keys_unavailable', // the issuer's keys cannot be had: not a fault of the caller
] as const
export type TokenErrorCode = (typeof TOKEN_ERROR_CODES)[number]

/** `cause` never leaves the process, and no message holds a token or a part of one. */
export class TokenError extends Error {
  override readonly name = 'TokenError'
  readonly code: TokenErrorCode
  constructor(code: TokenErrorCode, message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause })
    this.code = code
  }
}
