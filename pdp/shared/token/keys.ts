/** An issuer's public keys: loads a key set, keeps it for a limited time, and reloads it when needed. */
import { createPublicKey, type JsonWebKey, type KeyObject } from 'node:crypto'
import type { JsonMembers } from '../base/json-text.ts'
import { ALGORITHM_NAMES, type AlgorithmName, isAlgorithm, jwkSuits, keySuits } from './algorithms.ts'
import { TokenError } from './errors.ts'
import { members } from './jws.ts'

/** One public key of a set. An unchanged key stays the same object after a reload. */
export type VerifyKey = {
  readonly kid: string | null
  readonly algorithms: ReadonlySet<AlgorithmName>
  readonly publicKey: KeyObject
  readonly fingerprint: string
}
export type KeySource = {
  /**
   * Candidate keys for a signature: those with this `kid`; without a `kid`, the only suitable key of the set.
   * An unknown `kid` causes one reload. Throws TokenError `keys_unavailable` without a current key set.
   */
  find(wanted: { readonly kid: string | null; readonly algorithm: AlgorithmName }): Promise<readonly VerifyKey[]>
  /** False when the key is no longer in the set, or the set is older than its maximum age. */
  holds(key: VerifyKey): boolean
  /** Loads now, unless the last attempt is within the cooldown. Never throws: the last set stays until its maximum age. */
  refresh(): Promise<void>
  /** As `refresh`, where there is no set yet or the set is due for a reload. For callers that ask often. */
  refreshIfDue(): Promise<void>
  /** True once a set was loaded. */
  loaded(): boolean
}
export type KeySourceOptions = {
  /** The `keys` array of a JWK Set (RFC 7517). Throws when it cannot be loaded. */
  readonly load: () => Promise<readonly unknown[]> | readonly unknown[]
  readonly clock: () => number
  /** A set older than this is reloaded in the background. */
  readonly refreshAfterMs: number
  /** A set older than this is not used. */
  readonly ageMaxMs: number
  /** Minimum time between reloads, so that tokens with unknown keys cannot make us overload the issuer. */
  readonly cooldownMs: number
  /** Called for a load that failed; for the same failure again, once a minute. */
  readonly onError?: (error: unknown) => void
}

const KEYS_MAX = 64
const RETRY_MS = 1_000
/** An issuer that stays away is asked every second, and may stay away for hours. */
const SAME_FAILURE_MS = 60_000

/** Keys of this process, such as the PDP's own. Loading is cheap, so a set is used for at most a second. */
export function localKeys(load: KeySourceOptions['load'], clock: () => number = Date.now): KeySource {
  return createKeySource({ load, clock, refreshAfterMs: 1_000, ageMaxMs: 1_000, cooldownMs: 0 })
}

/** For an issuer that is asked about each token instead. */
export const NO_KEYS: KeySource = {
  find: async () => [],
  holds: () => false,
  refresh: async () => undefined,
  refreshIfDue: async () => undefined,
  loaded: () => true,
}

export function createKeySource(options: KeySourceOptions): KeySource {
  const { clock, refreshAfterMs, ageMaxMs, cooldownMs } = options
  let keys: readonly VerifyKey[] = []
  let loadedAtMs = Number.NEGATIVE_INFINITY
  let triedAtMs = Number.NEGATIVE_INFINITY
  let loading: Promise<void> | null = null
  let told = { failure: '', atMs: Number.NEGATIVE_INFINITY }

  const fresh = (): boolean => clock() - loadedAtMs < ageMaxMs
  const due = (): boolean => clock() - loadedAtMs >= refreshAfterMs

  async function load(): Promise<void> {
    try {
      const next = await options.load()
      keys = importKeys(next, keys)
      loadedAtMs = clock()
      told = { failure: '', atMs: Number.NEGATIVE_INFINITY }
    } catch (err) {
      report(err)
    } finally {
      loading = null
    }
  }

  function report(err: unknown): void {
    const failure = String(err)
    if (failure === told.failure && clock() - told.atMs < SAME_FAILURE_MS) return
    told = { failure, atMs: clock() }
    options.onError?.(err)
  }

  function refresh(): Promise<void> {
    if (loading !== null) return loading
    // Without a usable set nothing can be verified, so retry sooner.
    const waitMs = fresh() ? cooldownMs : Math.min(cooldownMs, RETRY_MS)
    if (clock() - triedAtMs < waitMs) return Promise.resolve()
    triedAtMs = clock()
    loading = load()
    return loading
  }

  async function find({ kid, algorithm }: Parameters<KeySource['find']>[0]): Promise<readonly VerifyKey[]> {
    if (!fresh()) await refresh()
    else void refreshIfDue()
    let found = fresh() ? select(keys, kid, algorithm) : []
    if (found.length === 0 && fresh()) {
      await refresh()
      found = select(keys, kid, algorithm)
    }
    if (!fresh()) throw new TokenError('keys_unavailable', 'the key set of the issuer could not be loaded')
    return found
  }

  const refreshIfDue = (): Promise<void> => (due() ? refresh() : Promise.resolve())

  return {
    find,
    refresh,
    refreshIfDue,
    loaded: () => loadedAtMs !== Number.NEGATIVE_INFINITY,
    holds(key) {
      void refreshIfDue()
      return fresh() && keys.includes(key)
    },
  }
}

