/** How connections to Redis behave, whatever is kept there: one that falls silent is given up, and made anew. */
import type { RedisOptions } from 'ioredis'

/** A connection that owes an answer for so long is dead: a network that drops everything breaks none by itself. */
const SILENT_MS = 1_000
const RETRY_MS_MAX = 1_000

export const REDIS_OPTIONS = {
  connectTimeout: 2_000,
  // For the commands of the connection's own beginning as well, which nobody else waits for.
  socketTimeout: SILENT_MS,
  // A command that was sent before the connection broke may have been done: it is not sent again.
  maxRetriesPerRequest: 0,
  autoResendUnfulfilledCommands: false,
  retryStrategy: (tries: number) => Math.min(tries * 50, RETRY_MS_MAX),
} as const satisfies RedisOptions
