/** Pushes what streams have to send. Any process may; the lease in the database lets one at a time deliver a stream. */
import { randomUUID } from 'node:crypto'
import type { Log } from '../../process/log.ts'
import type { Sql } from '../../store/directory.ts'
import type { GuardedPost } from '../outgoing/guarded-post.ts'
import { STREAM_EVENTS } from '../set/event-types.ts'
import { backoffMs, FAILING_MS_MAX } from './backoff.ts'
import type { Feed } from './feed.ts'
import { type PushOutcome, pushSet } from './push.ts'
import { BATCH_MAX, nextSets, type PendingSet, type QueueDeps, tellReceiver } from './queue.ts'
import { STREAM_COLUMNS, type Stream } from './streams.ts'

/** Longer than a batch with its last call: its holder stops before it ends. */
const LEASE_SECONDS = 30
const BATCH_MS_MAX = 15_000

export type DeliveryOutcome = PushOutcome['kind'] | 'paused'
export type DelivererDeps = QueueDeps & {
  readonly sql: Sql
  readonly feed: Pick<Feed, 'after'>
  readonly post: Pick<GuardedPost, 'post'>
  readonly openAuthorization: (stream: Pick<Stream, 'id' | 'authorizationSealed'>) => string | null
  readonly random: () => number
  readonly log: Log
  readonly onOutcome: (outcome: DeliveryOutcome) => void
}
/** `nothing`: another process has it, or there is nothing to send now. */
export type Round = 'more' | 'nothing' | 'failed'

type Leased = {
  readonly stream: Stream
  readonly lease: string
  readonly sets: readonly PendingSet[]
  readonly more: boolean
}

/** One batch of one stream. Throws PdpError `store_unavailable`; what was sent but not recorded is sent again. */
export async function deliverBatch(deps: DelivererDeps, id: string): Promise<Round> {
  const leased = await deps.sql.transaction((sql) => lease(deps, sql, id))
  if (leased === null) return 'nothing'
  const { stream, sets, more } = leased
  const untilMs = performance.now() + BATCH_MS_MAX
  const done: Done[] = []
  let failure: Extract<PushOutcome, { kind: 'failed' }> | null = null
  const authorization = deps.openAuthorization(stream)
  for (const set of sets) {
    if (performance.now() > untilMs) break
    const call = { url: stream.endpointUrl ?? '', authorization, token: set.token }
    const outcome = await pushSet(deps.post, call)
    deps.onOutcome(outcome.kind)
    note(deps, stream, { set, outcome })
    if (outcome.kind === 'failed') {
      failure = outcome
      break
    }
    done.push({ set, outcome })
  }
  await settle(deps, leased, { done, failure })
  if (failure !== null) return 'failed'
  return more || done.length < sets.length ? 'more' : 'nothing'
}

type Done = { readonly set: PendingSet; readonly outcome: Exclude<PushOutcome, { kind: 'failed' }> }

/** Null when there is nothing to do. A row that another process has locked is skipped, not waited for. */
async function lease(deps: DelivererDeps, sql: Pick<Sql, 'query'>, id: string): Promise<Leased | null> {
  const [stream] = await sql.query<Stream>(
    `select ${STREAM_COLUMNS} from signal_stream s where s.stream_id = $1 and s.endpoint_url is not null
       and (s.status = 'enabled' or s.status = 'paused' and s.announced_number is not null)
       and (s.lease_until is null or s.lease_until < now()) and (s.next_attempt_at is null or s.next_attempt_at <= now())
     for update skip locked`,
    [id],
  )
  if (stream === undefined) return null
  const isEnabled = stream.status === 'enabled'
  // After a failure one SET is tried, not a batch.
  const countMax = stream.attemptsCount > 0 ? 1 : BATCH_MAX
  const next = await nextSets(deps, sql, { stream, feed: deps.feed, ahead: isEnabled, countMax })
  const sets = next.sets.filter(({ number }) => isEnabled || number <= (stream.announcedNumber ?? 0))
  if (sets.length === 0) {
    if (!isEnabled) await sql.query('update signal_stream set announced_number = null where stream_id = $1', [id])
    return null
  }
  const name = randomUUID()
  await sql.query(
    `update signal_stream set lease_id = $2, lease_until = now() + make_interval(secs => ${LEASE_SECONDS}) where stream_id = $1`,
    [id, name],
  )
  return { stream, lease: name, sets, more: next.more || !isEnabled }
}

