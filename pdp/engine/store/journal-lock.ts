/** Locks a journal, or what it says of one person, to read what a write depends on. */
import { DIRECTORY, type JournalId } from '../../shared/domain/journal.ts'
import type { Queries } from './directory.ts'

/** Later reads of this transaction see what earlier holders of the lock wrote, and nothing changes until its end. */
export async function lockJournal(sql: Queries, log: JournalId): Promise<void> {
  await sql.query('select 1 from revision where organization_id = $1 for update', [log])
}

// The lock of the row lets others of its kind in, and none that lockJournal or a raised revision takes.
const LOCK_PERSON = `
  with beside as materialized (select 1 from revision where organization_id = '${DIRECTORY}' for key share)
  select 1 from user_account, beside where user_id = $1 for no key update of user_account`

/**
 * The same for what people change of their own: writers wait for those of the same person, and for who holds the whole
 * directory's lock. Entries of `#directory` must arrive without a revision then (arrivals.ts): two that raised it would deadlock.
 */
export async function lockPerson(sql: Queries, user: string): Promise<void> {
  await sql.query(LOCK_PERSON, [user])
}
