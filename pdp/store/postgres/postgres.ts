/** PostgreSQL: connections, migrations, and the two views of it that the rest of the PDP sees (Store and Sql). */
import pg from 'pg'
import type { Store } from '../contract.ts'
import type { Sql } from '../directory.ts'
import { asPdpError, databaseOver, type TimeLimits } from './connection.ts'
import { migrate } from './migrate.ts'
import { storeOver } from './store.ts'
import { createTurns } from './turns.ts'
import { type Atomically, atomicallyOver } from './unit-of-work.ts'

// Index probes must not depend on what the planner believes about a table's size; a commit is acknowledged when durable.
const SESSION = [
  'enable_seqscan=off',
  'jit=off',
  'synchronous_commit=on',
  'default_transaction_isolation=read\\ committed',
  'statement_timeout=4000',
  // Longer than the next, so that whoever waits for a writer that is cut off gets its turn.
  'lock_timeout=4000',
  // Whoever is cut off in the middle of a write blocks its log no longer than that.
  'idle_in_transaction_session_timeout=3000',
  // The server's own look at whether somebody is still there: what it sent, and whom it waits for, in seconds.
  'tcp_user_timeout=5000',
  'tcp_keepalives_idle=5',
  'tcp_keepalives_interval=2',
  'tcp_keepalives_count=3',
]
const INT8 = 20
/** For a connection to be had, made or waited for. */
const CONNECT_TIMEOUT_MS = 1_000
const MIGRATION_CONNECT_TIMEOUT_MS = 5_000
const KEEPALIVE_AFTER_MS = 5_000
/**
 * For the earlier writes of the same logs, and how many may wait. They would wait for each other at the database, each with a
 * connection, and one after the other if this process is cut off.
 */
const WRITE_WAIT_MS = 4_000
const WRITES_WAITING_MAX = 256

export type PostgresOptions = {
  readonly connectionString: string
  /** Connections for reads at most, and for transactions as many again. Default 10. */
  readonly poolCountMax?: number
  /** For an answer; later the database counts as unreachable. Default: a second for decisions, 5 s for a write. */
  readonly timeLimits?: TimeLimits
}

/**
 * Connects, migrates and returns the store.
 * Throws PdpError `store_unavailable` when the server cannot be reached, `conflict` when the schema is not ours.
 */
export async function openPostgres(options: PostgresOptions): Promise<{
  sql: Sql
  store: Store
  atomically: Atomically
  migrated: readonly string[]
  close(): Promise<void>
}> {
  const migrated = await migrateOnce(options.connectionString)
  const pools = { reads: openPool(options), transactions: openPool(options) }
  const database = databaseOver(pools, options.timeLimits)
  const turns = createTurns({ waitMsMax: WRITE_WAIT_MS, waitingMax: WRITES_WAITING_MAX })
  const close = async (): Promise<void> => void (await Promise.all([pools.reads.end(), pools.transactions.end()]))
  const store = storeOver(database, turns, close)
  return { sql: database, store, atomically: atomicallyOver(database, turns), migrated, close }
}

/** The store alone, for applications that embed the PDP. Throws as openPostgres does. */
export async function postgresStore(options: PostgresOptions): Promise<Store> {
  return (await openPostgres(options)).store
}

function openPool(options: PostgresOptions): pg.Pool {
  const pool = new pg.Pool({
    connectionString: options.connectionString,
    max: options.poolCountMax ?? 10,
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    keepAlive: true,
    keepAliveInitialDelayMillis: KEEPALIVE_AFTER_MS,
    options: SESSION.map((setting) => `-c ${setting}`).join(' '),
    types: {
      // Revisions and versions stay far below 2^53; write ids are read as text.
      getTypeParser: (oid, format) => (oid === INT8 ? Number : pg.types.getTypeParser(oid, format)),
    },
  })
  // An idle connection that breaks is replaced by the pool; the query that needs it reports its own error.
  pool.on('error', () => {})
  return pool
}

async function migrateOnce(connectionString: string): Promise<readonly string[]> {
  const client = new pg.Client({
    connectionString,
    connectionTimeoutMillis: MIGRATION_CONNECT_TIMEOUT_MS,
    keepAlive: true,
  })
  client.on('error', () => {}) // the statement that needs the connection says so itself
  try {
    await client.connect()
    return await migrate(client)
  } catch (error) {
    throw asPdpError(error)
  } finally {
    await client.end().catch(() => {})
  }
}
