/** The keys that verify a transmitter's SETs: those of its metadata, or else those of the issuer's tokens. */

import { BoundedMap } from '../../shared/base/bounded-map.ts'
import type { Log } from '../../shared/process/log.ts'
import { createKeySource, type KeySource } from '../../shared/token/keys.ts'
import { type Fetch, remoteKeys } from '../../shared/token/remote-keys.ts'
import type { ReceivedStream } from './streams.ts'

const LOCAL_KEYS_AGE_MS = 3_600_000
const SOURCES_MAX = 200

/** Keeps one source for each key set, so that keys are not fetched for each SET. */
export function createSetKeys(deps: {
  readonly fetch: Fetch
  readonly clock: () => number
  readonly log: Log
}): (stream: ReceivedStream) => KeySource {
  const { fetch, clock } = deps
  const sources = new BoundedMap<string, KeySource>(SOURCES_MAX)

  function make({ issuer, stream, keys }: ReceivedStream): KeySource {
    const onError = (err: unknown): void => deps.log.warn({ event: 'transmitter_keys_failed', issuer, err })
    const jwksUri = stream?.jwks_uri ?? keys.jwks_uri
    if (jwksUri !== null) return remoteKeys({ issuer, jwksUri, fetch, clock, onError })
    const [refreshAfterMs, ageMaxMs, cooldownMs] = [LOCAL_KEYS_AGE_MS, LOCAL_KEYS_AGE_MS, LOCAL_KEYS_AGE_MS]
    const load = (): readonly object[] => keys.jwks?.keys ?? []
    return createKeySource({ load, clock, refreshAfterMs, ageMaxMs, cooldownMs, onError })
  }

  return (stream) => {
    const name = JSON.stringify([stream.issuer, stream.stream?.jwks_uri ?? stream.keys])
    return sources.getOrMake(name, () => make(stream))
  }
}
