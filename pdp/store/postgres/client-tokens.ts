/** Ends the grants that people gave to a client. */
import type { Sql } from '../directory.ts'

/** People's grants to the client, and requests for one that are pending: refresh tokens and codes that others may hold. */
export async function endGrantsOf(tx: Pick<Sql, 'query'>, id: string): Promise<void> {
  await tx.query(
    `with gone as (select grant_id from grant_binding where client_id = $1)
     delete from oidc_record where grant_id in (select grant_id from gone)
       or (kind = 'Grant' and id in (select grant_id from gone))`,
    [id],
  )
  await tx.query(
    `delete from oidc_record where kind in ('DeviceCode', 'BackchannelAuthenticationRequest', 'PushedAuthorizationRequest')
       and payload ->> 'clientId' = $1`,
    [id],
  )
}
