/** Takes connections to the primary from a pool, and ends those to any other server. */
import pg from 'pg'
import { withTimeout } from '../../../../shared/base/with-timeout.ts'
import { PdpError } from '../../../../shared/domain/errors.ts'
import { asPdpError, isWorthless } from './errors.ts'
import type { Fence, Server, ServerEvent } from './fence.ts'
import type { Hosts } from './hosts.ts'
import type { Lease, Opened } from './lease.ts'

/** The timeline: the first eight digits of the name of the current WAL file. Null on a standby, which writes none. */
export const TIMELINE = `case when current_setting('in_hot_standby') = 'off' then left(pg_walfile_name(pg_current_wal_lsn()), 8) end`
/** A mark among the settings of our sessions: if a pooler gave us another session, it is absent, as are the settings. */
export const SESSION_MARK = 'portcullis.session=kept'
const GREETING = `
  select concat_ws(':', coalesce(host(inet_server_addr()), 'socket'), coalesce(inet_server_port()::text, current_setting('port'))) as address,
    ${TIMELINE} as timeline, current_setting('portcullis.session', true) is not null as kept`

/** Throws TypeError when the text is not a timeline. */
export function readTimeline(digits: string | undefined): number {
  if (digits === undefined || !/^[0-9A-F]{8}$/.test(digits))
    throw new TypeError('the statement did not tell the timeline')
  return Number.parseInt(digits, 16)
}

export type Use<T> = (client: pg.PoolClient, server: Opened, drop: (reason: unknown) => void) => Promise<T>
/** Runs `use` on a connection, and closes one that fails or leads elsewhere. Throws PdpError `store_unavailable`, and what `use` throws. */
export type Checkout = <T>(pool: pg.Pool, use: Use<T>) => Promise<T>

/** `answerMs`: how long to wait for the first answer of a new connection, and for the next heartbeat. */
export function createCheckout(of: {
  readonly fence: Fence
  readonly lease: Lease | null
  readonly hosts: Hosts
  readonly answerMs: number
}): Checkout {
  const { fence, lease, hosts, answerMs } = of
  // An open connection keeps leading to the same server, so each is asked once which one it is.
  const servers = new WeakMap<pg.PoolClient, Opened>()

  async function connected(pool: pg.Pool, refused: Refused): Promise<pg.PoolClient> {
    for (;;) {
      const client = await pool.connect().catch((error: unknown) => {
        // A process that ends has closed its pools; this failure says nothing about the server.
        if (!pool.ending) refused({ kind: 'unreachable', error })
        throw asPdpError(error)
      })
      const server = servers.get(client)
      if (server === undefined || !fence.isOvertaken(server)) return client
      fence.report({ kind: 'overtaken', ...server, latest: fence.latest, isNew: false })
      client.release(true)
    }
  }

  async function take(pool: pg.Pool, refused: Refused): Promise<{ client: pg.PoolClient; server: Opened }> {
    const client = await connected(pool, refused)
    const known = servers.get(client)
    if (known !== undefined) return { client, server: known }
    client.on('error', ignore)
    try {
      const server = { ...(await greet(client, { fence, answerMs, refused })), sinceMs: performance.now() }
      servers.set(client, server)
      return { client, server }
    } catch (err) {
      client.release(true)
      throw err
    } finally {
      client.off('error', ignore)
    }
  }

  return async (pool, use) => {
    const { client, server } = await firstOf(hosts, fence, (_, refused) => take(pool, refused))
    let broken: Error | undefined
    const drop = (reason: unknown): void => {
      broken = reason instanceof Error ? reason : new Error('the connection is closed')
    }
    // A connection that breaks between two statements emits 'error', which would end the process without a listener.
    client.on('error', drop)
    try {
      await lease?.cover(server, answerMs)
      try {
        return await use(client, server, drop)
      } finally {
        // Another connection may have met a newer primary meanwhile; then this answer does not count.
        fence.pass(server)
        lease?.assertCovered(server)
      }
    } catch (err) {
      if (isWorthless(err)) drop(err)
      throw err
    } finally {
      client.off('error', drop)
      client.release(broken)
    }
  }
}

const SETTINGS_LOST =
  'the settings of the session are lost, since a pooler stands between that ignores them: let DATABASE_URL lead past it'
type Refused = (event: ServerEvent) => void
const ignore = (): void => undefined

/** Opens the first host that takes writes. Events about refused hosts are reported only when all are refused. */
export async function firstOf<T>(
  hosts: Hosts,
  fence: Fence,
  open: (url: string, refused: Refused) => Promise<T>,
): Promise<T> {
  for (let left = hosts.urls.length; ; left -= 1) {
    const events: ServerEvent[] = []
    const url = hosts.url()
    try {
      return await open(url, (event) => events.push(event))
    } catch (err) {
      hosts.leave(url)
      if (left > 1 && isWorthless(err)) continue
      events.forEach(fence.report)
      throw err
    }
  }
}

/** `answerMs`: how long to wait for the answer. */
export type Greeting = { readonly fence: Fence; readonly answerMs: number }

/** A connection of its own, beside the pools. Throws PdpError `store_unavailable` as the greeting does. */
export async function openGreeted(
  config: pg.ClientConfig,
  greeting: Greeting & { readonly refused: Refused },
): Promise<{ readonly client: pg.Client; readonly server: Server }> {
  const client = new pg.Client(config)
  client.on('error', ignore) // the next statement on the connection reports the error
  try {
    await client.connect().catch((error: unknown) => {
      greeting.refused({ kind: 'unreachable', error })
      throw asPdpError(error)
    })
    return { client, server: await greet(client, greeting) }
  } catch (err) {
    await client.end()
    throw err
  }
}

/** Asks the server who it is. Throws PdpError `store_unavailable` unless it is the latest primary. */
async function greet(
  client: pg.ClientBase,
  { fence, answerMs, refused }: Greeting & { readonly refused: Refused },
): Promise<Server> {
  type Greeted = { readonly address: string; readonly timeline: string | null; readonly kept: boolean }
  const late = (): PdpError => new PdpError('store_unavailable', 'the database did not answer in time')
  const answer = withTimeout(client.query<Greeted>(GREETING), answerMs, late)
  const [row] = (
    await answer.catch((error: unknown) => {
      refused({ kind: 'unreachable', error })
      throw asPdpError(error)
    })
  ).rows
  const { address, timeline, kept } = row ?? { address: '', timeline: null, kept: false }
  if (!kept) {
    const error = new PdpError('store_unavailable', SETTINGS_LOST)
    refused({ kind: 'unreachable', error })
    throw error
  }
  if (timeline === null) {
    refused({ kind: 'standby', address })
    throw new PdpError('store_unavailable', 'the database is a standby in recovery')
  }
  const server = { address, timeline: readTimeline(timeline) }
  fence.admit(server, refused)
  return server
}
