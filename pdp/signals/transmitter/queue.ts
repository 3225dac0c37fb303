/** What a stream has to send: security event tokens that are stored before they leave, so that a retry has the same bytes. */
import { createHmac } from 'node:crypto'
import type { JsonObject } from '../../domain/json.ts'
import type { MasterKeys } from '../../process/encryption.ts'
import type { Sql } from '../../store/directory.ts'
import { STREAM_EVENTS } from '../set/event-types.ts'
import { formatSubject, subjectsMatch } from '../set/subjects.ts'
import { type Audience, type Content, contentOf, eventsSupported, type OutboxRow } from './events.ts'
import type { Feed } from './feed.ts'
import { removedSubjects, type Stream } from './streams.ts'

type Queries = Pick<Sql, 'query'>
/** Signs claims as a SET with the active key, and names the key. */
export type SignSet = (claims: JsonObject) => Promise<{ readonly token: string; readonly kid: string }>
export type PendingSet = {
  readonly number: number
  readonly jti: string
  readonly kid: string
  readonly token: string
  readonly claims: JsonObject
}
export type QueueDeps = {
  readonly issuer: string
  readonly masterKeys: MasterKeys
  readonly signSet: SignSet
  /** Ids of the keys that receivers find at the issuer. */
  readonly publishedKids: () => ReadonlySet<string>
  readonly clock: () => number
}

/** Published bound: an event that a stream could not deliver for so long is dropped, and `stream-updated` says so. */
export const HELD_MS_MAX = 7 * 86_400_000
export const BATCH_MAX = 20
/** Events of others that are passed in one transaction. */
const PASSED_MAX = 5_000
const JTI_BYTES = 16
export const SIGNALS_PURPOSE = 'signals'

/** Without a wish, all that there are. */
export function eventsDelivered(
  issuer: string,
  { eventsRequested }: Pick<Stream, 'eventsRequested'>,
): readonly string[] {
  return eventsSupported(issuer).filter((type) => eventsRequested?.includes(type) ?? true)
}

/** The SETs to send next, in order, at most `countMax`. `stream`: its row is locked. `ahead`: also events not tried before. */
export async function nextSets(
  deps: QueueDeps,
  sql: Queries,
  { stream, feed, ahead, countMax }: { stream: Stream; feed: Pick<Feed, 'after'>; ahead: boolean; countMax: number },
): Promise<{ readonly sets: readonly PendingSet[]; readonly cursor: number; readonly more: boolean }> {
  const pending = await sql.query<PendingSet>(
    'select number, jti, kid, token, claims from signal_pending where stream_id = $1 order by number limit $2',
    [stream.id, countMax + 1],
  )
  const old = await Promise.all(pending.slice(0, countMax).map((set) => withPublishedKey(deps, sql, stream, set)))
  const free = countMax - old.length
  if (!ahead || free === 0 || pending.length > countMax)
    return { sets: old, cursor: stream.cursor, more: pending.length > countMax || (ahead && free === 0) }
  const found = await readAhead(deps, sql, { stream, feed, countMax: free })
  return { sets: [...old, ...found.sets], cursor: found.cursor, more: found.more }
}

/** While it was held, its key may have left the key set: then it is signed again, with the same claims and `jti`. */
async function withPublishedKey(deps: QueueDeps, sql: Queries, stream: Stream, set: PendingSet): Promise<PendingSet> {
  if (deps.publishedKids().has(set.kid)) return set
  const signed = await deps.signSet(set.claims)
  await sql.query('update signal_pending set kid = $3, token = $4 where stream_id = $1 and number = $2', [
    stream.id,
    set.number,
    signed.kid,
    signed.token,
  ])
  return { ...set, ...signed }
}

async function readAhead(
  deps: QueueDeps,
  sql: Queries,
  { stream, feed, countMax }: { stream: Stream; feed: Pick<Feed, 'after'>; countMax: number },
): Promise<{ readonly sets: readonly PendingSet[]; readonly cursor: number; readonly more: boolean }> {
  const audience = await audienceOf(deps.issuer, sql, stream)
  const removed = await removedSubjects(sql, stream.id)
  const drafts: Draft[] = []
  let lostCount = 0
  let lostBeforeMs = 0
  let cursor = stream.cursor
  let more = false
  for (let passed = 0; passed < PASSED_MAX && drafts.length < countMax; ) {
    const rows = await feed.after(cursor)
    more = rows.length > 0
    for (const row of rows) {
      if (drafts.length === countMax) break
      // Numbers have no gaps: what is missing was deleted from the outbox.
      const missing = row.seq - cursor - 1
      const isLate = row.atMs < deps.clock() - HELD_MS_MAX
      cursor = row.seq
      passed += 1
      const content = audience === null ? null : contentOf(deps.issuer, row, audience)
      const isLost = content !== null && isLate
      lostCount += missing + (isLost ? 1 : 0)
      if (missing > 0 || isLost) lostBeforeMs = row.atMs
      if (content === null || isLate || removed.some((subject) => subjectsMatch(subject, content.subject))) continue
      drafts.push({ content, row })
    }
    if (!more) break
  }
  const told = lostCount === 0 ? [] : [dropped(lostBeforeMs, stream)]
  const sets = await store(deps, sql, { stream, drafts: [...told, ...drafts] })
  await sql.query('update signal_stream set cursor_seq = $2, gap_count = gap_count + $3 where stream_id = $1', [
    stream.id,
    cursor,
    lostCount,
  ])
  return { sets, cursor, more }
}

