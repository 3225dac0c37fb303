/** Keeps the events that a stream stores for an absent receiver within the published bound. */
import type { Queries } from '../../engine/store/directory.ts'
import type { Feed } from './feed.ts'
import { type PauseDeps, pauseStream } from './pause.ts'
import { dropped, listenerOf, readAhead, tellReceiver } from './queue.ts'
import { lockStream, STREAM_COLUMNS, type Stream } from './streams.ts'

/** Published bound: an enabled stream that holds more is paused, and a paused one loses the oldest of them. */
export const HELD_MAX = 100_000
/** How many seconds a receiver has to take stored events after its stream is enabled. */
const LEFT_SECONDS = 3_600
/** Events are dropped beyond the bound times this factor, so that one notice covers many. */
const SLACK = 1.1

export type HeldDeps = PauseDeps & {
  readonly feed: Pick<Feed, 'after' | 'newest'>
  readonly heldMax: number
}
/** `isLeft`: true if the receiver took nothing for LEFT_SECONDS after the stream was enabled. */
const HELD_COLUMNS = `${STREAM_COLUMNS}, s.held_from as "heldFrom", s.held_seq as "heldSeq", s.held_count as "heldCount",
  greatest(s.created_at, s.enabled_at, s.last_delivered_at) < now() - make_interval(secs => ${LEFT_SECONDS}) as "isLeft"`

/** Goes on counting stored events, and pauses the stream or drops events if there are too many. False: more are to be counted. */
export async function lookAtHeld(deps: HeldDeps, id: string): Promise<boolean> {
  const { sql, feed, heldMax } = deps
  const ahead = { after: feed.after, upTo: feed.newest() }
  const [stream] = await sql.query<
    Stream & { heldFrom: number | null; heldSeq: number; heldCount: number; isLeft: boolean }
  >(`select ${HELD_COLUMNS} from signal_stream s where s.stream_id = $1`, [id])
  if (stream === undefined) return true
  const listener = await listenerOf(deps.issuer, sql, stream)
  const read = async (from: number, countMax: number) => {
    const common = { issuer: deps.issuer, ...listener, ahead, nowMs: deps.clock(), countMax }
    const { drafts, cursor, more } = await readAhead({ ...common, stream: { ...stream, cursor: from } })
    return { count: drafts.filter(({ row }) => row !== null).length, cursor, more }
  }
  const before = stream.heldFrom === stream.cursor ? stream : { heldSeq: stream.cursor, heldCount: 0 }
  const news = await read(before.heldSeq, Number.MAX_SAFE_INTEGER)
  const count = before.heldCount + news.count
  await sql.query(
    `update signal_stream set held_from = $2, held_seq = $3, held_count = $4
     where stream_id = $1 and cursor_seq = $2 and (held_from is distinct from $2 or held_seq < $3)`,
    [id, stream.cursor, news.cursor, count],
  )
  if (news.more) return false
  if (stream.status === 'enabled' && stream.isLeft && count > heldMax)
    await pauseStream(deps, stream, `more than ${heldMax} events are held`)
  if (stream.status === 'paused' && count > heldMax * SLACK) {
    let [cursor, lost] = [stream.cursor, 0]
    for (let more = true; more && lost < count - heldMax; ) {
      const oldest = await read(cursor, count - heldMax - lost)
      more = oldest.more
      cursor = oldest.cursor
      lost += oldest.count
    }
    await drop(deps, stream, { cursor, lost })
  }
  return true
}

/** Drops the oldest events and stores an event about it, which the receiver gets before the remaining ones. */
async function drop(
  deps: HeldDeps,
  { id, cursor: before }: Stream,
  { cursor, lost }: { readonly cursor: number; readonly lost: number },
): Promise<void> {
  await deps.sql.transaction(async (sql) => {
    const stream = await lockStream(sql, id)
    if (stream?.status !== 'paused' || stream.cursor !== before) return
    const [last] = await sql.query<{ atMs: number }>(
      'select (extract(epoch from created_at) * 1000)::float8 as "atMs" from outbox where seq = $1',
      [cursor],
    )
    const { type, members } = dropped(last?.atMs ?? deps.clock(), stream).content
    await tellReceiver(deps, sql, { stream, type, members })
    await moveOn(sql, id, { cursor, lost })
  })
}

const moveOn = (sql: Queries, id: string, of: { readonly cursor: number; readonly lost: number }) =>
  sql.query(
    `update signal_stream set cursor_seq = $2, gap_count = gap_count + $3,
       held_from = case when held_from = cursor_seq and held_seq >= $2 then $2 end, held_count = greatest(0, held_count - $3)
     where stream_id = $1`,
    [id, of.cursor, of.lost],
  )
