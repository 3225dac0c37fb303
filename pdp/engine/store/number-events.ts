/** Numbers events. Writers store events without a number, so that they do not wait for each other; readers number them later. */
import type { Queries } from './directory.ts'

/** How many events the trigger `number_events` numbers in one statement. */
const PIECE_ROWS = 5_000
const NUMBER = `
  update revision set revision = revision where organization_id = '#events'
    and (select position from outbox_arrival order by position limit 1) is not null
  returning (select count(*)::int from (select from outbox_arrival limit ${PIECE_ROWS + 1}) arrived) as count`

/**
 * Gives numbers to all events committed before the call, and moves them to `outbox`. Numbers have no gaps. An event that was committed
 * before another was stored has the smaller one.
 */
export async function numberEvents(sql: Queries): Promise<void> {
  let left = true
  while (left) {
    const [row] = await sql.query<{ count: number }>(NUMBER)
    left = row !== undefined && row.count > PIECE_ROWS
  }
}

export async function newestEvent(sql: Queries): Promise<number> {
  const [row] = await sql.query<{ newest: number }>(
    "select revision as newest from revision where organization_id = '#events'",
  )
  return row?.newest ?? 0
}
