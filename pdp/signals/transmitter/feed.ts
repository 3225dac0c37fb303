/** Follows the outbox: reads each new event once for all streams, keeps the newest in memory, and calls listeners. */
import type { Queries } from '../../engine/store/directory.ts'
import { newestEvent, numberEvents } from '../../engine/store/number-events.ts'
import { type OutboxRow, organizationsOf } from './events.ts'

const POLL_MS = 250
/** The delay between a commit here and the reading, so that one reading serves several commits; longer while many come. */
const POKED_MS = 5
const POKED_AGAIN_MS = 25
const KEPT_MAX = 5_000
const PAGE_MAX = 500

export type Feed = {
  /** The highest event number that this process knows. */
  newest(): number
  /** The events after number `after` in order, at most `PAGE_MAX`; empty: this process knows none yet. */
  after(after: number): Promise<readonly OutboxRow[]>
  /** Does what `after` does, including all events that were committed before the call. */
  fresh(after: number): Promise<readonly OutboxRow[]>
  /** Does what `after` does from memory alone; null when some of the events are not in memory. */
  recent(after: number): readonly OutboxRow[] | null
  /** Must be called after a transaction of this process, which may have made events. */
  poke(): void
  /** Calls `listener` when there are new events, until the returned function is called. */
  subscribe(listener: () => void): () => void
  close(): Promise<void>
}

const READ = `
  select seq, event_id as id, txn, type, organization_id as organization, payload as data,
    (extract(epoch from created_at) * 1000)::float8 as "atMs"
  from outbox where seq > $1 order by seq limit ${PAGE_MAX}`
const ANCESTORS = `
  with recursive up(id, above, depth) as (
    select organization_id, organization_id, 1 from organization where organization_id = any($1)
    union all select up.id, o.parent_id, up.depth + 1 from up join organization o on o.organization_id = up.above
      where o.parent_id is not null and up.depth < 100)
  select id, array_agg(above) as above from up group by id`

/** `onError` is called when the database does not answer; the feed tries again. */
export function createFeed(deps: { readonly sql: Queries; readonly onError: (error: unknown) => void }): Feed {
  const { sql, onError } = deps
  const listeners = new Set<() => void>()
  let kept: readonly OutboxRow[] = []
  let newest = -1

  async function follow(): Promise<boolean> {
    const before = newest
    try {
      await numberEvents(sql)
      const stored = await newestEvent(sql)
      // The first reading: it also reads older events, for streams that are behind. Or the database was restored from a backup:
      // the events in memory with later numbers do not exist there.
      const isNew = before < 0 || stored < before
      kept = isNew
        ? await readUpTo(sql, stored, Math.max(0, stored - KEPT_MAX), [])
        : await readUpTo(sql, stored, before, kept)
      // A page may hold events that were numbered meanwhile.
      newest = Math.max(stored, kept.at(-1)?.seq ?? 0)
    } catch (err) {
      onError(err)
    }
    if (newest === before) return false
    for (const listener of [...listeners]) listener()
    return true
  }
  const turns = createTurns(follow)

  function recent(after: number): readonly OutboxRow[] | null {
    if (newest >= 0 && after >= newest) return []
    const first = kept[0]
    if (first === undefined || after < first.seq - 1) return null
    // Numbers have gaps only where old events were deleted.
    const place = after + 1 - first.seq
    const next = kept[place]?.seq === after + 1 ? place : kept.findIndex(({ seq }) => seq > after)
    return next < 0 ? [] : kept.slice(next, next + PAGE_MAX)
  }

  return {
    newest: () => newest,
    recent,
    after: async (after) => recent(after) ?? read(sql, after),
    async fresh(after) {
      const known = recent(after) ?? []
      if (known.length > 0) return known
      await numberEvents(sql)
      return read(sql, after)
    },
    poke: turns.poke,
    subscribe(listener) {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
    close: turns.close,
  }
}

/** Calls `follow` at once, every `POLL_MS`, and earlier after a poke. It tells whether there were new events, and never throws. */
function createTurns(follow: () => Promise<boolean>) {
  let following: Promise<void> | null = null
  let isPokedAgain = false
  let newsMs = Number.NEGATIVE_INFINITY
  let timer: NodeJS.Timeout | null = null
  let dueMs = Number.POSITIVE_INFINITY
  let closed = false

  function schedule(ms: number): void {
    const atMs = performance.now() + ms
    if (closed || atMs >= dueMs) return
    if (timer !== null) clearTimeout(timer)
    dueMs = atMs
    timer = setTimeout(run, ms)
    timer.unref()
  }
  function run(): void {
    dueMs = Number.POSITIVE_INFINITY
    timer = null
    isPokedAgain = false
    following = follow().then((isNews) => {
      following = null
      if (isNews) newsMs = performance.now()
      schedule(isPokedAgain ? POKED_AGAIN_MS : POLL_MS)
    })
  }
  schedule(0)
  return {
    poke(): void {
      if (following === null) schedule(performance.now() - newsMs < POKED_AGAIN_MS ? POKED_AGAIN_MS : POKED_MS)
      else isPokedAgain = true
    },
    async close() {
      closed = true
      if (timer !== null) clearTimeout(timer)
      await following
    },
  }
}

/** The newest `KEPT_MAX` of `before` and all after the number `at`. */
async function readUpTo(
  sql: Queries,
  newest: number,
  at: number,
  before: readonly OutboxRow[],
): Promise<readonly OutboxRow[]> {
  let kept = before
  while (at < newest) {
    const page = await read(sql, at)
    kept = [...kept, ...page].slice(-KEPT_MAX)
    // Events that are missing from the page were deleted meanwhile.
    at = page.at(-1)?.seq ?? newest
  }
  return kept
}

async function read(sql: Queries, after: number): Promise<readonly OutboxRow[]> {
  const rows = await sql.query<Omit<OutboxRow, 'ancestors'>>(READ, [after])
  const organizations = [...new Set(rows.flatMap(organizationsOf))]
  const found =
    organizations.length === 0
      ? []
      : await sql.query<{ id: string; above: readonly string[] }>(ANCESTORS, [organizations])
  const ancestors = new Map(found.map(({ id, above }) => [id, above]))
  return rows.map((row) => ({ ...row, ancestors }))
}
