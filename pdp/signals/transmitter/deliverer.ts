/** Pushes the SETs of streams. Every process may do it; a lease in the database lets one process at a time deliver a stream. */

import { randomUUID } from 'node:crypto'
import { Batcher } from '../../engine/store/batcher.ts'
import type { Queries } from '../../engine/store/directory.ts'
import type { Feed } from './feed.ts'
import { noteOutcome, type PauseDeps, pauseStream } from './pause.ts'
import { type PushOutcome, pushSet } from './push.ts'
import { nextSets, type PendingSet, type QueueDeps } from './queue.ts'
import { backoffMs, FAILING_MS_MAX } from './retries.ts'
import { STREAM_COLUMNS, type Stream } from './streams.ts'

/** How long a batch may take before its last call; with that call, it is shorter than the lease. */
const BATCH_MS_MAX = 5_000

export type DeliveryOutcome = PushOutcome['kind'] | 'paused'
export type DelivererDeps = PauseDeps & {
  readonly feed: Pick<Feed, 'after' | 'newest'>
  readonly random: () => number
}
/**
 * Delivers a batch of a stream. `wanted`: the number of the newest event known for it. `nothing`: another process has the lease, or no SET
 * is due. Throws PdpError `store_unavailable`; SETs that were sent but not recorded are sent again.
 */
export type Deliver = (id: string, wanted: number) => Promise<'more' | 'nothing' | 'failed'>

export function createDeliverer(deps: DelivererDeps): Deliver {
  const leases = createLeases(deps)
  return async (id, wanted) => {
    const leased = await leases.take(id, wanted)
    return leased === null ? 'nothing' : deliver(deps, leases, leased)
  }
}

async function deliver(
  deps: DelivererDeps,
  leases: ReturnType<typeof createLeases>,
  leased: Leased,
): ReturnType<Deliver> {
  const { stream, sets, more } = leased
  const untilMs = performance.now() + BATCH_MS_MAX
  const done: Done[] = []
  let failure: Failure | null = null
  const authorization = deps.openAuthorization(stream)
  for (const set of sets) {
    if (performance.now() > untilMs) break
    const call = { url: stream.endpointUrl ?? '', authorization, token: set.token }
    const outcome = await pushSet(deps.post, call)
    deps.onOutcome(outcome.kind)
    noteOutcome(deps, stream, { set, outcome })
    if (outcome.kind === 'failed') {
      failure = outcome
      break
    }
    done.push({ set, outcome })
  }
  await settle(deps, leases, { stream, done, failure })
  if (failure !== null) return 'failed'
  return more || done.length < sets.length ? 'more' : 'nothing'
}

type Failure = Extract<PushOutcome, { kind: 'failed' }>
type Done = { readonly set: PendingSet; readonly outcome: Exclude<PushOutcome, { kind: 'failed' }> }

async function settle(
  deps: DelivererDeps,
  leases: ReturnType<typeof createLeases>,
  {
    stream,
    done,
    failure,
  }: { readonly stream: Stream; readonly done: readonly Done[]; readonly failure: Failure | null },
): Promise<void> {
  const reasons = done.flatMap(({ outcome }) => (outcome.kind === 'refused' ? [outcome.reason] : []))
  const reason = failure?.reason ?? reasons.at(-1) ?? null
  const attempts = (done.length > 0 ? 0 : stream.attemptsCount) + (failure === null ? 0 : 1)
  const failingSinceMs = done.length > 0 ? null : stream.failingSinceMs
  await leases.end({
    stream,
    jtis: done.map(({ set }) => set.jti),
    refusedCount: reasons.length,
    isDelivered: done.length > reasons.length,
    error: reason,
    attempts,
    failingSinceMs: failingSinceMs ?? deps.clock(),
    waitMs: failure === null ? 0 : Math.max(backoffMs(attempts, deps.random()), failure.retryAfterMs ?? 0),
  })
  const isGivenUp = failure !== null && failingSinceMs !== null && deps.clock() - failingSinceMs >= FAILING_MS_MAX
  if (isGivenUp)
    await pauseStream(deps, stream, `delivery failed for ${FAILING_MS_MAX / 3_600_000} hours: ${reason ?? 'failed'}`)
}

