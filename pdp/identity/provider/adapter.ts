/** The storage of oidc-provider: one table, codes as digests only. The database decides which request uses a one-time value first. */
import { type Adapter, type AdapterPayload, errors, Provider } from 'oidc-provider'
import type { Directory, Queries, Sql } from '../../engine/store/directory.ts'
import type { MasterKeys } from '../../shared/base/encryption.ts'
import { isId } from '../../shared/domain/names.ts'
import type { IdentityEvent } from '../issuer/append.ts'
import { createRecordSecrets, type RecordSecrets } from '../issuer/keys/record-secrets.ts'
import type { Revocations } from '../issuer/tokens/revocation.ts'
import type { SessionEvents } from '../issuer/tokens/session-events.ts'
import { paramsOf } from '../oauth/request.ts'
import type { ClientDocuments } from './client-documents.ts'
import type { ClientKeys } from './client-keys.ts'
import { isFromDocument, jwksUriOf, providerMetadata } from './client-metadata.ts'
import { type PendingRecord, POLLED, type Redemption } from './redemption.ts'

const REPLAY = 'ReplayDetection'
const REFRESH_TOKEN = 'RefreshToken'
// oidc-provider forgets a proof 300 s after its use but accepts one whose `iat` is 300 s ahead until 300 s after that. Client assertions
// live no longer.
const REPLAY_SECONDS_MIN = 660

type RecordRow = {
  readonly id: string
  readonly payload: object
  readonly consumed: number | null
  readonly ageMs: number | null
}
export type AdapterDeps = {
  readonly sql: Sql
  readonly directory: Directory
  readonly revocations: Revocations
  readonly redemption: Redemption
  readonly masterKeys: MasterKeys
  readonly sessionEvents: Pick<SessionEvents, 'note' | 'take' | 'append'>
  /** The documents of clients without registration; null: only registered clients exist. */
  readonly documents: Pick<ClientDocuments, 'find'> | null
  readonly clientKeys: ClientKeys
}
const ACCESS_TOKENS: ReadonlySet<string> = new Set(['AccessToken', 'ClientCredentials'])
const PUSHED = 'PushedAuthorizationRequest'
const SESSION = 'Session'
const INTERACTION = 'Interaction'
// The row stays until its expiry: a request that began before the end would otherwise store the session again.
const END_SESSION = `
  update oidc_record set consumed_at = now(), uid = null, payload = '{}' where kind = '${SESSION}' and id = $1`
const CONTEXT = { actor: 'identity', requestId: '' }

/** Another request has used the proof or assertion meanwhile. */
export class UsedBeforeError extends Error {
  override readonly name = 'UsedBeforeError'
}

/** oidc-provider's factory: one adapter per kind of record. */
export function createAdapters(deps: AdapterDeps): (kind: string) => Adapter {
  const secrets = createRecordSecrets(deps)
  return (kind) => (kind === 'Client' ? clientAdapter(deps) : recordAdapter(kind, deps, secrets))
}

function recordAdapter(
  kind: string,
  { sql, revocations, redemption, sessionEvents }: AdapterDeps,
  secrets: RecordSecrets,
): Adapter {
  const keyOf = (id: string): string => secrets.keyOf(kind, id)
  async function upsertWith(tx: Queries, row: Row, event: IdentityEvent): Promise<boolean> {
    const stored = await upsert(tx, kind, row)
    if (stored) await sessionEvents.append(tx, event)
    return stored
  }
  async function find(column: 'id' | 'uid' | 'user_code', value: string): Promise<AdapterPayload | undefined> {
    // No row has U+0000: PostgreSQL cannot store it, and fails for a query with it.
    if (value.includes('\0')) return undefined
    const wanted = column === 'id' ? [keyOf(value)] : column === 'uid' ? [value] : secrets.userCodesOf(value)
    const [row] = await sql.query<RecordRow>(
      `select id, payload, extract(epoch from consumed_at)::int as consumed,
         extract(epoch from now() - consumed_at)::float8 * 1000 as "ageMs"
       from oidc_record where kind = $1 and ${column} = any($2)`,
      [kind, wanted],
    )
    if (row === undefined || (kind === SESSION && row.consumed !== null)) return undefined
    if (POLLED.has(kind) && row.ageMs !== null) redemption.requireLater(row.ageMs)
    const payload = secrets.open(kind, row.id, row.payload)
    if (payload === null) return undefined
    return {
      ...payload,
      ...(column === 'id' && { jti: value }),
      ...(row.consumed !== null && { consumed: row.consumed }),
    }
  }

  return {
    async upsert(id, payload, expiresIn) {
      const key = keyOf(id)
      const record = pendingRecord({ kind, key, payload, stored: secrets.seal(kind, key, payload), expiresIn })
      if (kind === REFRESH_TOKEN && redemption.store(record)) return
      if (ACCESS_TOKENS.has(kind)) return storeToken(sql, kind, record)
      const code = member(payload, 'userCode')
      const userCode = code === null ? null : secrets.userCodeOf(code)
      const row = { ...record, payload, text: record.payload, userCode }
      const event = kind === SESSION ? sessionEvents.take(member(payload, 'uid')) : null
      const stored =
        event === null ? await upsert(sql, kind, row) : await sql.transaction((tx) => upsertWith(tx, row, event))
      if (!stored && kind === REPLAY) throw new UsedBeforeError('remembered already')
    },
    find: (id) => find('id', id),
    findByUid: (uid) => find('uid', uid),
    findByUserCode: (userCode) => find('user_code', userCode),
    async consume(id) {
      if (redemption.use(kind, keyOf(id))) return
      const rows = await sql.query(
        'update oidc_record set consumed_at = now() where kind = $1 and id = $2 and consumed_at is null returning 1',
        [kind, keyOf(id)],
      )
      // oidc-provider reads first and marks as used later. If several requests have read, one gets here first and the others fail.
      if (rows.length > 0) return
      throw kind === PUSHED ? new errors.InvalidRequestUri('used before') : new errors.InvalidGrant('used before')
    },
    async destroy(id) {
      if (kind === 'Grant') await revocations.endGrant(id, CONTEXT)
      else if (kind === 'AccessToken' || kind === 'ClientCredentials') await revocations.endToken(id, CONTEXT)
      else if (kind === SESSION) await sql.query(END_SESSION, [keyOf(id)])
      else await sql.query('delete from oidc_record where kind = $1 and id = $2', [kind, keyOf(id)])
    },
    // oidc-provider destroys the Grant too (see revokeGrantPolicy). That deletes everything in one logged transaction.
    revokeByGrantId: async () => undefined,
  }
}

