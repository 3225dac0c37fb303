/** Connections to Redis: a silent one is closed and opened again. */
import type { Redis, RedisOptions } from 'ioredis'
import { messageOf } from '../base/error-message.ts'

/** A connection without a reply for this time is dead: a network that drops packets does not close connections. */
const SILENT_MS = 1_000
const RETRY_MS_MAX = 1_000

const OPTIONS = {
  connectTimeout: 2_000,
  // Also applies to the commands of the connection setup, which have no other timeout.
  socketTimeout: SILENT_MS,
  // A command sent before the connection broke may have been executed, so it is not sent again.
  maxRetriesPerRequest: 0,
  autoResendUnfulfilledCommands: false,
  retryStrategy: (tries: number) => Math.min(tries * 50, RETRY_MS_MAX),
} as const satisfies RedisOptions

/**
 * `url` is that of REDIS_URL. Connects in the background, and again whenever the connection ends. `onError` gets the message of
 * each failure alone, because the errors of the library hold the command that failed, and so the password.
 */
export async function openRedis(
  { url, onError }: { readonly url: string; readonly onError: (error: Error) => void },
  options: { readonly commandTimeout?: number; readonly keyPrefix?: string; readonly enableOfflineQueue?: boolean },
): Promise<Redis> {
  // Imported only when used: it takes memory, and decisions are slower in a process that has loaded it.
  const { Redis } = await import('ioredis')
  const redis = new Redis(url, { ...OPTIONS, ...options })
  redis.on('error', (error) => onError(withoutCommand(error)))
  return redis
}

/** The error with its message alone. Servers that do not know a command repeat its arguments there. */
export function withoutCommand(error: unknown): Error {
  const message = messageOf(error)
  return new Error(message.split(', with args beginning with', 1)[0])
}