/** How long a lease lasts: longer than a batch with its last call, so that its holder ends before it. */
const LEASE_SECONDS = 16
/** How many SETs a stream's turn has, and all turns that are taken together: the first must not wait for too many signatures. */
const BATCH_MAX = 20
const SETS_MAX = 100
const TAKEN_MAX = 50
const ENDED_MAX = 200

type Leased = { readonly stream: Stream; readonly sets: readonly PendingSet[]; readonly more: boolean }
/** The result of a turn. `jtis`: SETs that must not be sent again. */
type Ended = {
  readonly stream: Stream
  readonly jtis: readonly string[]
  readonly refusedCount: number
  readonly isDelivered: boolean
  readonly error: string | null
  readonly attempts: number
  readonly failingSinceMs: number
  readonly waitMs: number
}

// A row that another process has locked is skipped, not waited for.
const TAKE = `
  with due as materialized (
    select c.stream_id from unnest($1::text[], $2::bigint[]) a(id, wanted) join signal_stream c on c.stream_id = a.id
    where c.endpoint_url is not null and (c.status = 'enabled' or c.status = 'paused' and c.announced_number is not null)
      and (c.lease_until is null or c.lease_until < now()) and (c.next_attempt_at is null or c.next_attempt_at <= now())
      and (c.announced_number is not null or c.cursor_seq < a.wanted
        or exists (select 1 from signal_pending p where p.stream_id = c.stream_id))
    for update of c skip locked)
  update signal_stream s set lease_id = $3, lease_until = now() + make_interval(secs => ${LEASE_SECONDS})
  from due where s.stream_id = due.stream_id returning ${STREAM_COLUMNS}`
// A paused stream still delivers everything up to the event that announced the pause.
const GIVE_BACK = `
  update signal_stream s set lease_id = null, lease_until = null,
    announced_number = case when s.status = 'paused' and s.announced_number = q.announced then null else s.announced_number end
  from unnest($1::text[], $2::bigint[]) q(id, announced) where s.stream_id = q.id and s.lease_id = $3`
// Locks streams' rows before SETs', in the same order as everywhere, to prevent deadlocks.
const END = `
  with locked as materialized (
    select s.stream_id from signal_stream s where s.stream_id = any($1) order by s.stream_id for update),
  gone as (
    delete from signal_pending p using locked l, unnest($9::text[], $10::text[]) d(id, jti)
    where l.stream_id = d.id and p.stream_id = d.id and p.jti = d.jti)
  update signal_stream s set dead_count = dead_count + q.refused, last_error = coalesce(q.error, last_error),
    last_error_at = case when q.error is null then last_error_at else now() end,
    last_delivered_at = case when q.delivered then now() else last_delivered_at end,
    lease_id = case when s.lease_id = q.lease then null else s.lease_id end,
    lease_until = case when s.lease_id = q.lease then null else lease_until end,
    attempts_count = case when s.lease_id = q.lease then q.attempts else attempts_count end,
    failing_since = case when s.lease_id is distinct from q.lease then failing_since
      when q.attempts > 0 then to_timestamp(q.since / 1000) end,
    next_attempt_at = case when s.lease_id is distinct from q.lease then next_attempt_at
      when q.attempts > 0 then now() + make_interval(secs => q.wait / 1000) end
  from locked l join unnest($1::text[], $2::text[], $3::int[], $4::bool[], $5::text[], $6::int[], $7::float8[], $8::float8[])
    q(id, lease, refused, delivered, error, attempts, since, wait) on q.id = l.stream_id
  where s.stream_id = l.stream_id`

type Ask = { readonly id: string; readonly wanted: number; done(turn: Leased | null): void; fail(error: unknown): void }
type End = { readonly ended: Ended; done(): void; fail(error: unknown): void }

