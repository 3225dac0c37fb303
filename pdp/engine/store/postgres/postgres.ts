/** Opens PostgreSQL: its connections, its migrations, and the two interfaces that the rest of the PDP uses (Store and Sql). */
import pg from 'pg'
import { quote } from '../../../shared/domain/names.ts'
import type { Store } from '../contract.ts'
import type { Sql } from '../directory.ts'
import { firstOf, type Greeting, openGreeted, SESSION_MARK } from './connection/checkout.ts'
import { databaseOver, TIME_LIMITS } from './connection/connection.ts'
import type { OnStatement, TimeLimits } from './connection/database.ts'
import { asPdpError } from './connection/errors.ts'
import { createFence, type ServerEvent } from './connection/fence.ts'
import { startHeartbeat } from './connection/heartbeat.ts'
import { createHosts, type Hosts } from './connection/hosts.ts'
import { createJournalTurns } from './connection/journal-turns.ts'
import { keptConnection } from './connection/kept.ts'
import { startProbing } from './connection/probing.ts'
import { SharedHolder } from './connection/shared-holder.ts'
import { SoleHolder } from './connection/sole-holder.ts'
import { isSchemaName, type Migrated, migrate } from './migrate.ts'
import { storeOver } from './store.ts'
import { type Atomically, atomicallyOver } from './unit-of-work.ts'

// The planner must use indexes whatever it believes about a table's size. A commit is acknowledged once it is durable.
const SESSION = [
  SESSION_MARK,
  'enable_seqscan=off',
  'jit=off',
  'synchronous_commit=on',
  'default_transaction_isolation=read\\ committed',
  'statement_timeout=4000',
  // Longer than the next setting, so that a writer that waits for one whose process was cut off still gets the lock.
  'lock_timeout=4000',
  // The longest that a writer whose process was cut off in the middle of a transaction keeps its journal locked.
  'idle_in_transaction_session_timeout=3000',
  // How the server notices that a client is gone: milliseconds until what it sent must be acknowledged, then keepalive probes.
  'tcp_user_timeout=5000',
  'tcp_keepalives_idle=5',
  'tcp_keepalives_interval=2',
  'tcp_keepalives_count=3',
]
/** Parsers by type. The driver's own belong to the whole process, and an embedding application may have replaced them. */
const PARSERS: ReadonlyMap<number, (text: string) => unknown> = new Map<number, (text: string) => unknown>([
  [16, (text) => text === 't'], // boolean
  [20, Number], // bigint: revisions and versions stay far below 2^53; write ids are read as text
  [21, Number],
  [23, Number],
  [701, Number], // float8
  [114, (text) => JSON.parse(text)], // json, jsonb
  [3802, (text) => JSON.parse(text)],
])
/** How long a call waits for a connection, while a new one is made or all are in use. */
const CONNECT_TIMEOUT_MS = 1_000
const MIGRATION_CONNECT_TIMEOUT_MS = 5_000
const KEEPALIVE_AFTER_MS = 5_000
/**
 * How long a write waits in this process for earlier writes of the same journals, and how many may wait. Otherwise they would wait
 * at the database, each with a connection.
 */
const WRITE_WAIT_MS = 4_000
const WRITES_WAITING_MAX = 256

/**
 * Where the database is, and the limits of its use.
 *
 * @example
 * ```ts
 * const options: PostgresOptions = { connectionString: 'postgres://app@localhost/app', schema: 'portcullis' }
 * ```
 */
export type PostgresOptions = {
  readonly connectionString: string
  /** The schema of our tables, which is created if it does not exist. Default: the first of the connection's `search_path`. */
  readonly schema?: string
  /** The most connections for reads; transactions may use as many again. Default 10. */
  readonly poolCountMax?: number
  /** How long an answer may take before the database counts as unreachable. Default: 1 s for decisions, 5 s for a write. */
  readonly timeLimits?: TimeLimits
  /**
   * `synchronous`: the primary never acknowledges a commit before a standby has it (`synchronous_mode_strict` of Patroni). Then every
   * answer reflects all acknowledged writes, even while a former primary still runs.
   */
  readonly replication?: 'synchronous'
  /**
   * `sole`: while no other process writes, most questions are answered from memory, without a statement. Any other write waits up to
   * 2.5 s at its commit, and must be READ COMMITTED. `shared`: the same for several processes, each with one connection more: a
   * write waits until all of them know of it, and once 2.5 s for one that does not answer. Neither with `replication`.
   */
  readonly lease?: 'sole' | 'shared'
}

/** `waiting`: calls that wait for a connection. */
export type Connections = {
  readonly [pool in 'reads' | 'transactions']: {
    readonly open: number
    readonly idle: number
    readonly waiting: number
  }
}

/**
 * Connects, migrates and returns the store.
 * Throws PdpError `store_unavailable` when the server cannot be reached, `conflict` when the tables there are not ours.
 */
