/** Memberships that end. One that is not active keeps a person out, so it ends only when nothing would count again. */
import type { Change, WriteContext } from '../../../../shared/domain/change.ts'
import type { LogId } from '../../../../shared/domain/change-log.ts'
import { leaversIn, requireNothingWithheld, type Withheld } from '../../changes.ts'
import type { Sql } from '../../directory.ts'
import { appendLog } from '../change-log.ts'

type Queries = Pick<Sql, 'query'>

/** No row: no membership, or an active one. */
const WITHHELD = `
  select exists (select 1 from stored_relationship where organization_id = $1 and subject = 'user:' || $2
      and (expires_at is null or expires_at > clock_timestamp())) as relationships,
    exists (select 1 from role_grant where organization_id = $1 and subject = 'user:' || $2) as roles
  from membership where organization_id = $1 and user_id = $2 and status <> 'active'`

/** The log must be locked. Throws PdpError `conflict`. */
export async function assertNobodyLetIn(sql: Queries, log: LogId, changes: readonly Change[]): Promise<void> {
  for (const user of leaversIn(changes)) {
    const [withheld] = await sql.query<Withheld>(WITHHELD, [log, user])
    if (withheld !== undefined) requireNothingWithheld(user, withheld)
  }
}

/** Of a user whose account is deleted; one that withholds something stays. Returns the organizations of those that ended. */
export async function endMemberships(tx: Queries, user: string, context: WriteContext): Promise<readonly string[]> {
  const memberships = await tx.query<{ organization_id: string }>(
    'select organization_id from membership where user_id = $1 order by organization_id',
    [user],
  )
  const ended: string[] = []
  for (const { organization_id: organization } of memberships) {
    // What the next statement reads stays as it is until the end.
    await tx.query('select 1 from revision where organization_id = $1 for update', [organization])
    const [withheld] = await tx.query<Withheld>(WITHHELD, [organization, user])
    if (withheld?.relationships === true || withheld?.roles === true) continue
    await appendLog(tx, organization, [{ kind: 'membership', user, membership: null }], context)
    await tx.query('delete from membership where organization_id = $1 and user_id = $2', [organization, user])
    ended.push(organization)
  }
  return ended
}
