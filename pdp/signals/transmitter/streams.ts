/** The rows of receivers' streams: the receiver's request, and the stream's position in the outbox. */
import { randomBytes } from 'node:crypto'
import type { Queries } from '../../engine/store/directory.ts'
import { numberEvents } from '../../engine/store/number-events.ts'
import { formatSubject, type SubjectIdentifier, subjectKey } from '../set/subjects.ts'

export type StreamStatus = 'enabled' | 'paused' | 'disabled'
export const STREAM_STATUSES: readonly StreamStatus[] = ['enabled', 'paused', 'disabled']
/** `complex`: subjects of SSF 1.0 section 3.3, with session and tenant. `iss_sub`: only the person. */
export type SubjectFormat = 'complex' | 'iss_sub'

/** The client that manages a stream, and the organization to which its token is limited. */
export type Receiver = { readonly client: string; readonly organization: string | null }
/** The receiver's settings of a stream; null for those that are absent. */
export type StreamRequest = {
  /** The URL to push to; null: the receiver polls. */
  readonly endpointUrl: string | null
  /** The Authorization field for the endpoint, encrypted. */
  readonly authorizationSealed: string | null
  readonly eventsRequested: readonly string[] | null
  readonly subjectFormat: SubjectFormat
  readonly description: string | null
}
export type Stream = Receiver &
  StreamRequest & {
    readonly id: string
    readonly status: StreamStatus
    readonly statusReason: string | null
    readonly cursor: number
    readonly lastNumber: number
    readonly announcedNumber: number | null
    /** The lease of the process that delivers the stream, or that did so last. */
    readonly lease: string | null
    readonly attemptsCount: number
    readonly failingSinceMs: number | null
  }
export type StreamState = Stream & {
  /** The age, in seconds, of the oldest undelivered event; 0: there is none. */
  readonly lagSeconds: number
  readonly pendingCount: number
  readonly lastError: string | null
  readonly lastErrorAt: string | null
  readonly lastDeliveredAt: string | null
  readonly deadCount: number
  readonly gapCount: number
}

export const STREAM_COLUMNS = `s.stream_id as id, s.client_id as client, s.organization_id as organization,
  s.endpoint_url as "endpointUrl", s.authorization_sealed as "authorizationSealed", s.events_requested as "eventsRequested",
  s.subject_format as "subjectFormat", s.description, s.status, s.status_reason as "statusReason", s.cursor_seq as cursor,
  s.last_number as "lastNumber", s.announced_number as "announcedNumber", s.lease_id as lease, s.attempts_count as "attemptsCount",
  (extract(epoch from s.failing_since) * 1000)::float8 as "failingSinceMs"`
/** The lag may be too large, since events after the cursor may not be for this receiver, but never too small. */
const STATE_COLUMNS = `${STREAM_COLUMNS}, s.last_error as "lastError", s.dead_count as "deadCount", s.gap_count as "gapCount",
  to_char(s.last_error_at at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') as "lastErrorAt",
  to_char(s.last_delivered_at at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') as "lastDeliveredAt",
  (select count(*)::int from signal_pending p where p.stream_id = s.stream_id) as "pendingCount",
  case when s.status = 'disabled' then 0 else coalesce(extract(epoch from now() - least(
    (select min(p.happened_at) from signal_pending p where p.stream_id = s.stream_id),
    (select o.created_at from outbox o where o.seq > s.cursor_seq order by o.seq limit 1),
    (select a.created_at from outbox_arrival a order by a.position limit 1))), 0)::float8 end as "lagSeconds"`
/** The receiver's own streams. A token that is bound to an organization sees only the streams of that organization. */
const OWN = 's.client_id = $1 and s.organization_id is not distinct from $2'
export const STREAMS_PER_CLIENT_MAX = 100
const STREAM_ID_BYTES = 16

export async function readStreams(sql: Queries, { client, organization }: Receiver): Promise<readonly Stream[]> {
  return sql.query<Stream>(`select ${STREAM_COLUMNS} from signal_stream s where ${OWN} order by s.stream_id`, [
    client,
    organization,
  ])
}

/** The stream; null if it does not exist or is another receiver's. `lock`: locks its row until the transaction ends. */
export async function readStream(
  sql: Queries,
  { client, organization }: Receiver,
  { id, lock = false }: { readonly id: string; readonly lock?: boolean },
): Promise<Stream | null> {
  const [row] = await sql.query<Stream>(
    `select ${STREAM_COLUMNS} from signal_stream s where ${OWN} and s.stream_id = $3 ${lock ? 'for update' : ''}`,
    [client, organization, id],
  )
  return row ?? null
}

/** The stream of any receiver, with its row locked until the transaction's end; null: none. */
export async function lockStream(sql: Queries, id: string): Promise<Stream | null> {
  const [row] = await sql.query<Stream>(
    `select ${STREAM_COLUMNS} from signal_stream s where s.stream_id = $1 for update`,
    [id],
  )
  return row ?? null
}

