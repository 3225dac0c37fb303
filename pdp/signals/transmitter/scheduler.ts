/** Decides which streams to serve: those of a new event at once, and every second all that are due. */

import type { Queries } from '../../engine/store/directory.ts'
import type { Log } from '../../shared/process/log.ts'
import type { Deliver } from './deliverer.ts'
import { type Audience, audienceOf, contentOf, type OutboxRow } from './events.ts'
import type { Feed } from './feed.ts'
import { STREAM_COLUMNS, type Stream } from './streams.ts'

const SWEEP_MS = 1_000
/** How many calls to receivers may run, and how many of them to receivers that failed last, so that others need not wait. */
const RUNNING_MAX = 1_000
const FAILING_RUNNING_MAX = 100
/** How far the cursor of a stream without events may be behind. It also moves once a minute, so that the stream shows no lag. */
const PASSED_MIN = 200
const PASSED_MS = 60_000
/** Stored events of a stream are counted again when the outbox has grown by this part of the stream's bound. */
const COUNTED_SHARE = 0.01
/** A pushed stream without events for this long gets a verification event, unasked, as a sign of life (SSF 1.0 section 8.1.4). */
const SILENT_SECONDS = 3_600

type Row = Stream & {
  readonly clientOrganization: string | null
  readonly clientApp: string | null
  readonly isDue: boolean
  readonly hasPending: boolean
  readonly isSilent: boolean
}
/** SQL: true if row `s` of signal_stream needs a sign of life. */
export const SILENT = `s.status = 'enabled' and s.endpoint_url is not null and s.attempts_count = 0
  and greatest(s.created_at, s.last_delivered_at, s.verified_at) < now() - make_interval(secs => ${SILENT_SECONDS})`
const SURVEY = `
  select ${STREAM_COLUMNS}, c.organization_id as "clientOrganization", c.app as "clientApp",
    (s.lease_until is null or s.lease_until < now()) and (s.next_attempt_at is null or s.next_attempt_at <= now()) as "isDue",
    exists (select 1 from signal_pending p where p.stream_id = s.stream_id) as "hasPending",
    ${SILENT} as "isSilent"
  from signal_stream s join client c using (client_id) where s.status <> 'disabled'`
const PASS = `
  update signal_stream t set cursor_seq = $2 where t.cursor_seq < $2 and t.stream_id in (
    select stream_id from signal_stream where stream_id = any($1) for update skip locked)`

type Scheduler = {
  /** Must be called when this stream may have something to send. */
  wake(id: string): void
  /** Must be called after writes of streams: all are then read again. */
  refresh(): void
  /** Resolves at the stream's next wake, when another wait begins, and at the end of `signal`. */
  wait(id: string, signal: AbortSignal): Promise<'woken' | 'ended'>
  close(): Promise<void>
}
/** `wanted`: the number of the stream's newest known event. */
type Entry = { readonly row: Row; readonly audience: Audience; wanted: number }

export function createScheduler(deps: {
  readonly issuer: string
  readonly sql: Queries
  readonly feed: Feed
  readonly deliver: Deliver
  /** Called when the stream needs a sign of life. */
  readonly onSilent: (id: string) => Promise<void>
  /** Called when the stream may hold too many events. False: there is more to count. */
  readonly onHolding: (id: string) => Promise<boolean>
  readonly heldMax: number
  readonly log: Log
}): Scheduler {
  const { issuer, sql, feed, log, deliver, onSilent, onHolding, heldMax } = deps
  const entries = createEntries(issuer, feed)
  const counts = createHeldCounts({ heldMax, onHolding, log })
  const rounds = createRounds({ deliver, log, wanted: (id) => entries.get(id)?.wanted ?? feed.newest() })
  const waits = createWaits()
  const leastBehind = createLeastBehind()
  let closed = false

  function wake(id: string, isFailing = false): void {
    if (waits.wake(id) || closed) return
    if (entries.get(id)?.row.endpointUrl !== null) rounds.begin(id, isFailing)
  }
  function announce(event: OutboxRow): void {
    // A stream that failed last is left to the sweep, when its retry is due.
    for (const { row } of entries.announce(event)) if (row.attemptsCount === 0) wake(row.id)
  }
  const follow = createFollower(feed, { onEvent: announce, onRestored: entries.forget })
  const warn = (err: unknown): void => log.warn({ event: 'signals_not_read', err })
  const unsubscribe = feed.subscribe(() => void follow().catch(warn))

  async function sweep(): Promise<void> {
    const newest = feed.newest()
    if (newest < 0) return
    await follow()
    entries.replace(await sql.query<Row>(SURVEY))
    counts.keep((id) => entries.get(id) !== undefined)
    const behindMin = leastBehind()
    const passed: string[] = []
    for (const entry of entries.all()) {
      const { row } = entry
      const state = stateOf(entry, { newest, behindMin })
      if (state === 'due') wake(row.id, row.attemptsCount > 0)
      if (state === 'passed') passed.push(row.id)
      counts.note(row, newest)
      if (!row.isSilent || row.hasPending) continue
      await onSilent(row.id)
      wake(row.id)
    }
    if (passed.length > 0) await sql.query(PASS, [passed, newest])
    counts.begin()
  }
  const sweeps = createSweeps(() => sweep().catch(warn))

  return {
    wake: (id) => wake(id),
    refresh: sweeps.begin,
    wait: waits.wait,
    async close() {
      closed = true
      unsubscribe()
      waits.close()
      await sweeps.close()
      await counts.close()
      await rounds.close()
    },
  }
}

