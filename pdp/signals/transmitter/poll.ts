/** Answers one poll (RFC 8936 section 2): takes acknowledgements, then reads the next SETs, in one transaction. */

import type { Queries, Sql } from '../../engine/store/directory.ts'
import type { Log } from '../../shared/process/log.ts'
import type { Feed } from './feed.ts'
import { receiversWords } from './push.ts'
import { nextSets, type QueueDeps } from './queue.ts'
import { type Receiver, readStream } from './streams.ts'

/** The most SETs of one answer. */
export const POLL_EVENTS_MAX = 100

export type PollBody = {
  readonly maxEvents?: number
  readonly returnImmediately?: boolean
  readonly ack?: readonly string[]
  readonly setErrs?: { readonly [jti: string]: { readonly err: string; readonly description?: string } }
}
export type PollAnswer = { readonly sets: { readonly [jti: string]: string }; readonly moreAvailable: boolean }
export type PollDeps = QueueDeps & {
  readonly sql: Sql
  readonly feed: Pick<Feed, 'fresh'>
  readonly log: Log
  readonly onOutcome: (outcome: 'delivered' | 'refused', count: number) => void
}

const NOTHING: PollAnswer = { sets: {}, moreAvailable: false }

/** The answer to a poll; null: the stream is unknown, another receiver's, or pushed. */
export async function pollStream(
  deps: PollDeps,
  receiver: Receiver,
  { id, body }: { readonly id: string; readonly body: PollBody },
): Promise<PollAnswer | null> {
  const refusals = Object.entries(body.setErrs ?? {})
  const polled = await deps.sql.transaction(async (sql) => {
    const stream = await readStream(sql, receiver, { id, lock: true })
    if (stream === null || stream.endpointUrl !== null) return null
    const acknowledged = await forget(sql, id, body.ack ?? [])
    const refused = await forget(
      sql,
      id,
      refusals.map(([jti]) => jti),
    )
    if (acknowledged.length + refused.length > 0) await record(sql, id, { refused, refusals })
    const settled = { id, client: stream.client, acknowledged, refused, refusals }
    const isEnabled = stream.status === 'enabled'
    const isAnnouncing = stream.status === 'paused' && stream.announcedNumber !== null
    const countMax = Math.min(body.maxEvents ?? POLL_EVENTS_MAX, POLL_EVENTS_MAX)
    if (countMax === 0 || (!isEnabled && !isAnnouncing)) return { settled, answer: NOTHING }
    const ahead = isEnabled ? { after: deps.feed.fresh, upTo: Number.MAX_SAFE_INTEGER } : null
    const [next] = await nextSets(deps, sql, [{ stream: { ...stream, lease: null }, ahead, countMax }])
    if (next === undefined || next === null) throw new TypeError('a stream moved under its lock')
    const { sets, more } = next
    const sent = sets.filter(({ number }) => isEnabled || number <= (stream.announcedNumber ?? 0))
    const texts = Object.fromEntries(sent.map(({ jti, token }) => [jti, token]))
    return { settled, answer: { sets: texts, moreAvailable: isEnabled && more } }
  })
  if (polled === null) return null
  report(deps, polled.settled)
  return polled.answer
}

/** Deletes acknowledged SETs, and returns their ids. An unknown id was acknowledged before, and is ignored. */
async function forget(sql: Queries, id: string, jtis: readonly string[]): Promise<readonly string[]> {
  if (jtis.length === 0) return []
  const rows = await sql.query<{ jti: string }>(
    'delete from signal_pending where stream_id = $1 and jti = any($2) returning jti',
    [id, jtis],
  )
  return rows.map(({ jti }) => jti)
}

type Refusals = readonly (readonly [jti: string, { readonly err: string; readonly description?: string }])[]

async function record(
  sql: Queries,
  id: string,
  { refused, refusals }: { readonly refused: readonly string[]; readonly refusals: Refusals },
): Promise<void> {
  const last = refusals.findLast(([jti]) => refused.includes(jti))
  const reason = last === undefined ? null : receiversWords(last[1].err, last[1].description)
  await sql.query(
    `update signal_stream set last_delivered_at = now(), dead_count = dead_count + $2, last_error = coalesce($3, last_error),
       last_error_at = case when $3::text is null then last_error_at else now() end where stream_id = $1`,
    [id, refused.length, reason],
  )
}

function report(
  { log, onOutcome }: PollDeps,
  of: {
    readonly id: string
    readonly client: string
    readonly acknowledged: readonly string[]
    readonly refused: readonly string[]
    readonly refusals: Refusals
  },
): void {
  const common = { stream: of.id, client: of.client }
  for (const jti of of.acknowledged) log.info({ event: 'signal_delivered', ...common, jti, outcome: 'delivered' })
  for (const [jti, { err, description }] of of.refusals)
    if (of.refused.includes(jti)) {
      const reason = receiversWords(err, description)
      log.warn({ event: 'signal_not_delivered', ...common, jti, outcome: 'refused', reason })
    }
  if (of.acknowledged.length > 0) onOutcome('delivered', of.acknowledged.length)
  if (of.refused.length > 0) onOutcome('refused', of.refused.length)
}
