/** Raises a journal's revision, which must be the first statement of every writing transaction, and stores its entries. */
import { randomBytes } from 'node:crypto'
import type { Change, WriteContext } from '../../../shared/domain/change.ts'
import { PdpError } from '../../../shared/domain/errors.ts'
import type { JournalId, JournalPosition } from '../../../shared/domain/journal.ts'
import type { Queries } from '../directory.ts'

type PositionRow = { revision: number; write_id: string; entitlement_version: number; entitlement_write_id: string }
/** A journal's position before and after a write raised it. */
export type Raised = { readonly before: JournalPosition; readonly after: JournalPosition }

/** A signed 64-bit integer as text. It tells the writes of a restored database from those that it has lost. */
const randomWriteId = (): string => randomBytes(8).readBigInt64BE().toString()

// `for update` returns the newest committed row, also when the statement had to wait for another writer.
const RAISE = `
  with before as (
    select revision, write_id, entitlement_version, entitlement_write_id from revision
    where organization_id = $1 and not closed for update),
  after as (
    update revision r set revision = b.revision + 1, write_id = $2, entitlement_version = b.entitlement_version + $3,
      entitlement_write_id = case when $3 = 0 then b.entitlement_write_id else $2 end
    from before b where r.organization_id = $1
    returning r.revision, r.write_id, r.entitlement_version, r.entitlement_write_id)
  select revision, write_id::text, entitlement_version, entitlement_write_id::text from before
  union all select revision, write_id::text, entitlement_version, entitlement_write_id::text from after
  order by revision`

/**
 * Locks the journal's revision row until the transaction ends, and raises it. Call it before any statement that reads what
 * the write depends on: only the snapshot of a later statement is taken after the lock.
 * Throws PdpError `organization_unknown` when the journal does not exist.
 */
export async function raiseRevision(sql: Queries, log: JournalId, options: { entitlements: boolean }): Promise<Raised> {
  const [before, after] = await sql.query<PositionRow>(RAISE, [log, randomWriteId(), options.entitlements ? 1 : 0])
  if (before === undefined || after === undefined)
    throw new PdpError('organization_unknown', `there is no organization ${log}`)
  return { before: positionOf(before), after: positionOf(after) }
}

const positionOf = (row: PositionRow): JournalPosition => ({
  revision: row.revision,
  writeId: row.write_id,
  entitlementVersion: row.entitlement_version,
  entitlementWriteId: row.entitlement_write_id,
})

type Entries = { log: JournalId; position: JournalPosition; changes: readonly Change[]; context: WriteContext }

/** Stores the entries of a raised revision, in order. There must be at least one: a revision without entries looks like a gap. */
export async function storeEntries(sql: Queries, entries: Entries): Promise<void> {
  const { text, values } = entriesInsert(entries)
  await sql.query(text, values)
}

/** The statement that stores the entries, with parameters `$1` to `$6`. */
export function entriesInsert({ log, position, changes, context }: Entries): {
  readonly text: string
  readonly values: readonly unknown[]
} {
  if (changes.length === 0) throw new TypeError('a revision needs at least one entry')
  const text = `
    insert into change_log (organization_id, revision, seq, write_id, change, actor, request_id)
    select $1, $2, q.seq, $3, q.change, $5, $6 from unnest($4::jsonb[]) with ordinality q(change, seq)`
  const documents = changes.map((change) => JSON.stringify(change))
  return { text, values: [log, position.revision, position.writeId, documents, context.actor, context.requestId] }
}

const APPEND_TO_LOGS = `
  with raised as (
    update revision r set revision = r.revision + 1, write_id = q.write_id
    from unnest($1::text[], $2::bigint[]) q(log, write_id) where r.organization_id = q.log and not r.closed
    returning r.organization_id, r.revision, r.write_id)
  insert into change_log (organization_id, revision, seq, write_id, change, actor, request_id)
  select organization_id, revision, 1, write_id, $3::jsonb, $4, $5 from raised`

/** Does what appendJournal does, with one change, for each of these journals, which must be locked. */
export async function appendToJournals(
  sql: Queries,
  logs: readonly JournalId[],
  change: Change,
  { actor, requestId }: WriteContext,
): Promise<void> {
  if (logs.length === 0) return
  await sql.query(APPEND_TO_LOGS, [logs, logs.map(randomWriteId), JSON.stringify(change), actor, requestId])
}

/** Raises a journal and stores entries about a write to other tables, which follows. Call it first in the transaction. */
export async function appendJournal(
  sql: Queries,
  log: JournalId,
  changes: readonly Change[],
  context: WriteContext,
): Promise<number> {
  const { after: position } = await raiseRevision(sql, log, { entitlements: false })
  await storeEntries(sql, { log, position, changes, context })
  return position.revision
}