/** Null: the client is gone. */
async function audienceOf(issuer: string, sql: Queries, stream: Stream): Promise<Audience | null> {
  const [client] = await sql.query<{ organization: string | null; app: string | null }>(
    'select organization_id as organization, app from client where client_id = $1',
    [stream.client],
  )
  if (client === undefined) return null
  return {
    bounds: [client.organization, stream.organization],
    app: client.app,
    subjectFormat: stream.subjectFormat,
    eventsDelivered: new Set(eventsDelivered(issuer, stream)),
  }
}

/** `row`: of the outbox; null for an event about the stream. */
type Draft = { readonly content: Content; readonly row: OutboxRow | null }

const aboutStream = (stream: Pick<Stream, 'id'>, type: string, members: JsonObject): Draft => ({
  content: { type, subject: { format: 'opaque', id: stream.id }, members },
  row: null,
})

function dropped(beforeMs: number, stream: Stream): Draft {
  const reason = `events before ${new Date(beforeMs).toISOString()} were dropped`
  return aboutStream(stream, STREAM_EVENTS.streamUpdated, { status: 'enabled', reason })
}

/** Puts an event about the stream at the end of what is stored, and returns its number. `stream`: its row is locked. */
export async function tellReceiver(
  deps: QueueDeps,
  sql: Queries,
  told: { readonly stream: Stream; readonly type: string; readonly members: JsonObject },
): Promise<PendingSet> {
  const { stream, type, members } = told
  const [set] = await store(deps, sql, { stream, drafts: [aboutStream(stream, type, members)] })
  if (set === undefined) throw new TypeError('an event about a stream was not stored')
  return set
}

async function store(
  deps: QueueDeps,
  sql: Queries,
  { stream, drafts }: { readonly stream: Stream; readonly drafts: readonly Draft[] },
): Promise<readonly PendingSet[]> {
  if (drafts.length === 0) return []
  const [last] = await sql.query<{ number: number }>(
    'update signal_stream set last_number = last_number + $2 where stream_id = $1 returning last_number as number',
    [stream.id, drafts.length],
  )
  const first = (last?.number ?? 0) - drafts.length + 1
  const sets = await Promise.all(
    drafts.map(async ({ content, row }, i) => {
      const number = first + i
      const jti = jtiOf(deps.masterKeys, stream.id, row === null ? `own ${number}` : String(row.seq))
      const claims: JsonObject = {
        iss: deps.issuer,
        aud: stream.client,
        iat: Math.floor(deps.clock() / 1_000),
        jti,
        txn: row === null ? jti : (row.txn ?? row.id),
        sub_id: jsonOf(formatSubject(content.subject)),
        events: { [content.type]: content.members },
      }
      return {
        number,
        jti,
        claims,
        seq: row?.seq ?? null,
        atMs: row?.atMs ?? deps.clock(),
        ...(await deps.signSet(claims)),
      }
    }),
  )
  await sql.query(
    `insert into signal_pending (stream_id, number, seq, jti, kid, claims, token, happened_at)
     select $1, q.number, q.seq, q.jti, q.kid, q.claims, q.token, to_timestamp(q.at / 1000)
     from unnest($2::bigint[], $3::bigint[], $4::text[], $5::text[], $6::jsonb[], $7::text[], $8::float8[])
       q(number, seq, jti, kid, claims, token, at)`,
    [
      stream.id,
      sets.map((set) => set.number),
      sets.map((set) => set.seq),
      sets.map((set) => set.jti),
      sets.map((set) => set.kid),
      sets.map((set) => JSON.stringify(set.claims)),
      sets.map((set) => set.token),
      sets.map((set) => set.atMs),
    ],
  )
  return sets
}

/** A function of stream and event: whatever is sent twice has one name, by which the receiver knows it. */
export function jtiOf(masterKeys: MasterKeys, stream: string, event: string): string {
  const [key] = masterKeys.derive(SIGNALS_PURPOSE)
  return createHmac('sha256', key)
    .update(`jti\0${stream}\0${event}`)
    .digest()
    .subarray(0, JTI_BYTES)
    .toString('base64url')
}

const jsonOf = (value: object): JsonObject => JSON.parse(JSON.stringify(value))
