/** Shares entitlement values through Redis. Each value is authenticated, so Redis can lose values but not forge them. */
import { createCircuit } from '../../../shared/base/circuit-breaker.ts'
import { deriveKey } from '../../../shared/base/encryption.ts'
import { openRedis, valuesOf, withoutCommand } from '../../../shared/token/redis.ts'
import { openValue, type SharedCache, type StatedValue, sealValue, slotName } from './shared-cache.ts'

/** The longest wait of a question for Redis. */
export const REDIS_DEADLINE_MS = 50
/** How long Redis is not asked after a failure, so that few questions wait in vain. */
const REST_MS = 1_000
const SEALED_CHARACTERS_MAX = 65_536
const PREFIX = 'portcullis:entitlement:'

/**
 * A cache of entitlement values that replicas share; needs the package `ioredis`. `url`: as in REDIS_URL. Connects in the
 * background, and again whenever the connection ends.
 *
 * @example
 * ```ts
 * const sharedCache = await redisSharedCache({ url: 'redis://localhost', masterKey: Buffer.alloc(32, 1), onError: console.error })
 * const cached = createPdp({ store: memoryStore(), sharedCache })
 * ```
 */
export async function redisSharedCache(options: {
  readonly url: string
  /** The master key, the same for all replicas. */
  readonly masterKey: Buffer
  /** Gets errors for the log; decisions go on without Redis. */
  readonly onError: (error: Error) => void
  /** Monotonic milliseconds. */
  readonly clock?: () => number
  readonly deadlineMs?: number
}): Promise<SharedCache> {
  const { clock = () => performance.now(), deadlineMs = REDIS_DEADLINE_MS } = options
  const secret = deriveKey(options.masterKey, 'shared entitlements')
  const redis = await openRedis(options, { enableOfflineQueue: false, keyPrefix: PREFIX })
  const circuit = createCircuit({ failuresMax: 1, restMs: REST_MS, restMsMax: REST_MS, clock })

  /** The result of `work`; undefined: Redis gave no answer in time. */
  async function attempt<T>(work: () => Promise<T>): Promise<T | undefined> {
    const settle = redis.status === 'ready' ? circuit.begin() : null
    if (settle === null) return undefined
    let timer: NodeJS.Timeout | undefined
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(() => {
        // A new connection, because commands would else queue up while Redis is silent.
        redis.disconnect(true)
        reject(new Error('Redis did not answer in time'))
      }, deadlineMs)
    })
    try {
      const answer = await Promise.race([work(), late])
      settle(true)
      return answer
    } catch (err) {
      settle(false)
      options.onError(withoutCommand(err))
      return undefined
    } finally {
      clearTimeout(timer)
    }
  }

  return {
    async read(slot, keys) {
      const values = new Map<string, StatedValue>()
      if (keys.length === 0) return values
      const names = keys.map((key) => slotName(slot, key))
      const found = await attempt(() => valuesOf(redis, names))
      for (const [i, key] of keys.entries()) {
        const sealed = found?.[i]
        if (typeof sealed !== 'string' || sealed.length > SEALED_CHARACTERS_MAX) continue
        const value = openValue(secret, names[i] ?? '', sealed)
        if (value !== null) values.set(key, value)
      }
      return values
    },
    async write(slot, values, keptMs) {
      const set = ([key, value]: readonly [string, StatedValue]): Promise<unknown> => {
        const name = slotName(slot, key)
        const sealed = sealValue(secret, name, value)
        return sealed.length > SEALED_CHARACTERS_MAX
          ? Promise.resolve()
          : redis.set(name, sealed, 'PX', Math.ceil(keptMs))
      }
      if (values.size > 0) await attempt(() => Promise.all([...values].map(set)))
    },
    close: () => redis.disconnect(),
  }
}
