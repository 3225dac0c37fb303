/** Opens the database for the server, and for the commands `migrate` and `keys rotate`. */
import { randomBytes } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import type { Registry } from 'prom-client'
import type { Queries } from '../../engine/store/directory.ts'
import { startEmbeddedPostgres } from '../../engine/store/embedded-postgres/embedded-postgres.ts'
import type { OnStatement } from '../../engine/store/postgres/connection/database.ts'
import { isDatabaseError } from '../../engine/store/postgres/connection/errors.ts'
import { openPostgres, type PostgresOptions } from '../../engine/store/postgres/postgres.ts'
import { rotateKeys } from '../../identity/issuer/keys/key-rotation.ts'
import {
  type RotationDeps,
  type RotationReport,
  rotateMasterKey,
} from '../../identity/issuer/keys/master-key-rotation.ts'
import { forgetProcesses, openMasterKeys } from '../../identity/issuer/keys/master-keys.ts'
import { PdpError } from '../../shared/domain/errors.ts'
import { StartError } from '../../shared/process/exit.ts'
import type { Log } from '../../shared/process/log.ts'
import type { Shutdown } from '../../shared/process/shutdown.ts'
import type { Spans } from '../../shared/process/tracing/spans.ts'
import { spanError } from '../../shared/process/tracing/tracing.ts'
import type { PdpConfig } from './config.ts'
import { watchServers } from './failover.ts'
import { installSuccessor, loadMasterKeys, makeSuccessor } from './secrets.ts'

const START_WAIT_MS = 5_000

const placeOf = ({
  databaseSchema: schema,
  databaseConnections,
  replication,
}: PdpConfig): Pick<PostgresOptions, 'schema' | 'replication' | 'poolCountMax'> => ({
  poolCountMax: Math.floor(databaseConnections / 2),
  ...(schema === null ? {} : { schema }),
  ...(replication === null ? {} : { replication }),
})

/** Brings the schema up to date. `shutdown` closes the database. Throws StartError. */
export async function openStore(
  config: PdpConfig,
  of: { readonly shutdown: Shutdown; readonly registry: Registry; readonly spans: Spans | null; readonly log: Log },
): ReturnType<typeof openPostgres> {
  const { shutdown, registry, spans, log } = of
  let connectionString = config.databaseUrl
  if (connectionString === null) {
    const { dataDirectory } = config
    const onRestart = (): void => log.warn({ event: 'database_restarted', reason: 'the embedded PostgreSQL had ended' })
    const embedded = await startEmbeddedPostgres({ dataDirectory, onRestart })
    shutdown.add('embedded PostgreSQL', () => embedded.stop())
    connectionString = embedded.connectionString
  }
  const observers = { onStatement: spans && statementSpans(spans), onServer: watchServers({ log, registry }) }
  const lease = config.lease === null ? {} : { lease: config.lease }
  const options = { connectionString, ...placeOf(config), ...lease }
  const opened = await openPostgres(options, observers).catch(explainDatabase)
  shutdown.add('store', () => opened.close())
  await firstAnswer(opened.sql).catch(explainDatabase)
  return opened
}

/** Waits for the first connection, longer than a question would: the database may start later than the PDP. */
async function firstAnswer(sql: Queries): Promise<void> {
  for (const endMs = performance.now() + START_WAIT_MS; ; await delay(100)) {
    try {
      await sql.query('select 1')
      return
    } catch (err) {
      const isUnreachable = err instanceof PdpError && err.code === 'store_unavailable'
      if (!isUnreachable || performance.now() >= endMs) throw err
    }
  }
}

const PLACES = `
  select (select coalesce(sum(setting::int * case name when 'max_connections' then 1 else -1 end), 0)::int from pg_settings
      where name in ('max_connections', 'superuser_reserved_connections', 'reserved_connections')) as places,
    (select count(*)::int from pdp_process where seen_at > now() - interval '1 minute') as processes`

/** Logs a line if the running PDPs may need more connections than the server has: a PDP without a connection cannot answer. */
export async function checkConnections(
  { databaseConnections, replication, lease }: Pick<PdpConfig, 'databaseConnections' | 'replication' | 'lease'>,
  { sql, log }: { readonly sql: Queries; readonly log: Log },
): Promise<void> {
  const [row] = await sql.query<{ places: number; processes: number }>(PLACES)
  if (row === undefined) return
  const { places, processes } = row
  const heartbeats = replication === null && lease !== 'shared' ? 0 : 1
  // Each PDP also opens a connection for some milliseconds every two seconds, to see which server the address leads to.
  const probes = Math.ceil(processes / 10)
  const needed = processes * (databaseConnections + heartbeats) + probes
  if (needed <= places) return
  const each = Math.floor((places - probes) / processes) - heartbeats
  const advice = each < 4 ? '' : `, or PORTCULLIS_DATABASE_CONNECTIONS to ${each} or less`
  const reason = `set max_connections of PostgreSQL so that ${needed} are left for the PDPs${advice}`
  log.warn({
    event: 'database_connections_short',
    pdps_count: processes,
    needed_count: needed,
    places_count: places,
    reason,
  })
}

