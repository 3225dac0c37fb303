/** Locks a log, to read what a write depends on. */
import type { LogId } from '../../shared/domain/change-log.ts'
import type { Queries } from './directory.ts'

/** Later reads of this transaction see what earlier holders of the lock wrote, and nothing changes until its end. */
export async function lockLog(sql: Queries, log: LogId): Promise<void> {
  await sql.query('select 1 from revision where organization_id = $1 for update', [log])
}
