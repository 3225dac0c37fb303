/** Writes entries of the identity service to the logs and the outbox, in the same transaction as the change that they report. */

import type { Queries } from '../../engine/store/directory.ts'
import type { Change, WriteContext } from '../../shared/domain/change.ts'
import type { JournalId } from '../../shared/domain/journal.ts'
import type { JsonObject } from '../../shared/domain/json.ts'
import type { OutboxEventType } from '../../shared/domain/outbox/events.ts'

/** Locks and raises a log and stores entries inside the caller's transaction. */
export type AppendJournal = (
  sql: Queries,
  log: JournalId,
  changes: readonly Change[],
  context: WriteContext,
) => Promise<number>
export type IdentityEvent = {
  readonly type: OutboxEventType
  readonly organization: string | null
  readonly data: JsonObject
  readonly tenantsOf?: string
}
/** Numbers and stores events; must come last in the transaction. */
export type AppendEvents = (sql: Queries, events: readonly IdentityEvent[]) => Promise<void>
