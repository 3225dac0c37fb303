/** The values that replicas share about sessions, in Redis. */
import { openRedis, type RedisWatch, valuesOf } from '../../pdp/shared/token/redis.ts'
import type { SignInMemory } from './memory.ts'

/** The longest wait for a reply. After it the session counts as unreadable, and the request gets 503. */
const TIMEOUT_MS = 1_000
const PREFIX = 'portcullis:sign-in:'

/** `url` is that of REDIS_URL. Connects in the background, and reconnects when the connection ends. */
export async function redisMemory(options: RedisWatch & { readonly url: string }): Promise<SignInMemory> {
  const redis = await openRedis(options, { commandTimeout: TIMEOUT_MS, keyPrefix: PREFIX })
  const whole = (ttlMs: number): number => Math.max(1, Math.ceil(ttlMs))
  return {
    isShared: true,
    get: (keys) => valuesOf(redis, keys),
    async put(key, value, ttlMs) {
      await redis.set(key, value, 'PX', whole(ttlMs))
    },
    claim: async (key, ttlMs) => (await redis.set(key, '', 'PX', whole(ttlMs), 'NX')) === 'OK',
    async remove(key) {
      await redis.del(key)
    },
    close: () => redis.disconnect(),
  }
}
