/** The record of a token that our own issuer minted. From it follow the keys by which the token journal can revoke the token. */
import { revocationKey } from '../../shared/domain/revocation.ts'
import type { Queries } from './directory.ts'

export type TokenOrigin = {
  readonly kind: 'AccessToken' | 'ClientCredentials'
  /** The grant; null for a client_credentials token. */
  readonly grantId: string | null
  /** The browser session that ends the token; null: none does. */
  readonly sessionUid: string | null
  readonly acr: string | null
  /** The sign-in in seconds since the epoch. */
  readonly authTime: number | null
  /** The token's grant, and those of tokens that it was exchanged from. */
  readonly grants: readonly string[]
  /** The clients of these grants. */
  readonly clients: readonly string[]
}

// token-exchange.ts limits the chain of exchanges far below 64.
const ORIGIN = `
  with recursive up as (
    select grant_id, parent_grant_id, client_id, 1 as depth from grant_binding
    where grant_id = (select grant_id from oidc_record where kind = 'AccessToken' and id = $1)
    union all
    select p.grant_id, p.parent_grant_id, p.client_id, depth + 1 from grant_binding p join up on p.grant_id = up.parent_grant_id
    where depth < 64)
  select r.kind, r.grant_id as "grantId", case when not b.offline then b.session_uid end as "sessionUid",
    r.payload ->> 'acr' as acr, (r.payload ->> 'authTime')::float8 as "authTime",
    array(select grant_id from up union select parent_grant_id from up where parent_grant_id is not null) as grants,
    array(select distinct client_id from up) as clients
  from oidc_record r left join grant_binding b on b.grant_id = r.grant_id
  where r.kind in ('AccessToken', 'ClientCredentials') and r.id = $1`

/** The record; null for a token that was not minted here, was revoked, or has expired. Throws PdpError `store_unavailable`. */
export async function tokenOrigin(sql: Queries, jti: string): Promise<TokenOrigin | null> {
  const [row] = await sql.query<TokenOrigin>(ORIGIN, [jti])
  return row ?? null
}

/** The keys of the token journal, each of which revokes a token of this origin. */
export function originKeys({
  clients,
  grants,
  sessionUid,
}: Pick<TokenOrigin, 'clients' | 'grants' | 'sessionUid'>): readonly string[] {
  const keys = clients.map((client) => revocationKey('client', client))
  for (const grant of grants) keys.push(revocationKey('grant', grant))
  if (sessionUid !== null) keys.push(revocationKey('session', sessionUid))
  return keys
}

/** Does the work of `Store.tokenKeys`. The signing key shows whether a token is ours; one of ours without a record has been revoked. */
export async function tokenKeys(
  sql: Queries,
  { jti, keyId }: { readonly jti: string; readonly keyId: string | null },
): Promise<readonly string[] | null> {
  // No token of ours has U+0000 in a name, since PostgreSQL cannot store it.
  if (`${jti}${keyId}`.includes('\0')) return []
  const origin = await tokenOrigin(sql, jti)
  const hasEnded = origin?.kind === 'AccessToken' && origin.grants.length === 0
  if (origin !== null) return hasEnded ? null : originKeys(origin)
  const ours = await sql.query('select 1 from signing_key where kid = $1', [keyId])
  return ours.length > 0 ? null : []
}
