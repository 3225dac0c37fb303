/** The SETs to send on a stream. They are stored first, so that a repetition has the same bytes. */
import { createHmac } from 'node:crypto'
import type { Queries } from '../../engine/store/directory.ts'
import type { MasterKeys } from '../../shared/base/encryption.ts'
import type { JsonObject } from '../../shared/domain/json.ts'
import { STREAM_EVENTS } from '../set/event-types.ts'
import { formatSubject, parseSubject, type SubjectIdentifier, subjectsMatch } from '../set/subjects.ts'
import { type Audience, audienceOf, type Content, contentOf, type OutboxRow } from './events.ts'
import type { Stream } from './streams.ts'

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
  /** Ids of the keys that the issuer publishes for receivers. */
  readonly publishedKids: () => ReadonlySet<string>
  /** Milliseconds since the epoch. */
  readonly clock: () => number
}

const JTI_BYTES = 16
const SIGNALS_PURPOSE = 'signals'

/** `ahead`: the source of further events; null: only SETs that are stored already. */
export type SetsQuery = { readonly stream: Stream; readonly ahead: Ahead | null; readonly countMax: number }

const READ = `
  select q.id,
    (select json_build_object('organization', c.organization_id, 'app', c.app) from client c where c.client_id = q.client) as client,
    (select coalesce(json_agg(p order by p.number), '[]') from (
      select number, jti, kid, token, claims from signal_pending where stream_id = q.id order by number limit q.count) p) as pending,
    (select coalesce(json_agg(subject), '[]') from signal_removed_subject r where r.stream_id = q.id) as removed
  from unnest($1::text[], $2::text[], $3::int[]) q(id, client, count)`
type Row = {
  readonly id: string
  readonly client: { readonly organization: string | null; readonly app: string | null } | null
  readonly pending: readonly PendingSet[]
  readonly removed: readonly JsonObject[]
}

/**
 * The next SETs of each stream, in order, at most `countMax`. The caller must hold the lock of the stream's row, or its lease;
 * null when it has lost the lease, or the stream was changed meanwhile.
 */
export async function nextSets(
  deps: QueueDeps,
  sql: Queries,
  asked: readonly SetsQuery[],
): Promise<readonly ({ readonly sets: readonly PendingSet[]; readonly more: boolean } | null)[]> {
  const rows = await sql.query<Row>(READ, [
    asked.map(({ stream }) => stream.id),
    asked.map(({ stream }) => stream.client),
    asked.map(({ countMax }) => countMax + 1),
  ])
  const found = new Map(rows.map((row) => [row.id, row]))
  const drawn: Awaited<ReturnType<typeof draw>>[] = []
  for (const one of asked) drawn.push(await draw(deps, sql, { ...one, row: found.get(one.stream.id) }))
  const stored = await store(sql, drawn)
  return drawn.map((one) => (stored.has(one.stream.id) ? { sets: [...one.old, ...one.sets], more: one.more } : null))
}

/** Reads the facts that decide which events the stream gets. */
export async function listenerOf(issuer: string, sql: Queries, stream: Stream): Promise<Listener> {
  const [row] = await sql.query<Row>(READ, [[stream.id], [stream.client], [0]])
  return asListener(issuer, stream, row)
}

function asListener(issuer: string, stream: Stream, row: Row | undefined): Listener {
  const client = row?.client ?? null
  return {
    audience: client && audienceOf(issuer, stream, client),
    removed: (row?.removed ?? []).map((subject) => parseSubject(subject)),
  }
}

async function draw(
  deps: QueueDeps,
  sql: Queries,
  { stream, ahead, countMax, row }: SetsQuery & { readonly row: Row | undefined },
): Promise<Move & { readonly old: readonly PendingSet[]; readonly more: boolean }> {
  const pending = row?.pending ?? []
  const old = await Promise.all(pending.slice(0, countMax).map((set) => withPublishedKey(deps, sql, stream, set)))
  const free = countMax - old.length
  const none = { stream, old, cursor: stream.cursor, lostCount: 0, sets: [] }
  if (ahead === null || free === 0 || pending.length > countMax)
    return { ...none, more: pending.length > countMax || (ahead !== null && free === 0) }
  const listener = asListener(deps.issuer, stream, row)
  const common = { issuer: deps.issuer, stream, ahead, nowMs: deps.clock(), countMax: free }
  const read = await readAhead({ ...common, ...listener })
  const { cursor, lostCount, more } = read
  return { stream, old, cursor, lostCount, more, sets: await signed(deps, stream, read.drafts) }
}

/** Signs a stored SET again, with the same claims and `jti`, if its key is no longer published. */
async function withPublishedKey(deps: QueueDeps, sql: Queries, stream: Stream, set: PendingSet): Promise<PendingSet> {
  if (deps.publishedKids().has(set.kid)) return set
  const again = await deps.signSet(set.claims)
  await sql.query('update signal_pending set kid = $3, token = $4 where stream_id = $1 and number = $2', [
    stream.id,
    set.number,
    again.kid,
    again.token,
  ])
  return { ...set, ...again }
}

/** Stores an event about the stream, behind its stored SETs. The stream's row must be locked. */
export async function tellReceiver(
  deps: QueueDeps,
  sql: Queries,
  { stream, type, members }: { readonly stream: Stream; readonly type: string; readonly members: JsonObject },
): Promise<PendingSet> {
  const sets = await signed(deps, stream, [aboutStream(stream, type, members)])
  const told = { ...stream, lease: null }
  const stored = await store(sql, [{ stream: told, cursor: stream.cursor, lostCount: 0, sets }])
  const [set] = sets
  if (set === undefined || stored.size === 0) throw new TypeError('an event about a stream was not stored')
  return set
}

