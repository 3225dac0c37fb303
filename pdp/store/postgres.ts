/** PostgreSQL: connections, migrations, and the two views of it that the rest of the PDP sees (Store and Sql). */
import pg from 'pg'
import type { Store } from './contracts.ts'
import type { Sql } from './directory.ts'
import { asPdpError, databaseOver } from './postgres-connection.ts'
import { migrate } from './postgres-migrate.ts'
import { storeOver } from './postgres-store.ts'

// Index probes must not depend on what the planner believes about a table's size; a commit is acknowledged when durable.
const SESSION = [
  'enable_seqscan=off',
  'jit=off',
  'synchronous_commit=on',
  'default_transaction_isolation=read\\ committed',
  'idle_in_transaction_session_timeout=30000',
]
const INT8 = 20
const CONNECT_TIMEOUT_MS = 5_000
/** A server that stopped answering, or a network that drops everything, breaks no connection by itself. */
const QUERY_TIMEOUT_MS = 10_000

export type PostgresOptions = {
  readonly connectionString: string
  /** Connections at most. Default 10. */
  readonly poolCountMax?: number
  /** For one statement to be answered; later the database counts as unreachable. Default 10 s. */
  readonly queryTimeoutMs?: number
}

/**
 * Connects, migrates and returns the store.
 * @throws PdpError `store_unavailable` when the server cannot be reached, `conflict` when the schema is not ours.
 */
export async function openPostgres(
  options: PostgresOptions,
): Promise<{ sql: Sql; store: Store; migrated: readonly string[]; close(): Promise<void> }> {
  const migrated = await migrateOnce(options.connectionString)
  const pool = new pg.Pool(poolConfig(options))
  // An idle connection that breaks is replaced by the pool; the query that needs it reports its own error.
  pool.on('error', () => {})
  const database = databaseOver(pool)
  const close = (): Promise<void> => pool.end()
  return { sql: database, store: storeOver(database, close), migrated, close }
}

/** The store alone, for applications that embed the PDP. Throws as openPostgres does. */
export async function postgresStore(options: PostgresOptions): Promise<Store> {
  return (await openPostgres(options)).store
}

function poolConfig(options: PostgresOptions): pg.PoolConfig {
  return {
    connectionString: options.connectionString,
    max: options.poolCountMax ?? 10,
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    query_timeout: options.queryTimeoutMs ?? QUERY_TIMEOUT_MS,
    keepAlive: true,
    options: SESSION.map((setting) => `-c ${setting}`).join(' '),
    types: {
      // Revisions and versions stay far below 2^53; write ids are read as text.
      getTypeParser: (oid, format) => (oid === INT8 ? Number : pg.types.getTypeParser(oid, format)),
    },
  }
}

async function migrateOnce(connectionString: string): Promise<readonly string[]> {
  const client = new pg.Client({ connectionString, connectionTimeoutMillis: CONNECT_TIMEOUT_MS })
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
