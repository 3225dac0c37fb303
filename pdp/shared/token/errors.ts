/** Errors of tokens and proofs. The code is the interface; the message is for the log. */
import type { ProblemCode } from '../base/problems.ts'

export const TOKEN_ERROR_CODES = [
  'token_missing', // no credentials, or an unknown scheme
  'authorization_invalid', // ambiguous or malformed credentials, such as two fields
  'token_invalid',
  'token_expired',
  'proof_missing',
  'proof_invalid',
  'proof_replayed',
  'proof_nonce_required', // the proof has no current nonce from this server
  'proof_unverifiable', // the replay memory did not answer; not an error of the client
  'issuer_unavailable', // the issuer did not introspect the token; not an error of the client
  'keys_unavailable', // the issuer's keys are not available; not an error of the client
] as const
export type TokenErrorCode = (typeof TOKEN_ERROR_CODES)[number]

/** The problem in the answer of a resource server. */
export const TOKEN_PROBLEMS: { readonly [code in TokenErrorCode]: ProblemCode } = {
  token_missing: 'token_missing',
  authorization_invalid: 'request_invalid',
  token_invalid: 'token_invalid',
  token_expired: 'token_expired',
  proof_missing: 'proof_missing',
  proof_invalid: 'proof_invalid',
  proof_replayed: 'proof_replayed',
  proof_nonce_required: 'proof_nonce_required',
  proof_unverifiable: 'replay_memory_unavailable',
  issuer_unavailable: 'issuer_unavailable',
  keys_unavailable: 'keys_unavailable',
}

/** An error about a token. `cause` stays in the process, and messages contain no part of a token. */
export class TokenError extends Error {
  override readonly name = 'TokenError'
  readonly code: TokenErrorCode
  constructor(code: TokenErrorCode, message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause })
    this.code = code
  }
}
