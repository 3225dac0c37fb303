/** What receivers must have been sent, by the outbox itself: nothing lost, nothing twice with other bytes, all in order. */
import { parseSet, parseSetClaims } from '../../../pdp/signals/set/set.ts'
import { jtiOf } from '../../../pdp/signals/transmitter/queue.ts'
import { masterKeys, type World } from './world.ts'

export type Event = { readonly seq: number; readonly organization: string | null; readonly atMs: number }
export type Verdict = {
  readonly expected: number
  readonly lost: number
  /** Sent again, with the bytes of the first time. */
  readonly repeated: number
  readonly otherBytes: number
  readonly unexpected: number
  readonly outOfOrder: number
  /** From the beginning of the write's transaction to the receiver, of each that arrived. */
  readonly delaysMs: readonly number[]
}

/** `atMs`: when the transaction of the write began. */
export const eventsAfter = (world: World, seq: number): Promise<readonly Event[]> =>
  world.opened.sql.query<Event>(
    `select seq, organization_id as organization, (extract(epoch from created_at) * 1000)::float8 as "atMs"
     from outbox where seq > $1 order by seq`,
    [seq],
  )

/** Of what these streams received since `from` SETs of each. */
export function judge(
  world: World,
  of: {
    readonly streams: ReadonlySet<string>
    readonly events: readonly Event[]
    readonly from: ReadonlyMap<string, number>
  },
): Verdict {
  const { streams, events, from } = of
  const sum = { expected: 0, lost: 0, repeated: 0, otherBytes: 0, unexpected: 0, outOfOrder: 0 }
  const delaysMs: number[] = []
  for (const [stream, organization] of world.streams) {
    if (!streams.has(stream)) continue
    const own = events.filter((event) => organization === '' || event.organization === organization)
    const places = new Map(own.map((event, at) => [jtiOf(masterKeys, stream, String(event.seq)), { event, at }]))
    const texts = new Map<string, string>()
    let last = -1
    sum.expected += own.length
    for (const { token, atMs } of world.receiver.received.get(stream)?.slice(from.get(stream) ?? 0) ?? []) {
      const { jti } = parseSetClaims(parseSet(token).payload)
      const place = places.get(jti)
      const before = texts.get(jti)
      texts.set(jti, before ?? token)
      if (place === undefined) sum.unexpected += 1
      else if (before !== undefined) sum[before === token ? 'repeated' : 'otherBytes'] += 1
      else {
        delaysMs.push(atMs - place.event.atMs)
        if (place.at < last) sum.outOfOrder += 1
        last = place.at
      }
    }
    sum.lost += own.length - [...places.keys()].filter((jti) => texts.has(jti)).length
  }
  return { ...sum, delaysMs }
}
