/** Guards the end of memberships: one that is not active may end only when no tuple or role of the person would count again. */
import type { Change } from '../../../../shared/domain/change.ts'
import type { JournalId } from '../../../../shared/domain/journal.ts'
import { leaversIn, requireNothingWithheld, type Withheld } from '../../changes.ts'
import type { Queries } from '../../directory.ts'

/** Returns no row when there is no membership, or an active one. */
const WITHHELD = `
  select exists (select 1 from stored_relationship where organization_id = $1 and subject = 'user:' || $2
      and (expires_at is null or expires_at > clock_timestamp())) as relationships,
    exists (select 1 from role_grant where organization_id = $1 and subject = 'user:' || $2) as roles
  from membership where organization_id = $1 and user_id = $2 and status <> 'active'`

/** Throws PdpError `conflict` when a membership may not end. The journal must be locked. */
export async function assertNoAccessRestored(sql: Queries, log: JournalId, changes: readonly Change[]): Promise<void> {
  for (const user of leaversIn(changes)) {
    const [withheld] = await sql.query<Withheld>(WITHHELD, [log, user])
    if (withheld !== undefined) requireNothingWithheld(user, withheld)
  }
}