/** Records what was delivered, and ends the lease. A process that took over an ended lease finds its own. */
async function settle(
  deps: DelivererDeps,
  { stream, lease: name }: Leased,
  {
    done,
    failure,
  }: { readonly done: readonly Done[]; readonly failure: Extract<PushOutcome, { kind: 'failed' }> | null },
): Promise<void> {
  const refused = done.filter(({ outcome }) => outcome.kind === 'refused')
  const reason =
    failure?.reason ?? refused.map(({ outcome }) => ('reason' in outcome ? outcome.reason : '')).at(-1) ?? null
  const attempts = (done.length > 0 ? 0 : stream.attemptsCount) + (failure === null ? 0 : 1)
  const waitMs = failure === null ? 0 : Math.max(backoffMs(attempts, deps.random()), failure.retryAfterMs ?? 0)
  const failingSinceMs = done.length > 0 ? null : stream.failingSinceMs
  const isGivenUp = failure !== null && failingSinceMs !== null && deps.clock() - failingSinceMs >= FAILING_MS_MAX
  await deps.sql.transaction(async (sql) => {
    await sql.query('delete from signal_pending where stream_id = $1 and jti = any($2)', [
      stream.id,
      done.map(({ set }) => set.jti),
    ])
    await sql.query(
      `update signal_stream set dead_count = dead_count + $3, last_error = coalesce($2, last_error),
         last_error_at = case when $2::text is null then last_error_at else now() end,
         last_delivered_at = case when $4 then now() else last_delivered_at end where stream_id = $1`,
      [stream.id, reason, refused.length, done.length > refused.length],
    )
    await sql.query(
      `update signal_stream set lease_id = null, lease_until = null, attempts_count = $3,
         failing_since = case when $3 = 0 then null else to_timestamp($4::float8 / 1000) end,
         next_attempt_at = case when $3 = 0 then null else now() + make_interval(secs => $5::float8 / 1000) end
       where stream_id = $1 and lease_id = $2`,
      [stream.id, name, attempts, failingSinceMs ?? deps.clock(), waitMs],
    )
  })
  if (isGivenUp) await giveUp(deps, stream, reason ?? 'failed')
}

/**
 * Tells the receiver before the stream stops (SSF 1.0 section 8.1.5), once and outside the order, because what is before it
 * cannot be delivered. The status says so too.
 */
async function giveUp(deps: DelivererDeps, stream: Stream, lastReason: string): Promise<void> {
  const reason = `delivery failed for ${FAILING_MS_MAX / 3_600_000} hours: ${lastReason}`
  const told = await deps.sql.transaction(async (sql) => {
    const [row] = await sql.query<Stream>(
      `select ${STREAM_COLUMNS} from signal_stream s where s.stream_id = $1 and s.status = 'enabled' for update`,
      [stream.id],
    )
    if (row === undefined) return null
    const type = STREAM_EVENTS.streamUpdated
    const set = await tellReceiver(deps, sql, { stream: row, type, members: { status: 'paused', reason } })
    await sql.query('delete from signal_pending where stream_id = $1 and number = $2', [stream.id, set.number])
    return set
  })
  if (told === null) return
  const call = { url: stream.endpointUrl ?? '', authorization: deps.openAuthorization(stream), token: told.token }
  const outcome = await pushSet(deps.post, call)
  note(deps, stream, { set: told, outcome })
  await deps.sql.query(
    `update signal_stream set status = 'paused', status_reason = $2, announced_number = null, attempts_count = 0,
       failing_since = null, next_attempt_at = null where stream_id = $1 and status = 'enabled'`,
    [stream.id, reason],
  )
  deps.onOutcome('paused')
  deps.log.error({ event: 'signal_stream_paused', stream: stream.id, client: stream.client, reason })
}

/** The SET itself is not logged: it says who did what. */
function note(
  deps: DelivererDeps,
  { id: stream, client }: Stream,
  sent: { set: PendingSet; outcome: PushOutcome },
): void {
  const { outcome, set } = sent
  const line = { stream, client, jti: set.jti, outcome: outcome.kind }
  if (outcome.kind === 'failed' || outcome.kind === 'refused')
    deps.log.warn({ event: 'signal_not_delivered', ...line, reason: outcome.reason })
  else if (outcome.warning !== null) deps.log.warn({ event: 'signal_delivered', ...line, warning: outcome.warning })
  else deps.log.info({ event: 'signal_delivered', ...line })
}
