/** Events for receivers, stored in the transaction of the change that they report. */
import { randomUUID } from 'node:crypto'
import type { Change, WriteContext } from '../../../shared/domain/change.ts'
import { ENVIRONMENT, type JournalId, type JournalPosition } from '../../../shared/domain/journal.ts'
import type { JsonObject } from '../../../shared/domain/json.ts'
import { initiatorOf, type OutboxEventType } from '../../../shared/domain/outbox/events.ts'
import { clientOf, isDelegation } from '../../../shared/domain/subjects.ts'
import type { Queries } from '../directory.ts'

/** `organization`: the organization that the event is about; null for the environment. */
export type OutboxEvent = {
  readonly type: OutboxEventType
  readonly organization: string | null
  readonly data: JsonObject
  /**
   * A user. The organizations of which the user is an active member are added to `tenants` in the data, as they may get the event
   * (trigger `know_tenants`). A transaction that writes a membership of the user waits for this one, or this one for it.
   */
  readonly tenantsOf?: string
}

/**
 * Stores events, which readers number (number-events.ts). The journal that they are about must be locked. `before`: an insert that
 * the same statement makes, also when there are no events.
 */
export async function appendEvents(
  sql: Queries,
  events: readonly OutboxEvent[],
  before?: { readonly text: string; readonly values: readonly unknown[] },
): Promise<void> {
  if (events.length === 0) {
    if (before !== undefined) await sql.query(before.text, before.values)
    return
  }
  const { text, values } = before ?? { text: '', values: [] }
  const $ = (n: number): string => `$${values.length + n}`
  await sql.query(
    `${text === '' ? '' : `with before as (${text})`}
     insert into outbox_arrival (event_id, organization_id, type, member, payload)
     select q.id, q.organization, q.type, q.member, q.payload
     from unnest(${$(1)}::text[], ${$(2)}::text[], ${$(3)}::text[], ${$(4)}::jsonb[], ${$(5)}::text[])
       with ordinality q(id, organization, type, payload, member, n) order by q.n`,
    [
      ...values,
      events.map(() => randomUUID()),
      events.map((e) => e.organization),
      events.map((e) => e.type),
      events.map((e) => JSON.stringify(e.data)),
      events.map((e) => e.tenantsOf ?? null),
    ],
  )
}

/** One event for all entitlements of a write; none when it wrote no entitlement. */
export function entitlementEvents(write: {
  readonly log: JournalId
  readonly position: Pick<JournalPosition, 'entitlementVersion'>
  readonly changes: readonly Change[]
}): readonly OutboxEvent[] {
  const keys = write.changes.flatMap((c) => (c.kind === 'entitlement' ? [c.key] : []))
  const announced = write.changes.some((c) => c.kind === 'entitlements')
  if (keys.length === 0 && !announced) return []
  // Null: an external source announced a change without its keys.
  const data = { organization: write.log, keys: announced ? null : keys, version: write.position.entitlementVersion }
  return [{ type: 'entitlement.updated', organization: write.log, data }]
}

/** One event for each delegation to a client that a write deletes. A delegation that expires needs no write, so it has no event. */
export const delegationEvents = ({ log, changes, context }: ClaimsWrite): readonly OutboxEvent[] =>
  changes.flatMap((change): readonly OutboxEvent[] => {
    if (change.kind !== 'tuple' || change.op !== 'delete' || !isDelegation(change.tuple)) return []
    const user = change.tuple.subject.slice(USER.length)
    const client = clientOf(change.tuple)
    const data = { organization: log, user, client, initiating_entity: initiatorOf(context.actor, user) }
    return [{ type: 'delegation.ended', organization: log, data }]
  })

type ClaimsWrite = { readonly log: JournalId; readonly changes: readonly Change[]; readonly context: WriteContext }

/** One event for each person whose membership or roles a write changed, with their new tier and roles. */
export async function claimsEvents(sql: Queries, write: ClaimsWrite): Promise<readonly OutboxEvent[]> {
  const memberships = new Map(write.changes.flatMap((c) => (c.kind === 'membership' ? [[c.user, c.membership]] : [])))
  const apps = new Map<string, Set<string | null>>()
  for (const change of write.changes) {
    if (change.kind !== 'role_grant' || !change.grant.subject.startsWith(USER)) continue
    const { subject, app } = change.grant
    apps.set(subject, (apps.get(subject) ?? new Set()).add(app))
  }
  const subjects = new Set(apps.keys())
  if (memberships.size === 0 && subjects.size === 0) return []
  const rows =
    subjects.size === 0
      ? []
      : await sql.query<{ subject: string; app: string | null; role: string }>(
          'select subject, app, role from role_grant where organization_id = $1 and subject = any($2) order by role, app',
          [write.log, [...subjects]],
        )
  const users = new Set([...memberships.keys(), ...[...subjects].map((subject) => subject.slice(USER.length))])
  return [...users].map((user) => {
    const membership = memberships.get(user)
    const subject = USER + user
    const granted = rows.flatMap((row) => (row.subject === subject ? [{ app: row.app, role: row.role }] : []))
    return {
      type: 'claims.changed',
      organization: write.log === ENVIRONMENT ? null : write.log,
      data: {
        user,
        initiating_entity: initiatorOf(write.context.actor, user),
        // A tier counts only while the membership is active.
        ...(membership === undefined ? {} : { org_role: membership?.status === 'active' ? membership.role : null }),
        ...(subjects.has(subject) ? { roles: granted, apps: [...(apps.get(subject) ?? [])] } : {}),
      },
    }
  })
}
const USER = 'user:'
