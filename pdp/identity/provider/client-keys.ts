/** Keys of clients that are named by `jwks_uri`: fetched with the guards of all outgoing calls, and kept for a while. */
import { errors, type JWK, type JWKS } from 'oidc-provider'
import { BoundedMap } from '../../shared/base/bounded-map.ts'
import { messageOf } from '../../shared/base/error-message.ts'
import type { GuardedPost } from '../../shared/base/guarded-post.ts'
import type { Log } from '../../shared/process/log.ts'
import { type AlgorithmName, isAlgorithm } from '../../shared/token/algorithms.ts'
import { parseJws } from '../../shared/token/jws.ts'
import type { KeySource, VerifyKey } from '../../shared/token/keys.ts'
import { remoteKeys } from '../../shared/token/remote-keys.ts'
import { guardedFetch } from '../../signals/receiver/guarded-fetch.ts'

const SOURCES_MAX = 1_000
/** The shortest time between two fetches of a set because of an unknown `kid`. */
const COOLDOWN_MS = 30_000
const ASSERTION_CHARS_MAX = 16_384

export type ClientKeys = {
  /**
   * The keys that may have signed the assertion, as a JWK Set; empty for a text that is no assertion of this client. Throws InvalidClient
   * if the set cannot be fetched.
   */
  of(client: { readonly id: string; readonly uri: string }, assertion: unknown): Promise<JWKS>
}

export function createClientKeys(deps: {
  readonly guard: Pick<GuardedPost, 'send'>
  readonly clock: () => number
  readonly log: Log
}): ClientKeys {
  const { clock, log } = deps
  const fetch = guardedFetch(deps.guard)
  const sources = new BoundedMap<string, KeySource>(SOURCES_MAX)

  return {
    async of({ id, uri }, assertion) {
      const jws = typeof assertion === 'string' ? parseJws(assertion, ASSERTION_CHARS_MAX) : null
      const { alg, kid = null } = jws?.header ?? {}
      // An assertion of another client must not cause a fetch.
      if (jws?.payload.iss !== id || typeof alg !== 'string' || !isAlgorithm(alg)) return { keys: [] }
      if (kid !== null && typeof kid !== 'string') return { keys: [] }
      const onError = (err: unknown): void =>
        log.warn({ event: 'client_keys_failed', client_id: id, reason: messageOf(err) })
      const source = sources.getOrMake(JSON.stringify([id, uri]), () =>
        remoteKeys({ issuer: id, jwksUri: uri, fetch, clock, cooldownMs: COOLDOWN_MS, onError }),
      )
      const found = await source.find({ kid, algorithm: alg }).catch(() => {
        throw new errors.InvalidClient('the keys of the client cannot be read from its jwks_uri')
      })
      return { keys: found.map((key) => jwkOf(key, alg)) }
    },
  }
}

const jwkOf = ({ kid, publicKey }: VerifyKey, alg: AlgorithmName): JWK => ({
  ...JSON.parse(JSON.stringify(publicKey.export({ format: 'jwk' }))),
  alg,
  use: 'sig',
  ...(kid !== null && { kid }),
})