/** Runs `sweep` every second and on request, one at a time. All requests during a sweep share the next one. */
function createSweeps(sweep: () => Promise<void>) {
  let isOutdated = false
  let closed = false
  let sweeping: Promise<void> | null = null
  function begin(): void {
    isOutdated = true
    sweeping ??= (async () => {
      while (isOutdated && !closed) {
        isOutdated = false
        await sweep()
      }
      sweeping = null
    })()
  }
  const timer = setInterval(begin, SWEEP_MS)
  timer.unref()
  return {
    begin,
    async close() {
      closed = true
      clearInterval(timer)
      await sweeping
    },
  }
}

/** Calls `onEvent` once for each event of the feed. */
function createFollower(
  feed: Feed,
  { onEvent, onRestored }: { readonly onEvent: (row: OutboxRow) => void; readonly onRestored: () => void },
): () => Promise<void> {
  let seen = -1
  return async () => {
    if (seen < 0) seen = feed.newest()
    if (seen > feed.newest()) {
      // The database was restored from a backup, so later events that were seen do not exist.
      seen = feed.newest()
      onRestored()
    }
    while (seen < feed.newest()) {
      const rows = await feed.after(seen)
      for (const row of rows) if (row.seq > seen) onEvent(row)
      seen = Math.max(seen, rows.at(-1)?.seq ?? feed.newest())
    }
  }
}

/** The streams, as of the last sweep. */
function createEntries(issuer: string, feed: Feed) {
  let entries: ReadonlyMap<string, Entry> = new Map()
  let bounded: ReadonlyMap<string | null, readonly Entry[]> = new Map()

  /** The entry for a row. If its settings are unchanged, `announce` has seen all events since, and `wanted` stays. */
  function entryOf(row: Row, before: Entry | undefined): Entry {
    if (before !== undefined && isSame(before.row, row)) return { ...before, row }
    const audience = audienceOf(issuer, row, { organization: row.clientOrganization, app: row.clientApp })
    const ahead = feed.recent(row.cursor)
    const own = ahead?.findLast((event) => contentOf(issuer, event, audience) !== null)
    const isAll = ahead !== null && (ahead.at(-1)?.seq ?? row.cursor) >= feed.newest()
    return { row, audience, wanted: isAll ? (own?.seq ?? row.cursor) : feed.newest() }
  }
  return {
    get: (id: string) => entries.get(id),
    all: () => entries.values(),
    /** Yields the streams that get the event: those bound to its organizations or one above, and those without a bound. */
    *announce(event: OutboxRow): Iterable<Entry> {
      const above = new Set<string | null>([null, ...[...event.ancestors.values()].flat()])
      for (const bound of above)
        for (const entry of bounded.get(bound) ?? []) {
          if (contentOf(issuer, event, entry.audience) === null) continue
          entry.wanted = Math.max(entry.wanted, event.seq)
          yield entry
        }
    },
    replace(rows: readonly Row[]): void {
      entries = new Map(rows.map((row) => [row.id, entryOf(row, entries.get(row.id))]))
      bounded = Map.groupBy(entries.values(), ({ audience }) => audience.bounds.find((bound) => bound !== null) ?? null)
    },
    /** Forgets all entries, so that the next `replace` reads all events again. */
    forget(): void {
      entries = new Map()
    },
  }
}

/** `passed`: the new events are all for other streams. */
function stateOf(
  { row, wanted }: Entry,
  { newest, behindMin }: { readonly newest: number; readonly behindMin: number },
): 'due' | 'passed' | 'idle' {
  const due = row.isDue ? 'due' : 'idle'
  if (row.hasPending || row.announcedNumber !== null) return due
  if (row.status !== 'enabled') return 'idle'
  if (row.cursor < wanted) return due
  return newest - row.cursor < behindMin ? 'idle' : 'passed'
}

