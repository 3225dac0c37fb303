/** Locks a journal, to read what a write depends on. */
import type { JournalId } from '../../shared/domain/journal.ts'
import type { Queries } from './directory.ts'

/** Later reads of this transaction see what earlier holders of the lock wrote, and nothing changes until its end. */
export async function lockJournal(sql: Queries, log: JournalId): Promise<void> {
  await sql.query('select 1 from revision where organization_id = $1 for update', [log])
}
