/** Reads the outbox: events in the order of their commits, without gaps. */

import type { Queries } from '../../engine/store/directory.ts'
import { newestEvent, numberEvents } from '../../engine/store/number-events.ts'
import type { JsonObject } from '../../shared/domain/json.ts'
import { PUBLISHED_EVENTS } from '../../shared/domain/outbox/events.ts'

const POLL_MS = 250
const PAGE_MAX = 100
const WAITING_MAX = 200

export type OutboxRow = {
  readonly seq: number
  readonly id: string
  readonly type: string
  readonly organization: string | null
  /** An instant in ISO 8601. */
  readonly at: string
  readonly data: JsonObject
}
export type Events = {
  /**
   * A page of events after number `after`; after the newest event if none has this number yet, as in a restored database. Waits up to
   * `waitMs` for the first event, else the page is empty.
   */
  after(
    after: number,
    options: { readonly waitMs: number; readonly signal: AbortSignal },
  ): Promise<{ readonly rows: readonly OutboxRow[]; readonly next: number }>
  close(): void
}

const READ = `
  select seq, event_id as id, type, organization_id as organization, payload as data,
    to_char(created_at at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') as at
  from outbox where seq > $1 and type = any($2) order by seq limit ${PAGE_MAX}`

/** The numbers of events have no gaps, and follow the order of commits: behind an event that was read, no earlier one appears. */
export function createEvents({ sql }: { readonly sql: Queries }): Events {
  const waiting = new Set<() => void>()
  let seen = -1
  let timer: NodeJS.Timeout | null = null

  /** One poll for all waiting readers, which stops when no reader waits. */
  async function currentView(): Promise<void> {
    timer = null
    try {
      await numberEvents(sql)
      const [row] = await sql.query<{ seq: number | null }>('select max(seq) as seq from outbox')
      const newest = row?.seq ?? 0
      if (newest !== seen) for (const wake of [...waiting]) wake()
      seen = newest
    } catch {
      for (const wake of [...waiting]) wake() // their own read reports the error
    }
    schedule()
  }
  function schedule(): void {
    if (timer === null && waiting.size > 0) timer = setTimeout(() => void currentView(), POLL_MS)
  }

  function pause(ms: number, signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const done = (): void => {
        clearTimeout(limit)
        waiting.delete(done)
        signal.removeEventListener('abort', done)
        resolve()
      }
      const limit = setTimeout(done, ms)
      waiting.add(done)
      signal.addEventListener('abort', done, { once: true })
      schedule()
    })
  }

  return {
    async after(asked, { waitMs, signal }) {
      const untilMs = performance.now() + waitMs
      for (;;) {
        await numberEvents(sql)
        const after = Math.min(asked, await newestEvent(sql))
        const rows = await sql.query<OutboxRow>(READ, [after, PUBLISHED_EVENTS])
        const leftMs = untilMs - performance.now()
        if (rows.length > 0 || after < asked || leftMs <= 0 || signal.aborted || waiting.size >= WAITING_MAX)
          return { rows, next: rows.at(-1)?.seq ?? after }
        await pause(leftMs, signal)
      }
    },
    close() {
      if (timer !== null) clearTimeout(timer)
      for (const wake of [...waiting]) wake()
    },
  }
}
