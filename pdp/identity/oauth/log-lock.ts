/** Waiting for the other writers of a log before reading what a write depends on. */
import type { LogId } from '../../domain/log.ts'
import type { Sql } from '../../store/directory.ts'

/** What is read afterwards in this transaction holds what the lock's former holder wrote, and stays until the end. */
export async function lockLog(sql: Pick<Sql, 'query'>, log: LogId): Promise<void> {
  await sql.query('select 1 from revision where organization_id = $1 for update', [log])
}
