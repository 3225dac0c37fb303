/** Pushes what streams have to send. Any process may; turns (turns.ts) let one at a time deliver a stream. */
import type { Log } from '../../process/log.ts'
import type { Sql } from '../../store/directory.ts'
import type { GuardedPost } from '../outgoing/guarded-post.ts'
import { STREAM_EVENTS } from '../set/event-types.ts'
import { backoffMs, FAILING_MS_MAX } from './backoff.ts'
import type { Feed } from './feed.ts'
import { type PushOutcome, pushSet } from './push.ts'
import { type PendingSet, type QueueDeps, tellReceiver } from './queue.ts'
import { STREAM_COLUMNS, type Stream } from './streams.ts'
import { createTurns, type Turn, type Turns } from './turns.ts'

/** With the last call, shorter than the lease of a turn. */
const BATCH_MS_MAX = 15_000

export type DeliveryOutcome = PushOutcome['kind'] | 'paused'
export type DelivererDeps = QueueDeps & {
  readonly sql: Sql
  readonly feed: Pick<Feed, 'after' | 'newest'>
  readonly post: Pick<GuardedPost, 'post'>
  readonly openAuthorization: (stream: Pick<Stream, 'id' | 'authorizationSealed'>) => string | null
  readonly random: () => number
  readonly log: Log
  readonly onOutcome: (outcome: DeliveryOutcome) => void
}
/** `nothing`: another process has it, or there is nothing to send now. */
export type Round = 'more' | 'nothing' | 'failed'
/**
 * One batch of one stream. `wanted`: the number of its newest event that is known. Throws PdpError `store_unavailable`; what was
 * sent but not recorded is sent again.
 */
export type Deliver = (id: string, wanted: number) => Promise<Round>

export function createDeliverer(deps: DelivererDeps): Deliver {
  const turns = createTurns(deps)
  return async (id, wanted) => {
    const turn = await turns.take(id, wanted)
    return turn === null ? 'nothing' : deliver(deps, turns, turn)
  }
}

async function deliver(deps: DelivererDeps, turns: Turns, turn: Turn): Promise<Round> {
  const { stream, sets, more } = turn
  const untilMs = performance.now() + BATCH_MS_MAX
  const done: Done[] = []
  let failure: Failure | null = null
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
  await settle(deps, turns, { stream, done, failure })
  if (failure !== null) return 'failed'
  return more || done.length < sets.length ? 'more' : 'nothing'
}

type Failure = Extract<PushOutcome, { kind: 'failed' }>
type Done = { readonly set: PendingSet; readonly outcome: Exclude<PushOutcome, { kind: 'failed' }> }

async function settle(
  deps: DelivererDeps,
  turns: Turns,
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
  await turns.end({
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
