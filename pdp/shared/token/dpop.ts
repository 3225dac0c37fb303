/**
 * Verifies DPoP proofs at a resource server, with every check of RFC 9449 section 4.3. Cheap checks come first, so that a
 * client without the token's key cannot make us verify signatures.
 */

import { hash, type JsonWebKey, type KeyObject } from 'node:crypto'
import { lowerAscii } from '../base/blanks.ts'
import { BoundedMap } from '../base/bounded-map.ts'
import { type AlgorithmName, isAlgorithm, jwkSuits, keySuits, verifySignature } from './algorithms.ts'
import type { AccessClaims } from './claims.ts'
import { TokenError } from './errors.ts'
import { hasType, type Jws, members, parseJws } from './jws.ts'
import { importPublic, isForVerifying, publicMembers } from './keys.ts'
import type { Nonces } from './nonces.ts'
import type { ReplayMemory, UsedProof } from './replay.ts'

export type ProofRequest = {
  /** Every DPoP field of the request. */
  readonly proofs: readonly string[]
  readonly method: string
  /** The requested URL by our public origin, with the path as sent and without a query. */
  readonly url: string
}
/**
 * Throws TokenError `proof_missing`, `proof_invalid`, `proof_nonce_required`, `proof_replayed`, `proof_unverifiable`, or
 * `token_invalid` for another key.
 */
export type ProofVerifier = (
  request: ProofRequest,
  claims: Pick<AccessClaims, 'digest'> & { readonly jkt: string },
) => Promise<void>

export const PROOF_ALGORITHMS: readonly AlgorithmName[] = ['ES256', 'ES384', 'EdDSA', 'Ed25519', 'RS256', 'PS256']

const PROOF_CHARS_MAX = 8_192
const JTI_CHARS_MAX = 1_024
const PRIVATE_MEMBERS = ['d', 'p', 'q', 'dp', 'dq', 'qi', 'oth', 'k']

export function createProofVerifier(options: {
  readonly clock: () => number
  readonly replay: ReplayMemory
  /** Proofs must contain one of these nonces; null: proofs need no nonce. */
  readonly nonces?: Nonces | null
  /** A proof is valid for this long after its `iat`. */
  readonly ageMaxMs?: number
  /** How far `iat` may be in the future, to tolerate clock skew. */
  readonly futureLeewayMs?: number
}): ProofVerifier {
  const { clock, replay, nonces = null, ageMaxMs = 60_000, futureLeewayMs = 10_000 } = options
  const keys = createKeyCache()

  return async function verifyProof(request, claims): Promise<void> {
    const proof = readProof(request.proofs)
    checkBinding(proof, request, claims)
    const untilMs = checkTime(proof)
    const jti = jtiOf(proof)
    // The proof must have a nonce of ours (section 4.3, step 10).
    if (nonces !== null && nonces.classify(proof.payload.nonce) === 'bad')
      throw new TokenError('proof_nonce_required', 'the proof has no current nonce from this server')
    // Section 4.3 (12): the token must be bound to the key of the proof.
    if (proof.thumbprint !== claims.jkt)
      throw new TokenError('token_invalid', 'the proof was signed with a different key than the token is bound to')
    const used = { jkt: proof.thumbprint, jti }
    if (replay.seen(used)) throw replayed()
    const key = keys.known(proof) ?? usableKey(proof)
    if (!(await verifySignature(proof.algorithm, key, proof.signed)))
      throw invalid('the signature does not match header jwk')
    keys.remember(proof, key)
    // The proof is marked as used only after its verification, so that clients without the key cannot use up proofs of others.
    await useOnce(used, untilMs)
  }

  function checkTime({ payload }: Jws): number {
    const { iat } = payload
    if (typeof iat !== 'number' || !Number.isFinite(iat)) throw invalid('iat is not a number')
    const issuedAtMs = iat * 1_000
    const now = clock()
    if (issuedAtMs > now + futureLeewayMs) throw invalid('iat is in the future')
    if (issuedAtMs + ageMaxMs <= now) throw invalid('the proof is too old')
    // Counted from `iat`, not from now: a proof dated in the future stays valid longer, and must be remembered as long.
    return issuedAtMs + ageMaxMs
  }

  async function useOnce(used: UsedProof, untilMs: number): Promise<void> {
    let first: boolean
    try {
      first = await replay.remember(used, untilMs)
    } catch (err) {
      throw new TokenError('proof_unverifiable', 'the replay memory did not answer', err)
    }
    if (!first) throw replayed()
  }
}

/** A parsed proof. Its signature, time and binding are not verified yet. */
export type Proof = Jws & {
  readonly algorithm: AlgorithmName
  /** The public key, and its thumbprint (RFC 7638). */
  readonly jwk: JsonWebKey
  readonly thumbprint: string
}

