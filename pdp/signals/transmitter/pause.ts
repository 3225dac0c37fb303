/** Pauses a stream that cannot go on. First its receiver gets an event about it (SSF 1.0 section 8.1.5); the status tells the reason. */

import type { Queries, Sql } from '../../engine/store/directory.ts'
import type { GuardedPost } from '../../shared/base/guarded-post.ts'
import type { Log } from '../../shared/process/log.ts'
import { STREAM_EVENTS } from '../set/event-types.ts'
import { type PushOutcome, pushSet } from './push.ts'
import { type PendingSet, type QueueDeps, tellReceiver } from './queue.ts'
import { lockStream, type Stream } from './streams.ts'

export type PauseDeps = QueueDeps & {
  readonly sql: Sql
  readonly post: Pick<GuardedPost, 'post'>
  readonly openAuthorization: (stream: Pick<Stream, 'id' | 'authorizationSealed'>) => string | null
  readonly log: Log
  readonly onOutcome: (outcome: PushOutcome['kind'] | 'paused') => void
}

export async function pauseStream(deps: PauseDeps, { id }: Pick<Stream, 'id'>, reason: string): Promise<void> {
  const told = await deps.sql.transaction(async (sql) => {
    const stream = await lockStream(sql, id)
    if (stream?.status !== 'enabled') return null
    const members = { status: 'paused', reason }
    const set = await tellReceiver(deps, sql, { stream, type: STREAM_EVENTS.streamUpdated, members })
    if (stream.endpointUrl === null) await stop(sql, id, { reason, announced: set.number })
    // The event is sent only once and before others, since the SETs ahead of it cannot be delivered.
    else await sql.query('delete from signal_pending where stream_id = $1 and number = $2', [id, set.number])
    return { set, stream }
  })
  if (told === null) return
  const { set, stream } = told
  if (stream.endpointUrl !== null) {
    const call = { url: stream.endpointUrl, authorization: deps.openAuthorization(stream), token: set.token }
    noteOutcome(deps, stream, { set, outcome: await pushSet(deps.post, call) })
    await stop(deps.sql, id, { reason, announced: null })
  }
  deps.onOutcome('paused')
  deps.log.error({ event: 'signal_stream_paused', stream: id, client: stream.client, reason })
}

const stop = (
  sql: Queries,
  id: string,
  { reason, announced }: { readonly reason: string; readonly announced: number | null },
) =>
  sql.query(
    `update signal_stream set status = 'paused', status_reason = $2, announced_number = $3, attempts_count = 0,
       failing_since = null, next_attempt_at = null where stream_id = $1 and status = 'enabled'`,
    [id, reason, announced],
  )

/** Logs the outcome without the SET, which contains who did what. */
export function noteOutcome(
  { log }: { readonly log: Log },
  { id: stream, client }: Pick<Stream, 'id' | 'client'>,
  { outcome, set }: { readonly set: PendingSet; readonly outcome: PushOutcome },
): void {
  const line = { stream, client, jti: set.jti, outcome: outcome.kind }
  if (outcome.kind === 'failed' || outcome.kind === 'refused')
    log.warn({ event: 'signal_not_delivered', ...line, reason: outcome.reason })
  else if (outcome.warning !== null) log.warn({ event: 'signal_delivered', ...line, warning: outcome.warning })
  else log.info({ event: 'signal_delivered', ...line })
}
