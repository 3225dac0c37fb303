/** The answer to a denied request: problem details (RFC 9457), with a challenge where one helps. */
import { PROBLEM_MEDIA_TYPE, type ProblemCode, problem } from '../../shared/base/problems.ts'
import { type ChallengeError, challenge } from '../../shared/token/challenge.ts'
import { PROOF_ALGORITHMS } from '../../shared/token/dpop.ts'

export type DenialAnswer = {
  readonly status: number
  readonly headers: { readonly [name: string]: string }
  readonly body: string
}
type Row = { readonly status: number; readonly error?: ChallengeError; readonly challenged?: true }

/** Status and challenge by code (RFC 6750 section 3.1, RFC 9449 section 7.1). A code that is not listed is a failure to decide. */
const ROWS: { readonly [code in ProblemCode]?: Row } = {
  request_invalid: { status: 400 },
  token_missing: { status: 401, challenged: true },
  token_invalid: { status: 401, challenged: true, error: 'invalid_token' },
  token_expired: { status: 401, challenged: true, error: 'invalid_token' },
  proof_missing: { status: 401, challenged: true, error: 'invalid_dpop_proof' },
  proof_invalid: { status: 401, challenged: true, error: 'invalid_dpop_proof' },
  proof_replayed: { status: 401, challenged: true, error: 'invalid_dpop_proof' },
  permission_denied: { status: 403 },
}
const FAILURE: Row = { status: 503 }
const RETRY_AFTER_S = '1'

/** `authorization`: the request's Authorization fields, whose scheme the challenge repeats. */
export function denial(code: ProblemCode, authorization: readonly string[]): DenialAnswer {
  const { status, error, challenged = false } = ROWS[code] ?? FAILURE
  const parameters = error === undefined ? {} : { error }
  const isBound = /^dpop\b/i.test(authorization[0] ?? '') || error === 'invalid_dpop_proof'
  const asked = isBound
    ? challenge('DPoP', { ...parameters, algs: PROOF_ALGORITHMS.join(' ') })
    : challenge('Bearer', parameters)
  return {
    status,
    headers: {
      'content-type': PROBLEM_MEDIA_TYPE,
      'cache-control': 'no-store',
      ...(challenged ? { 'www-authenticate': asked } : {}),
      ...(status === FAILURE.status ? { 'retry-after': RETRY_AFTER_S } : {}),
    },
    body: JSON.stringify({ ...problem(code), status }),
  }
}