export async function openPostgres(
  options: PostgresOptions,
  observers: { readonly onStatement?: OnStatement | null; readonly onServer?: (event: ServerEvent) => void } = {},
): Promise<{
  sql: Sql
  store: Store
  atomically: Atomically
  migrated: readonly string[]
  /** The connections of each pool, at this moment. */
  connections(): Connections
  close(): Promise<void>
}> {
  const { schema, connectionString } = options
  if (schema !== undefined && !isSchemaName(schema))
    throw new TypeError(`schema ${quote(schema)} is not a name of small letters, digits and _`)
  if (options.lease !== undefined && options.replication !== undefined)
    throw new TypeError('a lease cannot be combined with synchronous replication')
  const hosts = createHosts(connectionString)
  const { applied: migrated, schema: found } = await migrateOnce(hosts, schema)
  const configOf = (url: string): pg.ClientConfig => clientConfig(options, url)
  const pools = { reads: openPool(options, hosts), transactions: openPool(options, hosts) }
  const { onStatement = null, onServer } = observers
  const fence = createFence(onServer)
  const { timeLimits: limits = TIME_LIMITS } = options
  const greeting = { fence, hosts, answerMs: limits.decisionMs }
  const clocks = { clock: () => performance.now(), wallClock: Date.now }
  const sole = options.lease === 'sole' ? new SoleHolder({ fence, ...clocks }) : null
  const shared =
    options.lease === 'shared'
      ? new SharedHolder({ fence, ...clocks, keep: (listen) => keptConnection(configOf, greeting, listen) })
      : null
  const holder = sole ?? shared
  const report = (event: ServerEvent): void => {
    if (event.kind === 'history') holder?.giveUp()
    fence.report(event)
  }
  const heartbeat = options.replication === undefined ? null : startHeartbeat(configOf, greeting)
  const database = databaseOver(pools, { fence, hosts, lease: heartbeat?.lease ?? null, limits, onStatement, holder })
  sole?.keep(database)
  shared?.keep()
  const turns = createJournalTurns({ waitMsMax: WRITE_WAIT_MS, waitingMax: WRITES_WAITING_MAX })
  const endProbing = startProbing(() => probe(configOf, greeting))
  const close = async (): Promise<void> => {
    await holder?.end()
    await Promise.all([heartbeat?.end(), endProbing(), pools.reads.end(), pools.transactions.end()])
  }
  const atomically = atomicallyOver(database, turns, report)
  const store: Store = {
    ...storeOver(database, turns, { close, report, schema: found, holder }),
    atomically: (locks, work) => atomically(locks, (unit) => work(unit.store)),
  }
  const stateOf = ({ totalCount: open, idleCount: idle, waitingCount: waiting }: pg.Pool) => ({ open, idle, waiting })
  const connections = (): Connections => ({ reads: stateOf(pools.reads), transactions: stateOf(pools.transactions) })
  return { sql: database, store, atomically, migrated, connections, close }
}

/**
 * Connects, brings the tables up to date, and returns the store. With `schema` it lives beside tables of your own.
 *
 * Throws PdpError `store_unavailable` when the server cannot be reached, `conflict` when the tables there are not ours.
 *
 * @example
 * ```ts
 * const store = await postgresStore({ connectionString: 'postgres://app@localhost/app', schema: 'portcullis' })
 * const durable = createPdp({ store })
 * ```
 */
export async function postgresStore(options: PostgresOptions): Promise<Store> {
  return (await openPostgres(options)).store
}

function openPool(options: PostgresOptions, hosts: Hosts): pg.Pool {
  // The pool makes one client for each connection, and each may connect to another host.
  function Client(): pg.Client {
    return new pg.Client(clientConfig(options, hosts.url()))
  }
  const connectionTimeoutMillis = CONNECT_TIMEOUT_MS
  const pool = new pg.Pool({
    ...{ max: options.poolCountMax ?? 10, connectionTimeoutMillis },
    Client: Client as unknown as typeof pg.Client,
  })
  // The pool replaces an idle connection that breaks; a query on a broken connection reports its own error.
  pool.on('error', () => {})
  return pool
}

function clientConfig(options: PostgresOptions, of: string): pg.ClientConfig {
  const schema = options.schema === undefined ? [] : [`search_path=${options.schema}`]
  return {
    ...placeOf(of, [...SESSION, ...schema]),
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    keepAlive: true,
    keepAliveInitialDelayMillis: KEEPALIVE_AFTER_MS,
    types: {
      getTypeParser: (oid, format) => PARSERS.get(oid) ?? pg.types.getTypeParser(oid, format),
    },
  }
}

/** Connects to every host, since the preferred one may be a primary that another has overtaken. */
async function probe(
  configOf: (url: string) => pg.ClientConfig,
  greeting: Greeting & { readonly hosts: Hosts },
): Promise<void> {
  const { hosts, fence } = greeting
  const events: ServerEvent[] = []
  let found: string | null = null
  for (const url of hosts.urls) {
    const opened = await openGreeted(configOf(url), { ...greeting, refused: (event) => events.push(event) }).catch(
      () => null,
    )
    if (opened === null) continue
    found = url
    hosts.prefer(url)
    await opened.client.end()
  }
  if (found === null) events.forEach(fence.report)
}

/** Joins the `options` of the URL with ours, which they would otherwise replace. */
function placeOf(
  connectionString: string,
  session: readonly string[],
): Pick<pg.ClientConfig, 'connectionString' | 'options'> {
  const url = URL.parse(connectionString)
  const settings = url?.searchParams.get('options') ?? null
  url?.searchParams.delete('options')
  return {
    connectionString: url === null || settings === null ? connectionString : url.href,
    options: [...(settings === null ? [] : [settings]), ...session.map((setting) => `-c ${setting}`)].join(' '),
  }
}

async function migrateOnce(hosts: Hosts, schema: string | undefined): Promise<Migrated> {
  const config = { connectionTimeoutMillis: MIGRATION_CONNECT_TIMEOUT_MS, keepAlive: true }
  const fence = createFence()
  const greeting = { fence, answerMs: MIGRATION_CONNECT_TIMEOUT_MS }
  const { client } = await firstOf(hosts, fence, (url, refused) =>
    openGreeted({ ...config, ...placeOf(url, [SESSION_MARK]) }, { ...greeting, refused }),
  )
  try {
    return await migrate(client, schema)
  } catch (err) {
    throw asPdpError(err)
  } finally {
    await client.end().catch(() => {})
  }
}
