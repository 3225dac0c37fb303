/**
 * Finds the key that signed a token among its issuer's current keys. `jose` verifies the signature. The sidecar loads two
 * modules of it, because the whole package takes 10 MB more in each Pod.
 */
import { JOSEError } from 'jose/errors'
import { compactVerify } from 'jose/jws/compact/verify'
import type { JsonMembers } from '../base/json-text.ts'
import { type AlgorithmName, isAlgorithm } from './algorithms.ts'
import { TokenError } from './errors.ts'
import type { KeySource, VerifyKey } from './keys.ts'

/**
 * `token`: a compact JWS with this header. Throws TokenError `token_invalid` when none of the keys signed it, and
 * `keys_unavailable`. For each new token only: verified tokens are remembered by their digest.
 */
export async function findSigner(
  token: string,
  { alg: algorithm, kid }: JsonMembers,
  issuer: { readonly keys: KeySource; readonly algorithms: readonly AlgorithmName[] },
): Promise<VerifyKey> {
  if (!isAlgorithm(algorithm) || !issuer.algorithms.includes(algorithm))
    throw invalid(`header alg is not accepted: the issuer uses ${issuer.algorithms.join(', ')}`)
  if (kid !== undefined && typeof kid !== 'string') throw invalid('header kid is not a string')
  // `jku`, `x5u`, `jwk` and `x5c` are never read, because the signer must not choose the key.
  const candidates = await issuer.keys.find({ kid: kid ?? null, algorithm })
  if (candidates.length === 0) throw invalid(kid === undefined ? NO_KID : UNKNOWN_KID)
  for (const key of candidates) if (await isSignedBy(token, key, algorithm)) return key
  throw invalid('the signature does not match a current key of the issuer')
}

const UNKNOWN_KID = 'no current key of the issuer has the kid and the alg of the token'
const NO_KID = 'header kid is missing, and the issuer does not have exactly one key for the alg of the token'

async function isSignedBy(token: string, { publicKey }: VerifyKey, algorithm: AlgorithmName): Promise<boolean> {
  try {
    await compactVerify(token, publicKey, { algorithms: [algorithm] })
    return true
  } catch (err) {
    if (err instanceof JOSEError) return false
    throw err
  }
}

const invalid = (message: string): TokenError => new TokenError('token_invalid', message)
