/** Ends the tokens of a client, and the grants that people gave to it. */
import type { WriteContext } from '../../../shared/domain/change.ts'
import { TOKENS } from '../../../shared/domain/change-log.ts'
import type { Sql } from '../directory.ts'
import { appendLog } from './change-log.ts'

type Queries = Pick<Sql, 'query'>

/** Also those that are under way: their requests were authenticated in an earlier epoch. */
export async function endTokensOf(tx: Queries, id: string, context: WriteContext): Promise<void> {
  // First: a token that is stored before this lock is older than the entry of the log, which revokes it for decisions.
  await tx.query('update client set token_epoch = token_epoch + 1 where client_id = $1', [id])
  await appendLog(tx, TOKENS, [{ kind: 'token', by: 'client', id }], context)
}

/** People's grants to the client, and requests for one that are pending: refresh tokens and codes that others may hold. */
export async function endGrantsOf(tx: Queries, id: string): Promise<void> {
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
