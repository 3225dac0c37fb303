/** Ends the memberships of people whose accounts are deleted, in pieces, since a person may be a member of very many organizations. */
import type { WriteContext } from '../../../../shared/domain/change.ts'
import { DIRECTORY } from '../../../../shared/domain/journal.ts'
import { initiatorOf } from '../../../../shared/domain/outbox/events.ts'
import type { Queries } from '../../directory.ts'
import { lockBeside } from '../../journal-lock.ts'
import { appendToJournals } from '../journal.ts'
import { appendEvents, type OutboxEvent } from '../outbox.ts'
import { lockJournals } from '../unit-of-work.ts'

type Departure = { readonly user: string; readonly lookedTo: string; readonly context: WriteContext }
type Row = { user_id: string; looked_to: string; actor: string; request_id: string }

/** How many memberships one piece reads. Other writers of their organizations wait until its end. */
const PIECE_MAX = 50

const NEXT = `
  select organization_id as id from membership where user_id = $1 and organization_id > $2 order by organization_id
  limit ${PIECE_MAX}`
/** Deletes memberships, except one that is not active while the person has tuples or roles there, which would count without it. */
const ENDED = `
  delete from membership m where user_id = $1 and organization_id = any($3) and (status = 'active' or not (
    exists (select 1 from stored_relationship r where r.organization_id = m.organization_id and r.subject = $2
      and (r.expires_at is null or r.expires_at > clock_timestamp()))
    or exists (select 1 from role_grant g where g.organization_id = m.organization_id and g.subject = $2)))
  returning organization_id as id`

/** Ends the first memberships in the transaction that deletes the account, and stores a departure for the rest. */
export async function beginDeparture(tx: Queries, { user, context }: Omit<Departure, 'lookedTo'>): Promise<void> {
  const lookedTo = await endSome(tx, { user, lookedTo: '', context })
  if (lookedTo === null) return
  await tx.query('insert into departure (user_id, looked_to, actor, request_id) values ($1, $2, $3, $4)', [
    user,
    lookedTo,
    context.actor,
    context.requestId,
  ])
}

/** The first departure after this user (exclusive) that nobody else has locked. It is locked until the transaction ends. */
export async function nextDeparture(tx: Queries, after: string): Promise<Departure | null> {
  const [row] = await tx.query<Row>(
    'select * from departure where user_id > $1 order by user_id limit 1 for update skip locked',
    [after],
  )
  if (row === undefined) return null
  const { user_id: user, looked_to: lookedTo, actor, request_id: requestId } = row
  return { user, lookedTo, context: { actor, requestId } }
}

/** Ends one piece of memberships, and stores in the same transaction how far it came. */
export async function goOnDeparting(tx: Queries, departure: Departure): Promise<void> {
  const { user } = departure
  // Another deletion, which has the whole directory, may have locked an organization already that does not come first.
  await lockBeside(tx, DIRECTORY)
  const lookedTo = await endSome(tx, departure)
  if (lookedTo === null) await tx.query('delete from departure where user_id = $1', [user])
  else await tx.query('update departure set looked_to = $2 where user_id = $1', [user, lookedTo])
}

/** @returns the last organization that it read; null when there are no more memberships. */
async function endSome(tx: Queries, { user, lookedTo, context }: Departure): Promise<string | null> {
  const next = (await tx.query<{ id: string }>(NEXT, [user, lookedTo])).map(({ id }) => id)
  if (next.length === 0) return null
  // Nobody else changes the rows that the next statement reads before the transaction ends.
  await lockJournals(tx, next)
  const ended = (await tx.query<{ id: string }>(ENDED, [user, `user:${user}`, next])).map(({ id }) => id)
  await appendToJournals(tx, ended, { kind: 'membership', user, membership: null }, context)
  const initiator = initiatorOf(context.actor, user)
  await appendEvents(
    tx,
    ended.map((organization): OutboxEvent => {
      return { type: 'claims.changed', organization, data: { user, org_role: null, initiating_entity: initiator } }
    }),
  )
  return next.length < PIECE_MAX ? null : (next.at(-1) ?? null)
}
