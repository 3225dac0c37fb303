/** Events that others wait for, written in the transaction of the change that they report. */
import { randomUUID } from 'node:crypto'
import type { Change } from '../../domain/change.ts'
import type { JsonObject } from '../../domain/json.ts'
import type { LogId, LogPosition } from '../../domain/log.ts'
import type { Sql } from '../directory.ts'

/** Row of the table `revision` whose lock numbers events in the order in which their transactions commit. */
const EVENTS = '#events'

/** `organization`: whose event it is; null when it is the environment's. */
export type OutboxEvent = {
  readonly type: 'entitlement.updated' | 'session.revoked'
  readonly organization: string | null
  readonly data: JsonObject
}

/**
 * Numbers and stores events. Call it last in the transaction: from here to the commit no other transaction can store an
 * event, so a reader that has seen a number has seen every smaller one.
 */
export async function appendEvents(sql: Pick<Sql, 'query'>, events: readonly OutboxEvent[]): Promise<void> {
  if (events.length === 0) return
  const [row] = await sql.query<{ revision: number }>(
    'update revision set revision = revision + $2 where organization_id = $1 returning revision',
    [EVENTS, events.length],
  )
  if (row === undefined) throw new Error('the event log has no row')
  const first = row.revision - events.length + 1
  await sql.query(
    `insert into outbox (seq, event_id, organization_id, type, payload)
     select $1 + q.n - 1, q.id, q.organization, q.type, q.payload
     from unnest($2::text[], $3::text[], $4::text[], $5::jsonb[]) with ordinality q(id, organization, type, payload, n)`,
    [
      first,
      events.map(() => randomUUID()),
      events.map((e) => e.organization),
      events.map((e) => e.type),
      events.map((e) => JSON.stringify(e.data)),
    ],
  )
}

/** One event for all entitlements of a write; none when it wrote no entitlement. */
export function entitlementEvents(write: {
  readonly log: LogId
  readonly position: Pick<LogPosition, 'entitlementVersion'>
  readonly changes: readonly Change[]
}): readonly OutboxEvent[] {
  const keys = write.changes.flatMap((c) => (c.kind === 'entitlement' ? [c.key] : []))
  const announced = write.changes.some((c) => c.kind === 'entitlements')
  if (keys.length === 0 && !announced) return []
  // Null: an external source did not say which.
  const data = { organization: write.log, keys: announced ? null : keys, version: write.position.entitlementVersion }
  return [{ type: 'entitlement.updated', organization: write.log, data }]
}
