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
  // The connection is well and leads to a server that has become a replica, or is not ready: another one may lead to the primary.
  reconnectOnError: (error: Error) => /\b(READONLY|LOADING|MASTERDOWN)\b/.test(error.message),
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
  const place = placeOf(url)
  const all = { ...OPTIONS, ...options }
  const redis = typeof place === 'string' ? new Redis(place, all) : new Redis({ ...all, ...place })
  redis.on('error', (error) => onError(withoutCommand(error)))
  return redis
}

/** The error with its message alone. Servers that do not know a command repeat its arguments there. */
export function withoutCommand(error: unknown): Error {
  const message = messageOf(error)
  return new Error(message.split(', with args beginning with', 1)[0])
}

const SENTINEL_PORT = 26_379

/** The text itself. Throws Error, whose message continues the setting's name and repeats nothing of it. */
export function asRedisUrl(text: string): string {
  placeOf(text)
  return text
}

/**
 * Where a Redis is: its URL, or by `redis+sentinel://user:password@host:26379,host/name/0` what asks these Sentinels for the
 * primary of that name.
 */
function placeOf(text: string): string | Omit<RedisOptions, 'replyMapping'> {
  const [, scheme, account = '', hosts = '', path = ''] =
    /^(rediss?\+sentinel):\/\/([^@/]*@)?([^/@?#]+)\/([^?#]+)$/.exec(text) ?? []
  if (scheme === undefined) {
    const url = URL.parse(text)
    if ((url?.protocol === 'redis:' || url?.protocol === 'rediss:') && url.hostname !== '') return text
    throw new Error(
      'must be a URL such as rediss://user:password@host:6379 or redis+sentinel://user:password@host:26379,host:26379/name',
    )
  }
  const urls = hosts.split(',').map((host) => URL.parse(`redis://${account}${host}`))
  const [name, db, ...more] = path.split('/')
  const sentinels = urls.flatMap((url) =>
    url === null || url.hostname === ''
      ? []
      : [{ host: url.hostname.replace(/^\[|\]$/g, ''), port: Number(url.port || SENTINEL_PORT) }],
  )
  if (sentinels.length < urls.length || !name || more.length > 0 || !/^\d{0,3}$/.test(db ?? ''))
    throw new Error('must name Sentinels and a primary as redis+sentinel://user:password@host:26379,host:26379/name')
  const { username = '', password = '' } = urls[0] ?? {}
  return {
    ...{ sentinels, name: decodeURIComponent(name), db: Number(db ?? 0), failoverDetector: true },
    ...(username === '' ? {} : { username: decodeURIComponent(username) }),
    ...(password === '' ? {} : { password: decodeURIComponent(password) }),
    ...(scheme.startsWith('rediss') ? { tls: {}, enableTLSForSentinelMode: true } : {}),
  }
}
