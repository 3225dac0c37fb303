/** Metrics of the state that decisions read: the store's statements, connections and tables, and the limits of gRPC callers. */
import { Gauge, Histogram, type Registry } from 'prom-client'
import type { Store } from '../../engine/store/contract.ts'
import type { Queries } from '../../engine/store/directory.ts'
import type { Connections } from '../../engine/store/postgres/postgres.ts'
import type { Budgets } from '../serve/grpc/budgets.ts'
import { asRequestProblem } from '../serve/http/status.ts'
import { sharedReading } from './metrics.ts'

/** The greatest age of the tables' metrics in a scrape. */
const TABLES_AGE_MS = 15_000

/** The store with metrics: it measures each call that decisions and writes wait for. */
export function timedStore(store: Store, registry: Registry, clock: () => number = () => performance.now()): Store {
  const durations = new Histogram({
    name: 'portcullis_store_duration_seconds',
    help: 'Calls of the store by operation and outcome. vector: positions of the logs, once for all waiting questions. rows: what the cache lacked.',
    labelNames: ['operation', 'outcome'],
    buckets: [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5],
    registers: [registry],
  })
  async function time<T>(operation: string, work: () => Promise<T>): Promise<T> {
    const startMs = clock()
    const done = (outcome: string): void => durations.observe({ operation, outcome }, (clock() - startMs) / 1_000)
    try {
      const result = await work()
      done('ok')
      return result
    } catch (err) {
      done(asRequestProblem(err).code)
      throw err
    }
  }
  return {
    ...store,
    vector: (...words) => time('vector', () => store.vector(...words)),
    entries: (...words) => time('entries', () => store.entries(...words)),
    rows: (...words) => time('rows', () => store.rows(...words)),
    snapshot: (use) => time('snapshot', () => store.snapshot(use)),
    write: (...words) => time('write', () => store.write(...words)),
  }
}

export function stateMetrics(
  registry: Registry,
  parts: {
    readonly sql: Queries
    readonly connections: () => Connections
    readonly budgets: Budgets
    /** The end of the gRPC listener's certificate; null: no certificate. */
    readonly certificateEndMs: () => number | null
  },
): void {
  connectionMetrics(registry, parts.connections)
  budgetMetrics(registry, parts.budgets)
  tableMetrics(registry, parts.sql)
  new Gauge({
    name: 'portcullis_certificate_not_after_seconds',
    help: 'End of the certificate of the gRPC listener, as seconds since the epoch; 0 without a certificate.',
    registers: [registry],
    collect() {
      this.set((parts.certificateEndMs() ?? 0) / 1_000)
    },
  })
}

function connectionMetrics(registry: Registry, connections: () => Connections): void {
  new Gauge({
    name: 'portcullis_database_connections',
    help: 'Connections to PostgreSQL by pool and state; waiting: calls that wait for one.',
    labelNames: ['pool', 'state'],
    registers: [registry],
    collect() {
      for (const [pool, { open, idle, waiting }] of Object.entries(connections())) {
        this.set({ pool, state: 'used' }, open - idle)
        this.set({ pool, state: 'idle' }, idle)
        this.set({ pool, state: 'waiting' }, waiting)
      }
    },
  })
}

function budgetMetrics(registry: Registry, budgets: Budgets): void {
  new Gauge({
    name: 'portcullis_grpc_budget_used_ratio',
    help: 'What gRPC callers hold of the limit for all of them, from 0 to 1, by kind.',
    labelNames: ['kind'],
    registers: [registry],
    collect() {
      for (const [kind, ratio] of Object.entries(budgets.used())) this.set({ kind }, ratio)
    },
  })
}

/** Metrics of tables. While the database does not answer, all but `database_up` keep their last values. */
function tableMetrics(registry: Registry, sql: Queries): void {
  const fresh = sharedReading(TABLES_AGE_MS, read)
  const gauge = (name: string, help: string, labelNames: readonly string[] = []): Gauge =>
    new Gauge({
      name: `portcullis_${name}`,
      help,
      labelNames: [...labelNames],
      registers: [registry],
      collect: async () => void (await fresh()),
    })
  const rows = gauge('table_rows', 'Rows of each table as PostgreSQL estimates them.', ['table'])
  const bytes = gauge('table_bytes', 'Size of each table with its indexes.', ['table'])
  const revisions = gauge('log_revision', 'Latest revision of each log of the environment; #tokens: revocations.', [
    'log',
  ])
  const oldest = gauge('outbox_oldest_timestamp_seconds', 'Time of the oldest event that is kept; 0 without events.')
  const rotating = gauge('master_key_rotating', '1 while a rotation of the master key is not complete.')
  new Gauge({
    name: 'portcullis_database_up',
    help: '1 when the database answered the latest reading.',
    registers: [registry],
    async collect() {
      this.set((await fresh()) ? 1 : 0)
    },
  })

  async function read(): Promise<void> {
    const [tables, [state]] = await Promise.all([
      sql.query<{ readonly name: string; readonly rows: number; readonly bytes: number }>(TABLES),
      sql.query<{
        readonly oldest: number
        readonly rotating: number
        readonly logs: { readonly [log: string]: number }
      }>(STATE),
    ])
    for (const table of tables) {
      rows.set({ table: table.name }, table.rows)
      bytes.set({ table: table.name }, table.bytes)
    }
    if (state === undefined) return
    oldest.set(state.oldest)
    rotating.set(state.rotating)
    for (const [log, revision] of Object.entries(state.logs)) revisions.set({ log }, revision)
  }
}

const TABLES = `
  select relname as name, greatest(reltuples, 0)::float8 as rows, pg_total_relation_size(oid)::float8 as bytes
  from pg_class where relkind = 'r' and relnamespace = (select relnamespace from pg_class where oid = 'change_log'::regclass)`
const STATE = `
  select coalesce((select extract(epoch from created_at)::float8 from outbox order by seq limit 1), 0) as oldest,
    (select count(*)::int from master_key where rotating_from is not null) as rotating,
    (select jsonb_object_agg(organization_id, revision) from revision
     where organization_id in ('#environment', '#tokens', '#directory', '#events')) as logs`
