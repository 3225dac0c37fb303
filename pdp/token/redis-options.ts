/** Options of all Redis connections: a silent connection is closed and opened again. */
import type { RedisOptions } from 'ioredis'

/** A connection without a reply for this time is dead: a network that drops packets does not close connections. */
const SILENT_MS = 1_000
const RETRY_MS_MAX = 1_000

export const REDIS_OPTIONS = {
  connectTimeout: 2_000,
  // Also applies to the commands of the connection setup, which have no other timeout.
  socketTimeout: SILENT_MS,
  // A command sent before the connection broke may have been executed, so it is not sent again.
  maxRetriesPerRequest: 0,
  autoResendUnfulfilledCommands: false,
  retryStrategy: (tries: number) => Math.min(tries * 50, RETRY_MS_MAX),
} as const satisfies RedisOptions
