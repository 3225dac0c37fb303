/** Verifies access tokens (RFC 9068 section 4), and caches verified tokens by digest. */
import { hash } from 'node:crypto'
import type { JsonMembers } from '../base/json-text.ts'
import type { AlgorithmName } from './algorithms.ts'
import { type AccessClaims, optionalInstant, parseClaims } from './claims.ts'
import { TokenError } from './errors.ts'
import { EXTERNAL_MARK, type IssuerTerms, readIssuerClaims, requireAccessToken } from './issuer-claims.ts'
import { type Jws, parseJws, TOKEN_CHARS_MAX } from './jws.ts'
import type { KeySource } from './keys.ts'
import { INTROSPECTED_MS, type Introspect, requireIntrospected } from './opaque-tokens.ts'
import { describeSlash } from './remote-keys.ts'
import { findSigner } from './signature.ts'

/** Keys belong to one issuer: a key never verifies tokens of another issuer. */
export type TrustedIssuer = {
  /** Compared byte for byte with `iss`. */
  readonly issuer: string
  readonly keys: KeySource
  readonly algorithms: readonly AlgorithmName[]
  /** The terms for an external issuer; null or absent: the issuer is the PDP itself. */
  readonly external?: IssuerTerms | null
  /** Asks an external issuer about each access token, instead of verifying tokens with its keys. */
  readonly introspect?: Introspect
}
export type TokenVerifierOptions = {
  readonly issuers: readonly TrustedIssuer[]
  /**
   * One of `aud` must equal it, or one of these, byte for byte, unless the issuer is external and has its own; null accepts any audience, for
   * callers that check it themselves.
   */
  readonly audience: string | readonly string[] | null
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
   * TokenError `token_invalid`, `token_expired`, `keys_unavailable` or `issuer_unavailable`.
   */
  verify(token: string): AccessClaims | Promise<AccessClaims>
}

/** `isGood`: whether the key or the answer that verified the claims is still valid. */
type Verified = { readonly claims: AccessClaims; readonly isGood: () => boolean }

export function createTokenVerifier(options: TokenVerifierOptions): TokenVerifier {
  const { audience, clock, expiryLeewayMs = 5_000, futureLeewayMs = 60_000, tokenCharsMax = TOKEN_CHARS_MAX } = options
  const issuers = new Map(options.issuers.map((issuer) => [issuer.issuer, issuer]))
  // An opaque token does not name its issuer, so it is shown to nobody when several could have issued it.
  const [opaque, ...others] = options.issuers.filter(({ introspect }) => introspect !== undefined)
  if (others.length > 0) throw new TypeError('two issuers have introspection')
  const cache = createCache(options.cacheEntriesMax ?? 5_000)

  function verify(token: string): AccessClaims | Promise<AccessClaims> {
    const digest = hash('sha256', token, 'base64url')
    const entry = cache.get(digest)
    if (entry === undefined) return verifyNew(token, digest)
    if (clock() < entry.claims.expiresAtMs + expiryLeewayMs && entry.isGood()) return entry.claims
    cache.delete(digest)
    return verifyNew(token, digest)
  }

  async function verifyNew(token: string, digest: string): Promise<AccessClaims> {
    if (token.length > tokenCharsMax) throw invalid(`the token has more than ${tokenCharsMax} characters`)
    const jws = parseJws(token, tokenCharsMax)
    const issuer = jws === null ? opaque : issuerOf(jws.payload.iss)
    if (issuer === undefined) throw invalid('the token is not a compact JWS (RFC 7515), or uses extensions')
    const external = issuer.external ?? null
    const verifying = jws === null || issuer.introspect !== undefined ? introspected : signed
    const verified = await verifying({ token, digest, jws, issuer, external, clock })
    checkAudience(verified.claims, external?.audience ?? audience)
    checkTimes(verified.claims)
    cache.set(digest, verified)
    return verified.claims
  }

  function issuerOf(iss: unknown): TrustedIssuer {
    const issuer = typeof iss === 'string' ? issuers.get(iss) : undefined
    if (issuer === undefined) throw invalid(`iss is not a trusted issuer${slashOf(iss)}`)
    return issuer
  }

  function slashOf(iss: unknown): string {
    for (const known of issuers.keys()) if (describeSlash(known, iss) !== '') return describeSlash(known, iss)
    return ''
  }

  function checkAudience({ audiences }: AccessClaims, expected: string | readonly string[] | null): void {
    const names = [expected ?? []].flat()
    if (expected !== null && !names.some((name) => audiences.includes(name)))
      throw invalid(`aud does not name ${names.join(' or ')}`)
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

type Presented = {
  readonly token: string
  readonly digest: string
  readonly jws: Jws | null
  readonly issuer: TrustedIssuer
  readonly external: IssuerTerms | null
  readonly clock: () => number
}

async function signed({ token, digest, jws, issuer, external }: Presented): Promise<Verified> {
  if (jws === null) throw invalid('the token is not a compact JWS (RFC 7515), or uses extensions')
  // RFC 9068 section 4: another kind of JWT, such as an ID token, is not an access token.
  requireAccessToken(jws, external)
  const key = await findSigner(token, jws.header, issuer)
  const claims = external === null ? ownClaims(jws.payload, digest) : readIssuerClaims(jws.payload, external, digest)
  return { claims, isGood: () => issuer.keys.holds(key) }
}

async function introspected({ token, digest, issuer, external, clock }: Presented): Promise<Verified> {
  if (issuer.introspect === undefined || external === null) throw invalid('the token is opaque')
  const untilMs = clock() + INTROSPECTED_MS
  const answer = await issuer.introspect(token, digest)
  requireIntrospected(answer, issuer.issuer)
  // RFC 7662 section 2.2 lets an issuer leave out `iss` and `iat`.
  const own = Object.assign(Object.create(null), { iat: clock() / 1_000 }, answer, { iss: issuer.issuer })
  return { claims: readIssuerClaims(own, external, digest), isGood: () => clock() < untilMs }
}

/** Only subjects of external issuers have such ids, so no other issuer may name one. */
function ownClaims(payload: JsonMembers, digest: string): AccessClaims {
  const claims = parseClaims(payload, digest)
  if (claims.subject.startsWith(EXTERNAL_MARK)) throw invalid(`sub begins with ${EXTERNAL_MARK}`)
  return claims
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
