/** Locks a journal, or one person's part of the directory, before reading what a write depends on. */
import { DIRECTORY, type JournalId } from '../../shared/domain/journal.ts'
import type { Queries } from './directory.ts'

/** Locks the journal until the transaction ends. Later reads of the transaction see what earlier holders of the lock wrote. */
export async function lockJournal(sql: Queries, log: JournalId): Promise<void> {
  await sql.query('select 1 from revision where organization_id = $1 for update', [log])
}

// `for key share` is compatible with itself, but not with the locks that lockJournal and a raised revision take.
const LOCK_PERSON = `
  with beside as materialized (select 1 from revision where organization_id = '${DIRECTORY}' for key share)
  select 1 from user_account, beside where user_id = $1 for no key update of user_account`

/**
 * The lock for what people change of their own: it waits for writers of the same person, and for a holder of the whole
 * directory's lock. Its holder must store entries of `#directory` by appendArrivals: two that raised the revision would deadlock.
 */
export async function lockPerson(sql: Queries, user: string): Promise<void> {
  await sql.query(LOCK_PERSON, [user])
}
