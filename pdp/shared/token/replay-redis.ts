/** Stores used DPoP proofs in Redis, for all replicas. */
import { openRedis, type RedisWatch } from './redis.ts'
import { digestOf, processReplayMemory, type ReplayMemory } from './replay.ts'

export type RedisReplayMemory = ReplayMemory & { close(): void }

/** The longest wait for a reply; then `remember` throws, so that the proof is denied. */
const TIMEOUT_MS = 250
const PREFIX = 'portcullis:proofs:'
/** Stored proofs per key: 1,400 uses per second by one client, and 15 MB. */
const KEY_PROOFS_MAX = 100_000
/** Proofs that this process has seen are rejected without asking Redis. */
const LOCAL_PROOFS_MAX = 50_000

/**
 * Keeps one sorted set of digests per key, ordered by expiry. Returns 1 for the first use, 0 for a repeated use, -1 when the
 * set of the key is full. Uses only the clock of Redis. Redis runs one script at a time.
 */
const REMEMBER = `
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now)
if redis.call('ZSCORE', KEYS[1], ARGV[1]) then return 0 end
if redis.call('ZCARD', KEYS[1]) >= tonumber(ARGV[3]) then return -1 end
redis.call('ZADD', KEYS[1], now + tonumber(ARGV[2]), ARGV[1])
if redis.call('PTTL', KEYS[1]) < tonumber(ARGV[2]) then redis.call('PEXPIRE', KEYS[1], ARGV[2]) end
return 1`

/** Connects in the background, and again when the connection ends. `url`: the value of REDIS_URL. */
export async function redisReplayMemory(
  options: RedisWatch & {
    readonly url: string
    readonly clock: () => number
    readonly timeoutMs?: number
    readonly keyProofsMax?: number
  },
): Promise<RedisReplayMemory> {
  const redis = await openRedis(options, { commandTimeout: options.timeoutMs ?? TIMEOUT_MS })
  const keyProofsMax = options.keyProofsMax ?? KEY_PROOFS_MAX
  const local = processReplayMemory({ clock: options.clock, entriesMax: LOCAL_PROOFS_MAX })

  return {
    seen: local.seen,
    async remember(proof, untilMs) {
      const leftMs = Math.ceil(untilMs - options.clock())
      if (leftMs <= 0) return false
      const answer = await redis.eval(REMEMBER, 1, PREFIX + proof.jkt, digestOf(proof), leftMs, keyProofsMax)
      if (answer === -1) throw new Error('the replay memory has no room for more proofs of this key')
      if (answer !== 1 && answer !== 0) throw new Error('the replay memory gave an invalid answer')
      noteLocally(local, proof, untilMs)
      return answer === 1
    },
    close: () => redis.disconnect(),
  }
}

/** Notes the proof here, too, to save requests. If the local memory is full, Redis still knows. */
function noteLocally(local: ReplayMemory, ...used: Parameters<ReplayMemory['remember']>): void {
  try {
    local.remember(...used)
  } catch {
    // The next use of this proof costs a signature check and a request to Redis.
  }
}
