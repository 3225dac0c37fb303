/** Kubernetes ServiceAccount tokens that were made for the PDP: who calls, not whom is asked about. */
import { readFile } from 'node:fs/promises'
import { isAlgorithm, verifySignature } from '../token/algorithms.ts'
import { TokenError } from '../token/errors.ts'
import { type JsonMembers, members, parseJws } from '../token/jws.ts'
import { createKeySource, type KeySource } from '../token/keys.ts'
import { type Fetch, remoteKeys } from '../token/remote-keys.ts'

/** What a projected token's `audience` must be. */
export const SERVICE_ACCOUNT_AUDIENCE = 'portcullis-pdp'
const TOKEN_CHARACTERS_MAX = 16_384
const KEYS_REFRESH_MS = 60_000
const KEYS_AGE_MAX_MS = 24 * 3_600_000
const KEYS_COOLDOWN_MS = 5_000
const SUBJECT = /^system:serviceaccount:[a-z0-9-]{1,63}:[a-z0-9.-]{1,253}$/

export type ServiceAccountSettings = {
  /** The cluster's, as tokens name it in `iss`. */
  readonly issuer: string
  /** URL or path of the cluster's key set; null: what the issuer's metadata names. */
  readonly jwks: string | null
}
/** The account as `system:serviceaccount:<namespace>:<name>`. Throws TokenError. */
export type VerifyServiceAccount = (token: string) => Promise<string>

export function createServiceAccounts(
  { issuer, jwks }: ServiceAccountSettings,
  deps: { readonly fetch: Fetch; readonly clock: () => number },
): VerifyServiceAccount {
  const keys = keysOf({ issuer, jwks }, deps)
  return async (token) => {
    const jws = parseJws(token, TOKEN_CHARACTERS_MAX)
    if (jws === null || jws.payload.iss !== issuer) throw invalid('not a token of the cluster')
    const { alg: algorithm, kid } = jws.header
    if (!isAlgorithm(algorithm) || typeof kid !== 'string') throw invalid('header alg or kid is not of its form')
    const candidates = await keys.find({ kid, algorithm })
    if (!candidates.some(({ publicKey }) => verifySignature(algorithm, publicKey, jws.signed)))
      throw invalid('the signature is not by a key of the cluster')
    return requireCurrent(jws.payload, deps.clock() / 1_000)
  }
}

function requireCurrent({ aud, exp, nbf = 0, sub }: JsonMembers, nowS: number): string {
  const audiences: readonly unknown[] = Array.isArray(aud) ? aud : [aud]
  if (!audiences.includes(SERVICE_ACCOUNT_AUDIENCE)) throw invalid(`aud is not ${SERVICE_ACCOUNT_AUDIENCE}`)
  if (typeof exp !== 'number' || typeof nbf !== 'number' || nbf > nowS) throw invalid('exp or nbf is not of its form')
  if (exp <= nowS) throw new TokenError('token_expired', 'the token has expired')
  if (typeof sub !== 'string' || !SUBJECT.test(sub)) throw invalid('sub is not a service account')
  return sub
}

function keysOf(
  { issuer, jwks }: ServiceAccountSettings,
  { fetch, clock }: { readonly fetch: Fetch; readonly clock: () => number },
): KeySource {
  const times = { refreshAfterMs: KEYS_REFRESH_MS, ageMaxMs: KEYS_AGE_MAX_MS, cooldownMs: KEYS_COOLDOWN_MS }
  if (jwks === null) return remoteKeys({ issuer, fetch, clock, ...times })
  if (/^https?:/.test(jwks)) return remoteKeys({ issuer, jwksUri: jwks, fetch, clock, ...times })
  return createKeySource({ load: () => readKeys(jwks), clock, ...times })
}

async function readKeys(path: string): Promise<readonly unknown[]> {
  const keys = members(JSON.parse(await readFile(path, 'utf8')))?.keys
  if (!Array.isArray(keys)) throw new Error(`${path} is not a JWK Set`)
  return keys
}

const invalid = (message: string): TokenError => new TokenError('token_invalid', message)