/** Returns by how many events a cursor must be behind to be moved on. */
function createLeastBehind(): () => number {
  let passedAtMs = Number.NEGATIVE_INFINITY
  return () => {
    if (performance.now() - passedAtMs < PASSED_MS) return PASSED_MIN
    passedAtMs = performance.now()
    return 1
  }
}

/** Counts stored events of streams outside of the sweeps, so that no stream waits for it. */
function createHeldCounts(deps: {
  readonly heldMax: number
  readonly onHolding: (id: string) => Promise<boolean>
  readonly log: Log
}) {
  const { heldMax, onHolding, log } = deps
  const holding = new Set<string>()
  /** The number of the newest event when each stream was last counted. */
  const counted = new Map<string, number>()
  let counting: Promise<void> | null = null
  let closed = false

  /** True if the stream does not deliver and may store too many events, by their number since its cursor. */
  const isHolding = ({ status, endpointUrl, attemptsCount, cursor }: Row, newest: number): boolean =>
    newest - cursor > heldMax && (status === 'paused' || endpointUrl === null || attemptsCount > 0)

  async function count(): Promise<void> {
    for (const id of holding) {
      holding.delete(id)
      for (let isDone = false; !isDone && !closed; )
        isDone = await onHolding(id).catch((err: unknown) => {
          log.warn({ event: 'signals_not_counted', stream: id, err })
          return true
        })
    }
  }
  return {
    note(row: Row, newest: number): void {
      if (!isHolding(row, newest)) return
      const before = counted.get(row.id)
      if (before !== undefined && newest >= before && newest - before < heldMax * COUNTED_SHARE) return
      counted.set(row.id, newest)
      holding.add(row.id)
    },
    /** Forgets all streams but those kept. */
    keep(isKept: (id: string) => boolean): void {
      for (const id of counted.keys()) if (!isKept(id)) counted.delete(id)
    },
    begin(): void {
      counting ??= count().finally(() => {
        counting = null
      })
    },
    async close() {
      closed = true
      await counting
    },
  }
}

/** The waits of long polls, at most one for each stream. */
function createWaits() {
  const waits = new Map<string, (why: 'woken' | 'ended') => void>()
  let closed = false
  return {
    /** Ends a poll's wait for this stream; false: none waits. */
    wake(id: string): boolean {
      const waiting = waits.get(id)
      waiting?.('woken')
      return waiting !== undefined
    },
    wait: (id: string, signal: AbortSignal) =>
      new Promise<'woken' | 'ended'>((resolve) => {
        waits.get(id)?.('ended')
        const done = (why: 'woken' | 'ended'): void => {
          if (waits.get(id) === done) waits.delete(id)
          signal.removeEventListener('abort', abort)
          resolve(why)
        }
        const abort = (): void => done('ended')
        signal.addEventListener('abort', abort, { once: true })
        waits.set(id, done)
        if (signal.aborted || closed) abort()
      }),
    close(): void {
      closed = true
      for (const end of [...waits.values()]) end('ended')
    },
  }
}

/** Compares the columns that decide which events the stream gets. */
const isSame = (a: Row, b: Row): boolean =>
  a.clientOrganization === b.clientOrganization &&
  a.clientApp === b.clientApp &&
  a.subjectFormat === b.subjectFormat &&
  String(a.eventsRequested) === String(b.eventsRequested)

/** Runs a stream's rounds one at a time in this process, with another one after each if events came meanwhile. */
function createRounds(deps: {
  readonly deliver: Deliver
  readonly log: Log
  /** The number of the newest event of a stream. */
  readonly wanted: (id: string) => number
}) {
  const { deliver, log, wanted } = deps
  const running = new Map<string, Promise<void>>()
  const again = new Set<string>()
  const waiting = new Map<string, boolean>()
  let failingCount = 0
  let closed = false

  function begin(id: string, isFailing: boolean): void {
    if (running.has(id)) again.add(id)
    else waiting.set(id, isFailing)
    pump()
  }

  function pump(): void {
    for (const [id, isFailing] of waiting) {
      if (closed || running.size >= RUNNING_MAX) return
      if (isFailing && failingCount >= FAILING_RUNNING_MAX) continue
      waiting.delete(id)
      if (isFailing) failingCount += 1
      running.set(id, run(id, isFailing))
    }
  }

  async function run(id: string, isFailing: boolean): Promise<void> {
    try {
      for (let next = true; next && !closed; ) {
        again.delete(id)
        const round = await deliver(id, wanted(id))
        next = round === 'more' || (round === 'nothing' && again.has(id))
      }
    } catch (err) {
      log.warn({ event: 'signals_not_sent', stream: id, err })
    }
    running.delete(id)
    again.delete(id)
    if (isFailing) failingCount -= 1
    pump()
  }

  return {
    begin,
    async close() {
      closed = true
      await Promise.all(running.values())
    },
  }
}
