/** The transmitter of Shared Signals in the running PDP: its dependencies and its metrics. */
import { Counter, Gauge, type Registry } from 'prom-client'
import type { Store } from '../../engine/store/contract.ts'
import type { Queries, Sql } from '../../engine/store/directory.ts'
import type { Atomically } from '../../engine/store/postgres/unit-of-work.ts'
import type { Identity } from '../../identity/identity.ts'
import type { MasterKeys } from '../../shared/base/encryption.ts'
import { createGuardedPost } from '../../shared/base/guarded-post.ts'
import type { ProxySettings } from '../../shared/process/egress.ts'
import type { Log } from '../../shared/process/log.ts'
import type { DeliveryOutcome } from '../../signals/transmitter/deliverer.ts'
import { createTransmitter, type Transmitter } from '../../signals/transmitter/transmitter.ts'
import { sharedReading } from './metrics.ts'

/** How many streams have a metric of their own: those with the most waiting events. */
const LAGGING_MAX = 20
const READ_AGE_MS = 5_000

export type Commits = {
  /** Returns the same parts, but each transaction that may have stored events is reported. */
  watch<T extends { readonly sql: Sql; readonly store: Store; readonly atomically: Atomically }>(parts: T): T
  subscribe(listener: () => void): void
}

/** Wakes this process's transmitter after a commit; other processes find the events by polling. */
export function createCommits(): Commits {
  const listeners = new Set<() => void>()
  const reported = async <T>(work: Promise<T>): Promise<T> => {
    const result = await work
    for (const listener of listeners) listener()
    return result
  }
  return {
    subscribe: (listener) => void listeners.add(listener),
    watch: (parts) => ({
      ...parts,
      sql: { ...parts.sql, transaction: (work) => reported(parts.sql.transaction(work)) },
      store: { ...parts.store, write: (...words) => reported(parts.store.write(...words)) },
      atomically: (locks, work) => reported(parts.atomically(locks, work)),
    }),
  }
}

export function startSignals(deps: {
  readonly issuer: string
  readonly internalHosts: readonly string[]
  readonly proxy: ProxySettings | null
  readonly sql: Sql
  readonly identity: Pick<Identity, 'signSet' | 'publicKeys'>
  readonly masterKeys: MasterKeys
  readonly commits: Pick<Commits, 'subscribe'>
  readonly registry: Registry
  readonly log: Log
}): Transmitter {
  const { issuer, sql, identity, masterKeys, log } = deps
  const transmitter = createTransmitter({
    issuer,
    sql,
    masterKeys,
    log,
    signSet: identity.signSet,
    publishedKids: () => new Set(identity.publicKeys().flatMap(({ kid }) => (kid === undefined ? [] : [kid]))),
    post: createGuardedPost({ internalHosts: deps.internalHosts, proxy: deps.proxy }),
    clock: Date.now,
    random: Math.random,
    onOutcome: signalMetrics(deps.registry, deps.sql),
  })
  deps.commits.subscribe(transmitter.poke)
  return transmitter
}

const LAGS = `
  select s.stream_id as stream, extract(epoch from now() - min(p.happened_at))::float8 as lag
  from signal_stream s join signal_pending p using (stream_id) where s.status = 'enabled'
  group by 1 order by 2 desc limit ${LAGGING_MAX}`
const STATES = 'select status, count(*)::int as streams from signal_stream group by 1'
const HELD = `
  select (select count(*)::int from signal_pending join signal_stream using (stream_id) where status = 'paused') as held,
    (select coalesce(sum(gap_count), 0)::float8 from signal_stream) as dropped,
    coalesce((select extract(epoch from now() - created_at) from outbox_arrival order by position limit 1), 0)::float8 as waiting`

/** Returns a function that counts outcomes of deliveries. */
export function signalMetrics(registry: Registry, sql: Queries): (outcome: DeliveryOutcome, count: number) => void {
  const registers = [registry]
  const attempts = new Counter({
    name: 'portcullis_signal_attempts_total',
    help: 'Security events sent to receivers by outcome: delivered, refused (dead letters), failed (tried again); paused: a stream was given up.',
    labelNames: ['outcome'],
    registers,
  })
  const fresh = sharedReading(READ_AGE_MS, read)
  const gauge = (name: string, help: string, labelNames: readonly string[] = []): Gauge =>
    new Gauge({ name, help, labelNames: [...labelNames], registers, collect: async () => void (await fresh()) })
  const lag = gauge(
    'portcullis_signal_lag_seconds',
    `Age of the oldest event that an enabled stream could not deliver, for the ${LAGGING_MAX} streams that lag most.`,
    ['stream'],
  )
  const oldest = gauge('portcullis_signal_oldest_undelivered_seconds', 'The largest lag of an enabled stream.')
  const streams = gauge('portcullis_signal_streams', 'Streams of receivers by status.', ['status'])
  const held = gauge('portcullis_signal_held', 'Security events that paused streams hold and that were tried before.')
  const dropped = gauge(
    'portcullis_signal_dropped',
    'Security events that streams lost because they were too old or too many to be held.',
  )
  const waiting = gauge(
    'portcullis_outbox_waiting_seconds',
    'Age of the oldest event that no PDP has taken up: each does so several times a second.',
  )

  async function read(): Promise<void> {
    const [lags, states, [sums]] = await Promise.all([
      sql.query<{ readonly stream: string; readonly lag: number }>(LAGS),
      sql.query<{ status: string; streams: number }>(STATES),
      sql.query<{ held: number; dropped: number; waiting: number }>(HELD),
    ])
    lag.reset()
    for (const row of lags) lag.set({ stream: row.stream }, row.lag)
    oldest.set(lags[0]?.lag ?? 0)
    streams.reset()
    for (const row of states) streams.set({ status: row.status }, row.streams)
    held.set(sums?.held ?? 0)
    dropped.set(sums?.dropped ?? 0)
    waiting.set(sums?.waiting ?? 0)
  }
  return (outcome, count) => attempts.inc({ outcome }, count)
}