type Signed = PendingSet & { readonly seq: number | null; readonly atMs: number }

/** Signs SETs one by one, so that the signing threads stay free for callers' tokens. */
async function signed(deps: QueueDeps, stream: Stream, drafts: readonly Draft[]): Promise<readonly Signed[]> {
  const sets: Signed[] = []
  for (const { content, row } of drafts) {
    const number = stream.lastNumber + 1 + sets.length
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
    const at = { seq: row?.seq ?? null, atMs: row?.atMs ?? deps.clock() }
    sets.push({ number, jti, claims, ...at, ...(await deps.signSet(claims)) })
  }
  return sets
}

/** A stream's new position in the outbox, with the SETs for the events up to it. */
type Move = {
  readonly stream: Stream
  readonly cursor: number
  readonly lostCount: number
  readonly sets: readonly Signed[]
}

// A writer has the lease or the lock of the row. `last_number` must be as read, because numbers are part of what was signed.
const STORE = `
  with moved as (
    update signal_stream s set cursor_seq = greatest(s.cursor_seq, q.cursor), last_number = s.last_number + q.count,
      gap_count = s.gap_count + q.lost
    from unnest($1::text[], $2::text[], $3::bigint[], $4::bigint[], $5::bigint[], $6::int[], $7::bigint[])
      q(id, lease, number, before, cursor, count, lost)
    where s.stream_id = q.id and s.last_number = q.number
      and (q.lease is null or s.lease_id = q.lease and s.status = 'enabled' and s.cursor_seq = q.before)
    returning s.stream_id),
  kept as (
    insert into signal_pending (stream_id, number, seq, jti, kid, claims, token, happened_at)
    select p.id, p.number, p.seq, p.jti, p.kid, p.claims, p.token, to_timestamp(p.at / 1000)
    from unnest($8::text[], $9::bigint[], $10::bigint[], $11::text[], $12::text[], $13::jsonb[], $14::text[], $15::float8[])
      p(id, number, seq, jti, kid, claims, token, at) join moved m on m.stream_id = p.id)
  select stream_id as id from moved`

/** Stores the moves. @returns the streams without a move, or with a stored one. */
async function store(sql: Queries, all: readonly Move[]): Promise<ReadonlySet<string>> {
  const isMove = ({ stream, cursor, sets }: Move): boolean => cursor !== stream.cursor || sets.length > 0
  const moves = all.filter(isMove)
  const still = all.filter((move) => !isMove(move)).map(({ stream }) => stream.id)
  if (moves.length === 0) return new Set(still)
  const sets = moves.flatMap(({ stream, sets: own }) => own.map((set) => ({ stream: stream.id, set })))
  const rows = await sql.query<{ id: string }>(STORE, [
    moves.map(({ stream }) => stream.id),
    moves.map(({ stream }) => stream.lease),
    moves.map(({ stream }) => stream.lastNumber),
    moves.map(({ stream }) => stream.cursor),
    moves.map(({ cursor }) => cursor),
    moves.map((move) => move.sets.length),
    moves.map(({ lostCount }) => lostCount),
    sets.map(({ stream }) => stream),
    sets.map(({ set }) => set.number),
    sets.map(({ set }) => set.seq),
    sets.map(({ set }) => set.jti),
    sets.map(({ set }) => set.kid),
    sets.map(({ set }) => JSON.stringify(set.claims)),
    sets.map(({ set }) => set.token),
    sets.map(({ set }) => set.atMs),
  ])
  return new Set([...still, ...rows.map(({ id }) => id)])
}

/** The `jti` of an event on a stream: equal in each repetition, so that the receiver knows it, and keyed, so that others cannot. */
export function jtiOf(masterKeys: MasterKeys, stream: string, event: string): string {
  const [key] = masterKeys.derive(SIGNALS_PURPOSE)
  return createHmac('sha256', key)
    .update(`jti\0${stream}\0${event}`)
    .digest()
    .subarray(0, JTI_BYTES)
    .toString('base64url')
}

const jsonOf = (value: object): JsonObject => JSON.parse(JSON.stringify(value))

/** The published time after which an undelivered event is dropped; an event `stream-updated` reports this. */
const HELD_MS_MAX = 7 * 86_400_000
/** The most events of other streams that one call passes over. */
const PASSED_MAX = 5_000

type Ahead = {
  /** The events after this number, in order; empty at the end. */
  after(seq: number): Promise<readonly OutboxRow[]>
  /** The last number to be read: later events wait until the stream's settings have been read again. */
  readonly upTo: number
}
/** An event to be signed. `row`: its row of the outbox; null for an event about the stream. */
type Draft = { readonly content: Content; readonly row: OutboxRow | null }

const aboutStream = (stream: Pick<Stream, 'id'>, type: string, members: JsonObject): Draft => ({
  content: { type, subject: { format: 'opaque', id: stream.id }, members },
  row: null,
})

/** The facts that decide which events a stream gets. */
type Listener = {
  /** The rights of the stream's client; null: the client no longer exists. */
  readonly audience: Audience | null
  /** Subjects about which the receiver wants no events. */
  readonly removed: readonly SubjectIdentifier[]
}

/** At most `countMax` of the stream's events in order, and one about the stream if some were dropped. */
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
      // A gap in the numbers, which have none, means that the outbox has deleted events.
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
