/** An issuer's public keys: loads a key set, keeps it for a limited time, and reloads it when needed. */
import { createPublicKey, type JsonWebKey, type KeyObject } from 'node:crypto'
import type { JsonMembers } from '../base/json-text.ts'
import { ALGORITHM_NAMES, type AlgorithmName, isAlgorithm, jwkSuits, keySuits } from './algorithms.ts'
import { TokenError } from './errors.ts'
import { members } from './jws.ts'

/** A public key of a set. A reload keeps the object of an unchanged key. */
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
  /** True while the key is in the set and the set is not too old. */
  holds(key: VerifyKey): boolean
  /** Loads now, unless the last attempt is within the cooldown. Never throws: the last set stays until its maximum age. */
  refresh(): Promise<void>
  /** Does what `refresh` does, but only if no set is loaded or the set is due. For frequent callers. */
  refreshIfDue(): Promise<void>
  /** True after a set was loaded. */
  loaded(): boolean
}
export type KeySourceOptions = {
  /** The `keys` array of a JWK Set (RFC 7517). Throws when it cannot be loaded. */
  readonly load: () => Promise<readonly unknown[]> | readonly unknown[]
  readonly clock: () => number
  /** The age at which a set is reloaded in the background. */
  readonly refreshAfterMs: number
  /** The age from which a set is no longer used. */
  readonly ageMaxMs: number
  /** Minimum time between reloads, so that tokens with unknown keys cannot make us overload the issuer. */
  readonly cooldownMs: number
  /** Is called for a failed load, and at most once a minute while the failure stays the same. */
  readonly onError?: (error: unknown) => void
}

const KEYS_MAX = 64
const RETRY_MS = 1_000
/** How long the same failure is not reported again: an absent issuer is asked each second, perhaps for hours. */
const SAME_FAILURE_MS = 60_000

/** Keys of this process, such as the PDP's. They are loaded again after a second, which is cheap. */
export function localKeys(load: KeySourceOptions['load'], clock: () => number = Date.now): KeySource {
  return createKeySource({ load, clock, refreshAfterMs: 1_000, ageMaxMs: 1_000, cooldownMs: 0 })
}

/** Keys for an issuer without keys, which is asked about each token. */
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
    // Without a usable set no token can be verified, so the wait is short.
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
  // Without a `kid`, only a single suitable key is tried, never several.
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

/** The key; null for one that we cannot verify with, which RFC 7517 section 5 says to ignore. */
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

/** The key; null: the members are no valid key, such as a point outside its curve. */
export function importPublic(parts: JsonWebKey): KeyObject | null {
  try {
    return createPublicKey({ key: parts, format: 'jwk' })
  } catch {
    return null
  }
}

// The members in the order of RFC 7638 section 3.2, so that a thumbprint can hash their JSON text.
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
