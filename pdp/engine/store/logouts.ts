/** Queues the logout tokens that clients get when sessions end (OpenID Connect Back-Channel Logout 1.0). */
import type { Queries } from './directory.ts'

const QUEUE = (condition: string): string => `
  insert into logout_pending (client_id, user_id, sid)
  select c.client_id, s.payload ->> 'accountId', a.value ->> 'sid'
  from oidc_record s, lateral jsonb_each(s.payload -> 'authorizations') a join client c on c.client_id = a.key
  where s.kind = 'Session' and s.expires_at > now() and ${condition} and s.payload ->> 'accountId' is not null
    and a.value ->> 'sid' is not null and c.metadata ->> 'backchannel_logout_uri' is not null
  on conflict do nothing`
const STATEMENTS = { session: QUEUE('s.uid = $1'), user: QUEUE("s.payload ->> 'accountId' = $1") }

/** Queues logout tokens. Must be called in the transaction that ends one or all of a user's sessions, before it deletes them. */
export async function queueLogouts(
  sql: Queries,
  { by, id }: { readonly by: 'session' | 'user'; readonly id: string },
): Promise<void> {
  await sql.query(STATEMENTS[by], [id])
}
