/** Of the outbox, what comes next for one stream. */
import type { JsonObject } from '../../shared/domain/json.ts'
import { STREAM_EVENTS } from '../set/event-types.ts'
import { type SubjectIdentifier, subjectsMatch } from '../set/subjects.ts'
import { type Audience, type Content, contentOf, type OutboxRow } from './events.ts'
import type { Stream } from './streams.ts'

/** Published bound: an event that a stream could not deliver for so long is dropped, and `stream-updated` says so. */
export const HELD_MS_MAX = 7 * 86_400_000
/** Events of others that are passed at once. */
const PASSED_MAX = 5_000

export type Ahead = {
  /** Events with numbers after this one, in order; [] at the end. */
  after(seq: number): Promise<readonly OutboxRow[]>
  /** The last number that counts: what is younger than the reading of the stream's settings waits for the next one. */
  readonly upTo: number
}
/** `row`: of the outbox; null for an event about the stream. */
export type Draft = { readonly content: Content; readonly row: OutboxRow | null }

export const aboutStream = (stream: Pick<Stream, 'id'>, type: string, members: JsonObject): Draft => ({
  content: { type, subject: { format: 'opaque', id: stream.id }, members },
  row: null,
})

/** Which events are a stream's. */
export type Listener = {
  /** Null: the client is gone. */
  readonly audience: Audience | null
  /** What the receiver wants to hear nothing about. */
  readonly removed: readonly SubjectIdentifier[]
}

/** At most `countMax` events of the stream, in order, and one more about the stream when some were dropped. */
export async function readAhead(
  of: Listener & {
    readonly issuer: string
    readonly stream: Stream
    readonly ahead: Ahead
    readonly nowMs: number
    readonly countMax: number
  },
): Promise<{
  readonly drafts: readonly Draft[]
  readonly cursor: number
  readonly lostCount: number
  readonly more: boolean
}> {
  const { audience, ahead, removed, countMax } = of
  const drafts: Draft[] = []
  let { cursor } = of.stream
  let lostCount = 0
  let lostBeforeMs = 0
  let more = true
  for (let passed = 0; more && passed < PASSED_MAX && drafts.length < countMax; ) {
    const next = cursor < ahead.upTo ? await ahead.after(cursor) : []
    const rows = next.filter(({ seq }) => seq <= ahead.upTo)
    more = rows.length > 0
    for (const row of rows) {
      if (drafts.length === countMax) break
      // Numbers have no gaps: what is missing was deleted from the outbox.
      const missing = row.seq - cursor - 1
      const isLate = row.atMs < of.nowMs - HELD_MS_MAX
      cursor = row.seq
      passed += 1
      const content = audience === null ? null : contentOf(of.issuer, row, audience)
      const isLost = content !== null && isLate
      lostCount += missing + (isLost ? 1 : 0)
      if (missing > 0 || isLost) lostBeforeMs = row.atMs
      if (content === null || isLate || removed.some((subject) => subjectsMatch(subject, content.subject))) continue
      drafts.push({ content, row })
    }
  }
  return { drafts: lostCount === 0 ? drafts : [dropped(lostBeforeMs, of.stream), ...drafts], cursor, lostCount, more }
}

export function dropped(beforeMs: number, stream: Stream): Draft {
  const reason = `events before ${new Date(beforeMs).toISOString()} were dropped`
  return aboutStream(stream, STREAM_EVENTS.streamUpdated, { status: 'enabled', reason })
}
