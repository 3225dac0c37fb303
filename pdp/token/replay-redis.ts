/** Remembers used DPoP proofs in Redis, for all replicas together. */
import { REDIS_OPTIONS } from './redis-options.ts'
import type { ReplayMemory } from './replay.ts'

export type RedisReplayMemory = ReplayMemory & { close(): void }

/** A proof is never accepted on a guess: without an answer within this time, `remember` throws. */
const TIMEOUT_MS = 250
const PREFIX = 'portcullis:proof:'

/** `url` as in REDIS_URL. Connects beside its use, and again whenever the connection ends. */
export async function redisReplayMemory(options: {
  readonly url: string
  readonly clock: () => number
  readonly onError: (error: Error) => void
  readonly timeoutMs?: number
}): Promise<RedisReplayMemory> {
  // Loaded only where it is used: memory counts once per pod.
  const { Redis } = await import('ioredis')
  const redis = new Redis(options.url, {
    ...REDIS_OPTIONS,
    commandTimeout: options.timeoutMs ?? TIMEOUT_MS,
  })
  redis.on('error', options.onError)

  return {
    async remember(key, untilMs) {
      const leftMs = Math.ceil(untilMs - options.clock())
      if (leftMs <= 0) return false
      // Relative, so that the clock of Redis does not matter.
      return (await redis.set(`${PREFIX}${key}`, '1', 'PX', leftMs, 'NX')) === 'OK'
    },
    close: () => redis.disconnect(),
  }
}
