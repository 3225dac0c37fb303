/** The immutable part of a token: verified claims, and what was recorded when it was minted. Read once per token. */
import type { Sql } from '../../store/directory.ts'
import type { AccessClaims } from '../../token/claims.ts'
import { TokenError, type TokenErrorCode } from '../../token/errors.ts'
import type { TokenVerifier } from '../../token/verify.ts'
import type { TokenRecord } from './token-state.ts'

const ENTRIES_MAX = 20_000

type RecordRow = {
  readonly kind: 'AccessToken' | 'ClientCredentials'
  readonly grant_id: string | null
  readonly session_uid: string | null
  readonly acr: string | null
  readonly auth_time: number | null
  readonly grants: readonly string[]
  readonly clients: readonly string[]
}
// token-exchange.ts limits the chain of exchanges far below 64.
const RECORD = `
  with recursive up as (
    select grant_id, parent_grant_id, client_id, 1 as depth from grant_binding
    where grant_id = (select grant_id from oidc_record where kind = 'AccessToken' and id = $1)
    union all
    select p.grant_id, p.parent_grant_id, p.client_id, depth + 1 from grant_binding p join up on p.grant_id = up.parent_grant_id
    where depth < 64)
  select r.kind, r.grant_id, case when not b.offline then b.session_uid end as session_uid,
    r.payload ->> 'acr' as acr, (r.payload ->> 'authTime')::float8 as auth_time,
    array(select grant_id from up union select parent_grant_id from up where parent_grant_id is not null) as grants,
    array(select distinct client_id from up) as clients
  from oidc_record r left join grant_binding b on b.grant_id = r.grant_id
  where r.kind in ('AccessToken', 'ClientCredentials') and r.id = $1`

/** Null for a token that is malformed, foreign, expired, unknown or revoked. Throws PdpError `store_unavailable`. */
export type ReadRecord = (token: string) => Promise<TokenRecord | null>

export function createReadRecord(deps: {
  readonly issuer: string
  readonly sql: Pick<Sql, 'query'>
  /** Records of our own tokens. */
  readonly verifier: TokenVerifier
}): ReadRecord {
  const records = new Map<string, TokenRecord>()

  return async (token) => {
    const claims = await verified(deps.verifier, token)
    if (claims === null) return null
    const known = records.get(claims.digest)
    if (known !== undefined) return known
    const [row] = await deps.sql.query<RecordRow>(RECORD, [claims.jti])
    const record = row === undefined ? null : toRecord(claims, row)
    if (record !== null) remember(records, record)
    return record
  }
}

/** The oldest is dropped first: tokens are short-lived, so age is as good a criterion as use. */
function remember(records: Map<string, TokenRecord>, record: TokenRecord): void {
  const [oldest] = records.keys()
  if (records.size >= ENTRIES_MAX && oldest !== undefined) records.delete(oldest)
  records.set(record.digest, record)
}

/** Nobody can say whether the token is good. */
const UNANSWERED: ReadonlySet<TokenErrorCode> = new Set(['keys_unavailable', 'issuer_unavailable'])

/** Null for a token that this verifier does not accept. */
export async function verified(verifier: TokenVerifier, token: string): Promise<AccessClaims | null> {
  try {
    return await verifier.verify(token)
  } catch (err) {
    if (err instanceof TokenError && !UNANSWERED.has(err.code)) return null
    throw err
  }
}

function toRecord(claims: AccessClaims, row: RecordRow): TokenRecord | null {
  // Users and clients have disjoint ids (RFC 9068 section 5), so this tells whether the subject is a user or a client.
  const isService = claims.subject === claims.clientId
  if (row.kind !== (isService ? 'ClientCredentials' : 'AccessToken')) return null
  if (!isService && row.grants.length === 0) return null
  return {
    subject: { type: isService ? 'service' : 'user', id: claims.subject },
    organization: claims.organization,
    clientId: claims.clientId,
    scopes: claims.scopes,
    audiences: claims.audiences,
    jkt: claims.jkt,
    jti: claims.jti,
    grantId: row.grant_id,
    issuedAtMs: claims.issuedAtMs,
    expiresAtMs: claims.expiresAtMs,
    acr: row.acr,
    authTime: row.auth_time,
    grants: row.grants,
    clients: isService ? [claims.clientId] : row.clients,
    sessionUid: row.session_uid,
    userId: isService ? null : claims.subject,
    digest: claims.digest,
    act: claims.all.act,
    externalIssuer: null,
  }
}