/**
 * Reads the single proof of a request, and limits the size of its key. `proofs`: every DPoP field.
 * Throws TokenError `proof_missing` or `proof_invalid`.
 */
export function readProof(proofs: readonly string[]): Proof {
  const [text] = proofs
  if (text === undefined) throw new TokenError('proof_missing', 'no DPoP field')
  if (proofs.length > 1) throw invalid('more than one DPoP field')
  if (text.length > PROOF_CHARS_MAX) throw invalid(`the proof has more than ${PROOF_CHARS_MAX} characters`)
  const proof = parseJws(text, PROOF_CHARS_MAX)
  if (proof === null) throw invalid('the proof is not a compact JWS (RFC 7515), or uses extensions')
  if (!hasType(proof.header, 'dpop+jwt')) throw invalid('header typ is not dpop+jwt')
  const { alg: algorithm } = proof.header
  if (!isAlgorithm(algorithm) || !PROOF_ALGORITHMS.includes(algorithm)) throw invalid('header alg is not accepted')
  const jwk = publicJwk(proof, algorithm)
  return { ...proof, algorithm, jwk, thumbprint: hash('sha256', JSON.stringify(jwk), 'base64url') }
}

function publicJwk({ header }: Jws, algorithm: AlgorithmName): JsonWebKey {
  const parts = members(header.jwk)
  if (parts === null || PRIVATE_MEMBERS.some((name) => name in parts)) throw invalid('header jwk is not a public key')
  const jwk = publicMembers(parts)
  if (jwk === null || !isForVerifying(parts)) throw invalid('header jwk is not a signature key')
  if (parts.alg !== undefined && parts.alg !== algorithm) throw invalid('header jwk is for another alg')
  if (!jwkSuits(jwk, algorithm)) throw invalid('header jwk does not have the type and size that header alg needs')
  return jwk
}

function usableKey({ jwk, algorithm }: Proof): KeyObject {
  const key = importPublic(jwk)
  if (key === null || !keySuits(key, algorithm)) throw invalid('header jwk is not a usable key')
  return key
}

function jtiOf({ payload: { jti } }: Jws): string {
  if (typeof jti === 'string' && jti !== '' && jti.length <= JTI_CHARS_MAX) return jti
  throw invalid('jti is missing or malformed')
}

const KEYS_MAX = 1_000

/** Caches imported keys, because importing costs as much as verifying. Only keys of valid proofs are kept. */
function createKeyCache() {
  const byName = new BoundedMap<string, KeyObject>(KEYS_MAX)
  const nameOf = ({ algorithm, thumbprint }: Proof): string => `${algorithm} ${thumbprint}`
  return {
    known: (proof: Proof): KeyObject | undefined => byName.get(nameOf(proof)),
    remember: (proof: Proof, key: KeyObject): void => byName.set(nameOf(proof), key),
  }
}

function checkBinding({ payload }: Jws, request: ProofRequest, claims: Pick<AccessClaims, 'digest'>): void {
  if (payload.htm !== request.method) throw invalid('htm is not the method of the request')
  const named = typeof payload.htu === 'string' ? comparable(payload.htu) : null
  if (named === null || named !== comparable(request.url)) throw invalid('htu is not the URL of the request')
  if (payload.ath !== claims.digest) throw invalid('ath is not the digest of the access token')
}

const HTTP_URL = /^(https?):\/\/([^/?#@]+)([^?#]*)/i

/**
 * RFC 9449 section 4.3: without query and fragment, and normalised as in RFC 3986 sections 6.2.2 and 6.2.3: scheme, host,
 * port and escapes. Dot segments need no resolving, because requests with them are rejected.
 */
function comparable(url: string): string | null {
  const match = HTTP_URL.exec(url)
  if (match === null) return null
  const [, scheme = '', authority = '', path = ''] = match
  const lower = lowerAscii(scheme)
  const port = lower === 'https' ? ':443' : ':80'
  const host = lowerAscii(authority)
  return `${lower}://${host.endsWith(port) ? host.slice(0, -port.length) : host}${path === '' ? '/' : sameEscapes(path)}`
}

const UNRESERVED = /[A-Za-z0-9._~-]/
function sameEscapes(path: string): string {
  return path.replace(/%[0-9A-Fa-f]{2}/g, (triplet) => {
    const character = String.fromCharCode(Number.parseInt(triplet.slice(1), 16))
    return UNRESERVED.test(character) ? character : triplet.toUpperCase()
  })
}

const replayed = (): TokenError => new TokenError('proof_replayed', 'the proof was used before')
const invalid = (message: string): TokenError => new TokenError('proof_invalid', message)
