/** Connections to Redis: a silent one is closed and opened again. */
import type { Cluster, ClusterNode, Redis, RedisOptions } from 'ioredis'
import { messageOf } from '../base/error-message.ts'

/** A connection without a reply for this time is dead: a network that drops packets does not close connections. */
const SILENT_MS = 1_000
const RETRY_MS_MAX = 1_000

const OPTIONS = {
  connectTimeout: 2_000,
  // The only time limit for the commands that set up a connection.
  socketTimeout: SILENT_MS,
  // No command is sent again: one sent before a connection broke may have been executed.
  maxRetriesPerRequest: 0,
  autoResendUnfulfilledCommands: false,
  retryStrategy: (tries: number) => Math.min(tries * 50, RETRY_MS_MAX),
  // The connection works, but its server has become a replica or is not ready; a new connection may lead to the primary.
  reconnectOnError: isElsewhere,
} as const satisfies RedisOptions
function isElsewhere(error: Error): boolean {
  return /\b(READONLY|LOADING|MASTERDOWN)\b/.test(error.message)
}
/** Commands that succeed at a primary alone. */
const WRITES: ReadonlySet<string> = new Set(['eval', 'set', 'del'])

/** Called each time. Errors have their message alone: those of the library hold the command that failed, and so the password. */
export type RedisWatch = {
  /** Redis failed, or the server is no primary. */
  readonly onError: (error: Error) => void
  /** It took a write. */
  readonly onWritten?: () => void
}
const CLUSTER_OPTIONS = {
  clusterRetryStrategy: OPTIONS.retryStrategy,
  slotsRefreshTimeout: SILENT_MS,
  retryDelayOnFailover: 0, // that is, never again
  maxRedirections: 3,
  // Names are not resolved here: certificates are for names, and an address may change.
  dnsLookup: (name: string, done: (error: null, address: string) => void) => done(null, name),
}

/** `url` is that of REDIS_URL. Connects in the background, and again whenever the connection ends. */
export async function openRedis(
  { url, onError, onWritten }: RedisWatch & { readonly url: string },
  options: { readonly commandTimeout?: number; readonly keyPrefix?: string; readonly enableOfflineQueue?: boolean },
): Promise<Redis | Cluster> {
  // Imported only when used: it takes memory, and decisions are slower in a process that has loaded it.
  const { Cluster, Redis } = await import('ioredis')
  const place = placeOf(url)
  const { keyPrefix = '', ...others } = options
  const all = { ...OPTIONS, ...others }
  const redis =
    typeof place === 'string'
      ? new Redis(place, { ...all, keyPrefix })
      : 'nodes' in place
        ? impatient(
            new Cluster([...place.nodes], {
              ...CLUSTER_OPTIONS,
              keyPrefix,
              redisOptions: { ...all, ...place.redisOptions },
            }),
          )
        : new Redis({ ...all, ...place, keyPrefix })
  const failed = (error: unknown): void => onError(withoutCommand(error))
  for (const event of ['error', 'node error']) redis.on(event, failed)
  const send: Cluster['sendCommand'] = redis.sendCommand.bind(redis)
  const sendWatched: Cluster['sendCommand'] = (command, stream, node) => {
    command.promise.then(
      () => WRITES.has(command.name) && onWritten?.(),
      (error: Error) => isElsewhere(error) && failed(error),
    )
    return send(command, stream, node)
  }
  redis.sendCommand = sendWatched
  return redis
}

/** Refuses commands while the cluster is not ready, because they would wait without a time limit. */
function impatient(cluster: Cluster): Cluster {
  const send = cluster.sendCommand.bind(cluster)
  cluster.sendCommand = (command, stream, node) => {
    // The command `cluster` must pass: with it the library asks whether the cluster is whole.
    if (cluster.status === 'ready' || command.name === 'cluster') return send(command, stream, node)
    command.reject(new Error('the Redis Cluster cannot be reached'))
    return command.promise
  }
  return cluster
}

/** The value of each key. In a cluster each may be on a node of its own. */
export const valuesOf = (redis: Redis | Cluster, keys: readonly string[]): Promise<readonly (string | null)[]> =>
  redis.isCluster ? Promise.all(keys.map((key) => redis.get(key))) : redis.mget(...keys)

/** The error with its message alone. Servers that do not know a command repeat its arguments there. */
export function withoutCommand(error: unknown): Error {
  const message = messageOf(error)
  return new Error(message.split(', with args beginning with', 1)[0])
}

const SENTINEL_PORT = 26_379
const CLUSTER_PORT = 6_379

/** The text unchanged. Throws Error, whose message continues the setting's name and contains nothing of the text. */
export function asRedisUrl(text: string): string {
  placeOf(text)
  return text
}

type Place =
  | string
  | Omit<RedisOptions, 'replyMapping'>
  | { readonly nodes: readonly ClusterNode[]; readonly redisOptions: Omit<RedisOptions, 'replyMapping'> }

/**
 * The place of a Redis, from its URL; from `redis+sentinel://user:password@host:26379,host/name/0` (Sentinels, which know the primary of
 * this name); or from `redis+cluster://user:password@host:6379,host` (nodes, which know the others).
 */
function placeOf(text: string): Place {
  const [, scheme = '', kind, account = '', hosts = '', path = ''] =
    /^(rediss?)\+(sentinel|cluster):\/\/([^@/]*@)?([^/@?#]+)(?:\/([^?#]*))?$/.exec(text) ?? []
  if (kind === undefined) {
    const url = URL.parse(text)
    if ((url?.protocol === 'redis:' || url?.protocol === 'rediss:') && url.hostname !== '') return text
    throw new Error(
      'must be a URL such as rediss://user:password@host:6379, redis+sentinel://user:password@host:26379,host:26379/name or redis+cluster://user:password@host:6379,host:6379',
    )
  }
  const urls = hosts.split(',').map((host) => URL.parse(`redis://${account}${host}`))
  const port = kind === 'cluster' ? CLUSTER_PORT : SENTINEL_PORT
  const nodes = urls.flatMap((url) =>
    url === null || url.hostname === ''
      ? []
      : [{ host: url.hostname.replace(/^\[|\]$/g, ''), port: Number(url.port || port) }],
  )
  const { username = '', password = '' } = urls[0] ?? {}
  const redisOptions = {
    ...(username === '' ? {} : { username: decodeURIComponent(username) }),
    ...(password === '' ? {} : { password: decodeURIComponent(password) }),
    ...(scheme === 'rediss' ? { tls: {} } : {}),
  }
  if (kind === 'cluster') {
    if (nodes.length === urls.length && path === '') return { nodes, redisOptions }
    throw new Error('must name nodes of the cluster as redis+cluster://user:password@host:6379,host:6379')
  }
  const [name, db, ...more] = path.split('/')
  if (nodes.length < urls.length || !name || more.length > 0 || !/^\d{0,3}$/.test(db ?? ''))
    throw new Error('must name Sentinels and a primary as redis+sentinel://user:password@host:26379,host:26379/name')
  return {
    sentinels: nodes,
    name: decodeURIComponent(name),
    db: Number(db ?? 0),
    failoverDetector: true,
    ...redisOptions,
    ...(scheme === 'rediss' ? { enableTLSForSentinelMode: true } : {}),
  }
}
