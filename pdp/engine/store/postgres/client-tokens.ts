/** Ends the tokens of a client, and the grants that people gave to it. */
import type { WriteContext } from '../../../shared/domain/change.ts'
import { TOKENS } from '../../../shared/domain/journal.ts'
import type { Queries } from '../directory.ts'
import { appendJournal } from './journal.ts'

/** Ends all tokens of the client, also those about to be issued: their requests were authenticated in an earlier epoch. */
export async function endTokensOf(tx: Queries, id: string, context: WriteContext): Promise<void> {
  // The epoch is raised first: a token that is stored before this lock is older than the journal entry, which then revokes it.
  await tx.query('update client set token_epoch = token_epoch + 1 where client_id = $1', [id])
  await appendJournal(tx, TOKENS, [{ kind: 'token', by: 'client', id }], context)
}

/** Ends people's grants to the client and requests for them that are pending, with the refresh tokens and codes of both. */
export async function endGrantsOf(tx: Queries, id: string): Promise<void> {
  await tx.query(
    `delete from oidc_record where ctid = any(array(
       select r.ctid from grant_binding b, lateral (
         select ctid from oidc_record where grant_id = b.grant_id
         union all select ctid from oidc_record where kind = 'Grant' and id = b.grant_id offset 0) r
       where b.client_id = $1))`,
    [id],
  )
  await tx.query(
    `delete from oidc_record where kind in ('DeviceCode', 'BackchannelAuthenticationRequest', 'PushedAuthorizationRequest')
       and payload ->> 'clientId' = $1`,
    [id],
  )
}
