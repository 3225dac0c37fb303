/** The rows of the streams that other issuers' transmitters send us, one for each issuer. */
import { hash, randomBytes } from 'node:crypto'
import type { Queries } from '../../engine/store/directory.ts'
import { type MasterKeys, open, seal } from '../../shared/base/encryption.ts'
import type { AlgorithmName } from '../../shared/token/algorithms.ts'
import { RECEIVED_STREAM_SEALED_AS, SILENT, type StoredSignals } from './registration.ts'

/** The configuration of our stream, from the transmitter. */
export type MadeStream = {
  readonly stream_id: string
  readonly iss: string
  readonly aud: readonly string[]
  /** The keys of SETs; absent: the keys that sign the issuer's tokens. */
  readonly jwks_uri?: string
}
export type ReceivedStream = {
  readonly issuer: string
  readonly ssf: StoredSignals
  readonly algorithms: readonly AlgorithmName[]
  readonly keys: { readonly jwks_uri: string | null; readonly jwks: { readonly keys: readonly object[] } | null }
  readonly receiverId: string
  readonly authorizationSealed: string
  readonly stream: MadeStream | null
  /** A digest of the settings that the stream was created with; null before it is created. */
  readonly madeBy: string | null
}
export type StreamState = {
  readonly issuer: string
  readonly delivery: 'push' | 'poll'
  readonly stream_id: string | null
  readonly status: 'enabled' | 'paused' | 'disabled'
  readonly silent: boolean
  readonly made_at: string
  readonly received_at: string | null
  readonly heard_at: string | null
  readonly error: string | null
  readonly failed_at: string | null
}

const RECEIVER_ID_BYTES = 24
const AUTHORIZATION_BYTES = 32

const COLUMNS = `t.issuer, t.document -> 'ssf' as ssf, coalesce(t.document -> 'algorithms', '["RS256"]') as algorithms,
  jsonb_build_object('jwks_uri', t.document -> 'jwks_uri', 'jwks', t.document -> 'jwks') as keys,
  r.receiver_id as "receiverId", r.authorization_sealed as "authorizationSealed", r.stream, r.settings as "madeBy"`

export async function hasStreams(sql: Queries): Promise<boolean> {
  const [found] = await sql.query<{ any: boolean }>(
    `select exists (select 1 from trusted_issuer where document ? 'ssf') or exists (select 1 from received_stream) as any`,
  )
  return found?.any === true
}

/** Creates rows for new registrations, and deletes rows of those without a transmitter. */
export async function alignRows(sql: Queries, masterKeys: MasterKeys): Promise<void> {
  await sql.query(
    `delete from received_stream r using trusted_issuer t where t.issuer = r.issuer and not t.document ? 'ssf'`,
  )
  const missing = await sql.query<{ issuer: string }>(
    `select t.issuer from trusted_issuer t where t.document ? 'ssf'
     and not exists (select 1 from received_stream r where r.issuer = t.issuer)`,
  )
  for (const { issuer } of missing) {
    const authorization = `Bearer ${randomBytes(AUTHORIZATION_BYTES).toString('base64url')}`
    const sealed = seal(masterKeys.derive(RECEIVED_STREAM_SEALED_AS), RECEIVED_STREAM_SEALED_AS, authorization)
    await sql.query(
      `insert into received_stream (issuer, receiver_id, authorization_sealed)
       select issuer, $2, $3 from trusted_issuer where issuer = $1 on conflict do nothing`,
      [issuer, randomBytes(RECEIVER_ID_BYTES).toString('base64url'), sealed],
    )
  }
}

/** The Authorization field that the transmitter must push with. */
export const pushAuthorization = (masterKeys: MasterKeys, { authorizationSealed }: ReceivedStream): string =>
  open(masterKeys.derive(RECEIVED_STREAM_SEALED_AS), RECEIVED_STREAM_SEALED_AS, authorizationSealed)

/** Takes or renews the lease of each stream that no other process has. Returns the streams of `holder`. */
export async function leaseStreams(sql: Queries, holder: string, leaseMs: number): Promise<readonly ReceivedStream[]> {
  await sql.query(
    `update received_stream set lease_holder = $1, leased_until = now() + make_interval(secs => $2)
     where coalesce(leased_until, 'epoch') < now()
     or (lease_holder = $1 and leased_until < now() + make_interval(secs => $2 * 0.7))`,
    [holder, leaseMs / 1_000],
  )
  return sql.query<ReceivedStream>(
    `select ${COLUMNS} from received_stream r join trusted_issuer t using (issuer)
     where t.document ? 'ssf' and r.lease_holder = $1 and r.leased_until > now() order by t.issuer`,
    [holder],
  )
}

export const releaseStreams = (sql: Queries, holder: string): Promise<unknown> =>
  sql.query('update received_stream set lease_holder = null, leased_until = null where lease_holder = $1', [holder])

/** The stream whose transmitter pushes to this id; null: none. */
export async function pushedStream(sql: Queries, receiverId: string): Promise<ReceivedStream | null> {
  const [row] = await sql.query<ReceivedStream>(
    `select ${COLUMNS} from received_stream r join trusted_issuer t using (issuer)
     where r.receiver_id = $1 and t.document -> 'ssf' ->> 'delivery' = 'push'`,
    [receiverId],
  )
  return row ?? null
}

/** A digest of the settings that determine a stream. The secret is left out, since it changes nothing in the stream. */
export const settingsOf = ({ ssf: { secret_sealed: _, on_silence: _s, ...ssf } }: ReceivedStream): string =>
  hash('sha256', JSON.stringify(ssf), 'base64url')

export async function noteMade(
  sql: Queries,
  stream: ReceivedStream,
  made: { readonly stream: MadeStream; readonly silentAfterMs: number },
): Promise<void> {
  await sql.query(
    `update received_stream set stream = $2, silent_after_s = $3, settings = $4, status = 'enabled', error = null, failed_at = null,
       made_at = case when settings is distinct from $4 then now() else made_at end where issuer = $1`,
    [stream.issuer, JSON.stringify(made.stream), made.silentAfterMs / 1_000, settingsOf(stream)],
  )
}

/** Stores an error, which is shown until the stream works again. */
export const noteFailure = (sql: Queries, issuer: string, message: string): Promise<unknown> =>
  sql.query('update received_stream set error = $2, failed_at = now() where issuer = $1', [issuer, message])

export const noteStatus = (sql: Queries, issuer: string, status: StreamState['status']): Promise<unknown> =>
  sql.query('update received_stream set status = $2 where issuer = $1 and status <> $2', [issuer, status])

/** Stores a sign of life of the transmitter. */
export const noteHeard = (sql: Queries, issuer: string): Promise<unknown> =>
  sql.query('update received_stream set heard_at = now(), error = null, failed_at = null where issuer = $1', [issuer])

export const streamStates = (sql: Queries): Promise<readonly StreamState[]> =>
  sql.query<StreamState>(
    `select t.issuer, t.document -> 'ssf' ->> 'delivery' as delivery, r.stream ->> 'stream_id' as stream_id, r.status,
       ${SILENT} as silent, ${utc('made_at')}, ${utc('received_at')}, ${utc('heard_at')}, r.error, ${utc('failed_at')}
     from received_stream r join trusted_issuer t using (issuer) where t.document ? 'ssf' order by t.issuer`,
  )

function utc(column: string): string {
  return `to_char(r.${column} at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') as ${column}`
}
