/** Verifies a received SET (RFC 8417, SSF 1.0 section 4): type, signature, issuer and audience, before its event is read. */
import type { JsonMembers } from '../../shared/base/json-text.ts'
import type { AlgorithmName } from '../../shared/token/algorithms.ts'
import { TokenError } from '../../shared/token/errors.ts'
import type { KeySource } from '../../shared/token/keys.ts'
import { findSigner } from '../../shared/token/signature.ts'
import { SetError } from '../set/errors.ts'
import { parseSet, parseSetClaims, type SetClaims } from '../set/set.ts'

/** The claims that a stream's SETs must have. */
export type Expected = {
  readonly iss: string
  /** Audiences, of which a SET must have one. */
  readonly aud: readonly string[]
  readonly keys: KeySource
  readonly algorithms: readonly AlgorithmName[]
}

const FUTURE_MS = 60_000
/** The greatest age of a SET: an older one may have been seen and forgotten. Transmitters keep undelivered SETs for days. */
const AGE_MAX_MS = 7 * 86_400_000
/** How long the id of a seen SET is kept: a day longer than it is accepted. */
export const SEEN_KEPT_MS = AGE_MAX_MS + 86_400_000

/** Throws SetError when the SET is refused; TokenError `keys_unavailable` when it could not be verified now. */
export async function verifySet(text: string, expected: Expected, nowMs: number): Promise<SetClaims> {
  const { header, payload } = parseSet(text)
  await requireSigned(text, header, expected)
  if (payload.iss !== expected.iss) throw new SetError('invalid_issuer', 'claim iss is not the issuer of the stream')
  const audiences: readonly unknown[] = [payload.aud].flat()
  if (!expected.aud.some((known) => audiences.includes(known)))
    throw new SetError('invalid_audience', 'claim aud does not name the audience of the stream')
  const claims = parseSetClaims(payload)
  const iatMs = claims.iat * 1_000
  if (iatMs > nowMs + FUTURE_MS) throw new SetError('invalid_request', 'claim iat is in the future')
  if (iatMs < nowMs - AGE_MAX_MS) throw new SetError('invalid_request', 'claim iat is more than 7 days ago')
  return claims
}

async function requireSigned(text: string, header: JsonMembers, expected: Expected): Promise<void> {
  try {
    await findSigner(text, header, expected)
  } catch (err) {
    if (err instanceof TokenError && err.code === 'token_invalid') throw new SetError('invalid_key', err.message, err)
    throw err
  }
}