/** The span of a statement. If several questions share the statement, the span belongs to the first one. */
function statementSpans(spans: Spans): OnStatement {
  return (name) => {
    const span = spans.current()?.child(`postgresql ${name}`, 'client', { 'db.system.name': 'postgresql' })
    return (error) => span?.end(error === null ? null : spanError(error))
  }
}

/** Brings the schema up to date, and returns the names of the applied migrations. Throws StartError. */
export const migrateStore = (config: PdpConfig): Promise<readonly string[]> =>
  withDatabase(config, async ({ migrated }) => migrated)

/**
 * Changes the signing key of a running deployment; its nodes notice within half a minute.
 * Throws StartError while the next key is too new to be known everywhere, and PdpError `store_unavailable`.
 */
export async function rotateSigningKeys(config: PdpConfig): Promise<{ activeKid: string; nextKid: string }> {
  const given = await loadMasterKeys(config)
  return withDatabase(config, async ({ sql }) => {
    try {
      return await rotateKeys({ sql, masterKeys: await openMasterKeys(sql, given) })
    } catch (err) {
      if (err instanceof PdpError && err.code === 'conflict') throw new StartError(err.message)
      throw err
    }
  })
}

/** Encrypts everything with the next master key. Throws StartError, and PdpError `store_unavailable`. */
export async function changeMasterKey(
  config: PdpConfig,
  how: Pick<RotationDeps, 'dryRun' | 'progress' | 'counted'>,
): Promise<RotationReport> {
  const { dryRun } = how
  const given = await loadMasterKeys(config)
  const isGenerated = config.masterKey === null && config.nextMasterKey === null
  if (given.next === null && !isGenerated)
    throw new StartError(
      'PORTCULLIS_NEXT_MASTER_KEY is not set. Make a key (openssl rand -base64 32), give it to every PDP under this name beside PORTCULLIS_MASTER_KEY, restart them, and run this command with both',
    )
  return withDatabase(config, async ({ sql }) => {
    // No PDP uses the data directory, which this process has locked, so the rows are of killed PDPs.
    if (config.databaseUrl === null) await forgetProcesses(sql)
    // The key is made only now: a command that cannot lock the data directory must leave none behind.
    const made = given.next === null && !dryRun ? await makeSuccessor(config) : null
    // A dry run makes no file. Any other key gives the same report: all stored values would change.
    const next = given.next ?? made ?? randomBytes(given.current.length)
    const report = await rotateMasterKey({ sql, current: given.current, next, ...how })
    if (isGenerated && !dryRun && report.complete) await installSuccessor(config)
    return report
  })
}

async function withDatabase<T>(
  config: PdpConfig,
  work: (database: Awaited<ReturnType<typeof openPostgres>>) => Promise<T>,
): Promise<T> {
  const embedded = config.databaseUrl === null ? await startEmbeddedPostgres(config) : null
  try {
    const connectionString = config.databaseUrl ?? embedded?.connectionString ?? ''
    const database = await openPostgres({ connectionString, ...placeOf(config) }).catch(explainDatabase)
    try {
      return await work(database)
    } finally {
      await database.close()
    }
  } finally {
    await embedded?.stop()
  }
}

const ADVICE: { readonly [code: string]: string } = {
  ECONNREFUSED: 'nothing listens at the host and port of DATABASE_URL',
  ENOTFOUND: 'the host name in DATABASE_URL has no address',
}

const REFUSALS: { readonly [sqlState: string]: string } = {
  '28P01': 'it refuses the user or the password of DATABASE_URL',
  28000: 'its pg_hba.conf does not let the user of DATABASE_URL connect from here',
  '3D000': 'the database that DATABASE_URL names does not exist',
  '08P01':
    'it, or a pooler before it, refuses the settings of the session (startup parameter options). PgBouncer does: let DATABASE_URL lead past it',
  42501: 'the user of DATABASE_URL has too few rights in this database',
}

// Repeats neither the URL nor the driver's message, which could contain a password.
function explainDatabase(err: unknown): never {
  const answer = err instanceof PdpError ? err.cause : err
  const refusal = isDatabaseError(answer) ? REFUSALS[answer.code] : undefined
  if (refusal !== undefined) throw new StartError(`PostgreSQL: ${refusal}`, { cause: err })
  if (!(err instanceof PdpError)) throw err
  const code = err.cause instanceof Error && 'code' in err.cause ? String(err.cause.code) : ''
  const advice = ADVICE[code] === undefined ? '' : `: ${ADVICE[code]}`
  throw new StartError(`PostgreSQL: ${err.message}${code && ` (${code})`}${advice}`, { cause: err })
}