export const newStreamId = (): string => randomBytes(STREAM_ID_BYTES).toString('base64url')

/** Creates a stream that begins after the newest event. Null when the receiver has as many streams as it may have. */
export async function createStream(
  sql: Queries,
  receiver: Receiver,
  { id, ...request }: StreamRequest & { readonly id: string },
): Promise<Stream | null> {
  await sql.query('select 1 from client where client_id = $1 for update', [receiver.client])
  await numberEvents(sql)
  const rows = await sql.query(
    `insert into signal_stream (stream_id, client_id, organization_id, endpoint_url, authorization_sealed, events_requested,
       subject_format, description, status, cursor_seq)
     select $1, $2, $3, $4, $5, $6, $7, $8, 'enabled', (select revision from revision where organization_id = '#events')
     where (select count(*) from signal_stream where client_id = $2) < ${STREAMS_PER_CLIENT_MAX} returning 1`,
    [id, receiver.client, receiver.organization, ...valuesOf(request)],
  )
  return rows.length === 0 ? null : readStream(sql, receiver, { id })
}

export async function writeStream(sql: Queries, id: string, request: StreamRequest): Promise<void> {
  await sql.query(
    `update signal_stream set endpoint_url = $2, authorization_sealed = $3, events_requested = $4, subject_format = $5,
       description = $6, attempts_count = 0, failing_since = null, next_attempt_at = null where stream_id = $1`,
    [id, ...valuesOf(request)],
  )
}

const valuesOf = (request: StreamRequest): readonly unknown[] => [
  request.endpointUrl,
  request.authorizationSealed,
  request.eventsRequested,
  request.subjectFormat,
  request.description,
]

export async function deleteStream(sql: Queries, receiver: Receiver, id: string): Promise<boolean> {
  const rows = await sql.query(`delete from signal_stream s where ${OWN} and s.stream_id = $3 returning 1`, [
    receiver.client,
    receiver.organization,
    id,
  ])
  return rows.length > 0
}

/** Sets the status. A disabled stream holds no events (SSF 1.0 section 8.1.2): those until it is enabled are never sent. */
export async function writeStatus(
  sql: Queries,
  id: string,
  { status, reason }: { readonly status: StreamStatus; readonly reason: string | null },
): Promise<void> {
  await numberEvents(sql)
  await sql.query(
    `update signal_stream set status_reason = $3, announced_number = null, attempts_count = 0, failing_since = null,
       next_attempt_at = null, status = $2, enabled_at = case when $2 = 'enabled' then now() else enabled_at end,
       cursor_seq = case when 'disabled' in (status, $2)
         then (select revision from revision where organization_id = '#events') else cursor_seq end
     where stream_id = $1`,
    [id, status, reason],
  )
  if (status === 'disabled') await sql.query('delete from signal_pending where stream_id = $1', [id])
}

/** The states of all streams, in the order of their ids. */
export async function readStates(
  sql: Queries,
  page: { readonly after: string | null; readonly countMax: number },
): Promise<readonly StreamState[]> {
  return sql.query<StreamState>(
    `select ${STATE_COLUMNS} from signal_stream s where s.stream_id > $1 order by s.stream_id limit $2`,
    [page.after ?? '', page.countMax],
  )
}

export async function readState(sql: Queries, id: string): Promise<StreamState | null> {
  const [row] = await sql.query<StreamState>(`select ${STATE_COLUMNS} from signal_stream s where s.stream_id = $1`, [
    id,
  ])
  return row ?? null
}

const REMOVED_SUBJECTS_MAX = 10_000

/** Adds a subject by deleting its removal, since a stream is about all subjects by default. */
export async function addSubject(sql: Queries, stream: string, subject: SubjectIdentifier): Promise<void> {
  await sql.query('delete from signal_removed_subject where stream_id = $1 and subject_key = $2', [
    stream,
    subjectKey(subject),
  ])
}

/** Removes a subject; false: the receiver has removed as many as it may. */
export async function removeSubject(sql: Queries, stream: string, subject: SubjectIdentifier): Promise<boolean> {
  const key = subjectKey(subject)
  const rows = await sql.query(
    `insert into signal_removed_subject (stream_id, subject_key, subject) select $1, $2, $3::jsonb
     where (select count(*) from signal_removed_subject where stream_id = $1) < ${REMOVED_SUBJECTS_MAX}
       or exists (select 1 from signal_removed_subject where stream_id = $1 and subject_key = $2)
     on conflict (stream_id, subject_key) do update set subject = excluded.subject returning 1`,
    [stream, key, JSON.stringify(formatSubject(subject))],
  )
  return rows.length > 0
}