function createLeases(deps: QueueDeps & { readonly sql: Queries; readonly feed: Pick<Feed, 'after' | 'newest'> }) {
  const takes = new Batcher<Ask>({
    runningMax: 2,
    itemsMax: TAKEN_MAX,
    schedule: setImmediate,
    run: (asks) => takeAll(deps, asks),
    fail: (ask, error) => ask.fail(error),
  })
  const ends = new Batcher<End>({
    runningMax: 1,
    itemsMax: ENDED_MAX,
    schedule: setImmediate,
    run: (all) => endAll(deps.sql, all),
    fail: (end, error) => end.fail(error),
  })
  return {
    /** Takes the lease; null: another process has it, or no SET is due. `wanted`: as in Deliver. */
    take: (id: string, wanted: number) =>
      new Promise<Leased | null>((done, fail) => takes.add({ id, wanted, done, fail })),
    /** Records what was delivered, and gives the lease back, unless another process has taken it over meanwhile. */
    end: (ended: Ended) => new Promise<void>((done, fail) => ends.add({ ended, done, fail })),
  }
}

async function takeAll(deps: Parameters<typeof createLeases>[0], asks: readonly Ask[]): Promise<void> {
  const { sql, feed } = deps
  const ahead = { after: feed.after, upTo: feed.newest() }
  const lease = randomUUID()
  const asked = [asks.map(({ id }) => id), asks.map(({ wanted }) => wanted), lease]
  const streams = await sql.query<Stream>(TAKE, asked)
  const countMax = Math.max(1, Math.min(BATCH_MAX, Math.floor(SETS_MAX / Math.max(1, streams.length))))
  const isEnabled = ({ status }: Stream): boolean => status === 'enabled'
  try {
    const found = await nextSets(
      deps,
      sql,
      streams.map((stream) => ({
        stream,
        ahead: isEnabled(stream) ? ahead : null,
        // After a failure, one SET is tried instead of a batch.
        countMax: stream.attemptsCount > 0 ? 1 : countMax,
      })),
    )
    const leases = new Map<string, Leased>()
    for (const [at, stream] of streams.entries()) {
      const next = found[at] ?? null
      const sets = next?.sets.filter(({ number }) => isEnabled(stream) || number <= (stream.announcedNumber ?? 0)) ?? []
      if (next !== null && sets.length > 0)
        leases.set(stream.id, { stream, sets, more: next.more || !isEnabled(stream) })
    }
    await giveBack(
      sql,
      streams.filter(({ id }) => !leases.has(id)),
    )
    for (const ask of asks) ask.done(leases.get(ask.id) ?? null)
  } catch (err) {
    // The leases must be free, because the Batcher repeats the other streams without the failed one.
    await giveBack(
      sql,
      streams.map((stream) => ({ ...stream, announcedNumber: null })),
    )
    throw err
  }
}

async function giveBack(sql: Queries, streams: readonly Stream[]): Promise<void> {
  const [first] = streams
  if (first === undefined) return
  const [ids, announced] = [streams.map(({ id }) => id), streams.map(({ announcedNumber }) => announcedNumber)]
  await sql.query(GIVE_BACK, [ids, announced, first.lease])
}

async function endAll(sql: Queries, all: readonly End[]): Promise<void> {
  const ended = all.map((one) => one.ended)
  const done = ended.flatMap(({ stream, jtis }) => jtis.map((jti) => ({ id: stream.id, jti })))
  await sql.query(END, [
    ended.map(({ stream }) => stream.id),
    ended.map(({ stream }) => stream.lease),
    ended.map(({ refusedCount }) => refusedCount),
    ended.map(({ isDelivered }) => isDelivered),
    ended.map(({ error }) => error),
    ended.map(({ attempts }) => attempts),
    ended.map(({ failingSinceMs }) => failingSinceMs),
    ended.map(({ waitMs }) => waitMs),
    done.map(({ id }) => id),
    done.map(({ jti }) => jti),
  ])
  for (const one of all) one.done()
}