function select(keys: readonly VerifyKey[], kid: string | null, algorithm: AlgorithmName): readonly VerifyKey[] {
  const suitable = keys.filter((key) => key.algorithms.has(algorithm))
  if (kid !== null) return suitable.filter((key) => key.kid === kid)
  // Without a `kid`, only a single candidate is accepted, so that we never try many keys.
  return suitable.length === 1 ? suitable : []
}

function importKeys(jwks: readonly unknown[], known: readonly VerifyKey[]): readonly VerifyKey[] {
  if (jwks.length > KEYS_MAX) throw new Error(`the key set has ${jwks.length} keys, more than the limit of ${KEYS_MAX}`)
  const imported: VerifyKey[] = []
  for (const jwk of jwks) {
    const key = importKey(jwk)
    if (key !== null) imported.push(known.find((old) => old.fingerprint === key.fingerprint) ?? key)
  }
  return imported
}

/** Null for a key that we cannot verify signatures with; RFC 7517 section 5 says to ignore such keys. */
export function importKey(jwk: unknown): VerifyKey | null {
  const parts = members(jwk)
  if (parts === null || !isForVerifying(parts)) return null
  const { kid, alg } = parts
  const publicParts = publicMembers(parts)
  if (publicParts === null) return null
  const named = ALGORITHM_NAMES.filter((name) => (alg === undefined || alg === name) && jwkSuits(publicParts, name))
  const publicKey = named.length === 0 ? null : importPublic(publicParts)
  if (publicKey === null) return null
  const algorithms = new Set(named.filter((name) => keySuits(publicKey, name)))
  if (algorithms.size === 0) return null
  const fingerprint = JSON.stringify([kid ?? null, alg ?? null, publicParts])
  return { kid: typeof kid === 'string' ? kid : null, algorithms, publicKey, fingerprint }
}

/** True when the JWK may be used to verify signatures (RFC 7517 sections 4.2 to 4.5). */
export function isForVerifying({ kid, use, key_ops: operations, alg }: JsonMembers): boolean {
  if (use !== undefined && use !== 'sig') return false
  if (operations !== undefined && !(Array.isArray(operations) && operations.includes('verify'))) return false
  return (kid === undefined || typeof kid === 'string') && (alg === undefined || isAlgorithm(alg))
}

/** Null when the members are not a valid key, such as a point that is not on its curve. */
export function importPublic(parts: JsonWebKey): KeyObject | null {
  try {
    return createPublicKey({ key: parts, format: 'jwk' })
  } catch {
    return null
  }
}

// In the order of RFC 7638 section 3.2, so that a thumbprint can hash the JSON text of the result.
const PUBLIC_MEMBERS: { readonly [kty: string]: readonly string[] } = {
  RSA: ['e', 'kty', 'n'],
  EC: ['crv', 'kty', 'x', 'y'],
  OKP: ['crv', 'kty', 'x'],
}

/** Exactly the members of the public key, in lexicographic order (RFC 7638); null for another type or shape. */
export function publicMembers(jwk: { readonly [name: string]: unknown }): JsonWebKey | null {
  const names =
    typeof jwk.kty === 'string' && Object.hasOwn(PUBLIC_MEMBERS, jwk.kty) ? PUBLIC_MEMBERS[jwk.kty] : undefined
  if (names === undefined) return null
  const entries: [string, string][] = []
  for (const name of names) {
    const value = jwk[name]
    if (typeof value !== 'string' || value === '') return null
    entries.push([name, value])
  }
  return Object.fromEntries(entries)
}
