/** Verifies access tokens (RFC 9068 section 4), and caches verified tokens by digest. */
import { hash } from 'node:crypto'
import type { AlgorithmName } from './algorithms.ts'
import { type AccessClaims, optionalInstant, parseClaims } from './claims.ts'
import { TokenError } from './errors.ts'
import { hasType, parseJws } from './jws.ts'
import type { KeySource, VerifyKey } from './keys.ts'
import { describeSlash } from './remote-keys.ts'
import { findSigner } from './signature.ts'

/** Keys belong to one issuer: a key never verifies tokens of another issuer. */
export type TrustedIssuer = {
  /** Compared byte for byte with `iss`. */
  readonly issuer: string
  readonly keys: KeySource
  readonly algorithms: readonly AlgorithmName[]
}
export type TokenVerifierOptions = {
  readonly issuers: readonly TrustedIssuer[]
  /** One of `aud` must equal it byte for byte; null accepts any audience, for callers that check it themselves. */
  readonly audience: string | null
  /** Milliseconds since the epoch. */
  readonly clock: () => number
  /** How long a token is accepted after `exp`, to tolerate clock skew. */
  readonly expiryLeewayMs?: number
  /** How far `nbf` and `iat` may be in the future, to tolerate clock skew. */
  readonly futureLeewayMs?: number
  readonly tokenCharsMax?: number
  readonly cacheEntriesMax?: number
}
export type TokenVerifier = {
  /**
   * The frozen claims: at once for a token that was verified before and is still good, else a promise, which rejects with
   * TokenError `token_invalid`, `token_expired` or `keys_unavailable`.
   */
  verify(token: string): AccessClaims | Promise<AccessClaims>
}

type Verified = { readonly claims: AccessClaims; readonly key: VerifyKey; readonly source: KeySource }

export function createTokenVerifier(options: TokenVerifierOptions): TokenVerifier {
  const { audience, clock, expiryLeewayMs = 5_000, futureLeewayMs = 60_000, tokenCharsMax = 16_384 } = options
  const issuers = new Map(options.issuers.map((issuer) => [issuer.issuer, issuer]))
  const cache = createCache(options.cacheEntriesMax ?? 5_000)

  function verify(token: string): AccessClaims | Promise<AccessClaims> {
    const digest = hash('sha256', token, 'base64url')
    const entry = cache.get(digest)
    if (entry === undefined) return verifyNew(token, digest)
    if (clock() < entry.claims.expiresAtMs + expiryLeewayMs && entry.source.holds(entry.key)) return entry.claims
    cache.delete(digest)
    return verifyNew(token, digest)
  }

  async function verifyNew(token: string, digest: string): Promise<AccessClaims> {
    const jws = parseJws(token, tokenCharsMax)
    if (jws === null) throw invalid('the token is not a compact JWS without extensions')
    // RFC 9068 section 4: another kind of JWT, such as an ID token, is not an access token.
    if (!hasType(jws.header, 'at+jwt')) throw invalid('header typ is not at+jwt')
    const issuer = typeof jws.payload.iss === 'string' ? issuers.get(jws.payload.iss) : undefined
    if (issuer === undefined) throw invalid(`iss is not a trusted issuer${slashOf(jws.payload.iss)}`)
    const key = await findSigner(token, jws.header, issuer)
    const claims = parseClaims(jws.payload, digest)
    checkAudience(claims)
    checkTimes(claims)
    cache.set(digest, { claims, key, source: issuer.keys })
    return claims
  }

  function slashOf(iss: unknown): string {
    for (const known of issuers.keys()) if (describeSlash(known, iss) !== '') return describeSlash(known, iss)
    return ''
  }

  function checkAudience(claims: AccessClaims): void {
    if (audience !== null && !claims.audiences.includes(audience)) throw invalid('aud does not name this resource')
  }

  function checkTimes(claims: AccessClaims): void {
    const now = clock()
    if (now >= claims.expiresAtMs + expiryLeewayMs) throw new TokenError('token_expired', 'the token has expired')
    const notBeforeMs = Math.max(claims.issuedAtMs, optionalInstant(claims.all, 'nbf') ?? 0)
    if (notBeforeMs > now + futureLeewayMs)
      throw invalid(
        `nbf or iat is ${Math.round((notBeforeMs - now) / 1_000)} s in the future by the clock of this server`,
      )
  }

  return { verify }
}

/** A cache with two generations: entries used in the young generation survive, and most hits move nothing. */
function createCache(entriesMax: number) {
  const generationMax = Math.max(1, Math.floor(entriesMax / 2))
  let young = new Map<string, Verified>()
  let old = new Map<string, Verified>()

  function set(digest: string, entry: Verified): void {
    if (young.size >= generationMax) {
      old = young
      young = new Map()
    }
    young.set(digest, entry)
  }

  return {
    set,
    get(digest: string): Verified | undefined {
      const entry = young.get(digest)
      if (entry !== undefined) return entry
      const survivor = old.get(digest)
      if (survivor !== undefined) set(digest, survivor)
      return survivor
    },
    delete(digest: string): void {
      young.delete(digest)
      old.delete(digest)
    },
  }
}

const invalid = (message: string): TokenError => new TokenError('token_invalid', message)