function pendingRecord(record: {
  kind: string
  key: string
  payload: object
  stored: object
  expiresIn: number | undefined
}): PendingRecord {
  const { kind, key, payload, stored, expiresIn } = record
  const text = JSON.stringify(stored)
  // Refused here, since jsonb cannot store U+0000, and no parameter needs it.
  if (JSON.stringify(payload).includes('\\u0000')) throw new errors.InvalidRequest('a parameter holds a NUL character')
  const seconds = expiresIn === undefined ? null : Math.max(expiresIn, kind === REPLAY ? REPLAY_SECONDS_MIN : 0)
  // An unfinished sign-in is kept without the grant of the person who was signed in before: another person may be signing in.
  const grantId = kind === INTERACTION ? null : member(payload, 'grantId')
  return { key, payload: text, grantId, seconds }
}

const COLUMNS = `payload = $3::jsonb, grant_id = $4, uid = $5, user_code = $6,
  expires_at = now() + make_interval(secs => $7::int)`

const LIVE_SESSION = `and (oidc_record.kind <> '${SESSION}' or oidc_record.consumed_at is null)`

type Row = Omit<PendingRecord, 'payload'> & { payload: object; text: string; userCode: string | null }

/** Stores a row; false: the proof was stored before (the first writer wins, on any node), or the session has ended. */
async function upsert(sql: Queries, kind: string, record: Row): Promise<boolean> {
  const { key, payload, text, grantId, seconds, userCode } = record
  const uid = kind === SESSION ? member(payload, 'uid') : null
  const values = [kind, key, text, grantId, uid, userCode, seconds]
  // `on conflict` covers only one unique index. Simultaneous writers of a row may collide in the other index, and fail.
  if (uid !== null || userCode !== null) {
    const kept = await sql.query(
      `update oidc_record set ${COLUMNS} where kind = $1 and id = $2 ${LIVE_SESSION} returning 1`,
      values,
    )
    if (kept.length > 0) return true
  }
  const rows = await sql.query(
    `insert into oidc_record (kind, id, payload, grant_id, uid, user_code, expires_at)
     values ($1, $2, $3::jsonb, $4, $5, $6, now() + make_interval(secs => $7::int))
     on conflict (kind, id) do update set ${COLUMNS}
     where true ${kind === REPLAY ? 'and oidc_record.expires_at < now()' : LIVE_SESSION} returning 1`,
    values,
  )
  return rows.length > 0
}

// The lock makes an end of the client's tokens wait: its entry in the log is then younger than this token, and revokes it.
const STORE_TOKEN = `
  insert into oidc_record (kind, id, payload, grant_id, expires_at)
  select $1, $2, $3::jsonb, $4, now() + make_interval(secs => $5::int) from client
  where client_id = $3::jsonb ->> 'clientId' and token_epoch = ($3::jsonb ->> 'clientEpoch')::int for share returning 1`

/** Refuses a token if the client's tokens were ended after the request's authentication: its rights or secret may have changed. */
async function storeToken(sql: Queries, kind: string, record: PendingRecord): Promise<void> {
  const { key, payload, grantId, seconds } = record
  const rows = await sql.query(STORE_TOKEN, [kind, key, payload, grantId, seconds])
  if (rows.length === 0) throw new errors.InvalidGrant('the client was changed meanwhile')
}

function member(payload: object, name: string): string | null {
  const value: unknown = Object.entries(payload).find(([key]) => key === name)?.[1]
  return typeof value === 'string' ? value : null
}

/** Reads clients for each request, so that a changed or deleted one is noticed at once. */
function clientAdapter({
  directory,
  documents,
  clientKeys,
}: Pick<AdapterDeps, 'directory' | 'documents' | 'clientKeys'>): Adapter {
  const refuse = (): never => {
    throw new TypeError('clients are written through the directory')
  }
  return {
    async find(id) {
      if (!isId(id)) return undefined
      const stored = await directory.client(id)
      const isRegistered = stored !== null && !isFromDocument(stored.metadata)
      const client = isRegistered ? stored : await documents?.find(id, stored)
      if (client === undefined) return undefined
      const uri = jwksUriOf(client.metadata)
      if (uri === null) return providerMetadata(client)
      const assertion = paramsOf(Provider.ctx?.oidc ?? {}).client_assertion
      return providerMetadata(client, await clientKeys.of({ id, uri }, assertion))
    },
    upsert: refuse,
    findByUid: refuse,
    findByUserCode: refuse,
    consume: refuse,
    destroy: refuse,
    revokeByGrantId: refuse,
  }
}
