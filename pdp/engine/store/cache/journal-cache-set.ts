/** The caches of all journals, with the statements that update and fill them. */

import { grouped } from '../../../shared/domain/grouped.ts'
import type { JournalId } from '../../../shared/domain/journal.ts'
import { Batcher, type Schedule } from '../batcher.ts'
import type { RowKey, RowSet, Store } from '../contract.ts'
import { DELTA_ENTRIES_MAX, JournalCache, type PendingLoad, type Reading, type Target } from './journal-cache.ts'
import { COMMON_LOGS } from './question.ts'
import { RowBudget } from './row-budget.ts'

/** How many caches are kept; when there are more, the idle ones are dropped. */
const KEPT_MAX = 10_000
type Behind = { readonly cache: JournalCache; readonly target: Target }

export class JournalCaches {
  /** Counts statements and answers, to know which statement was sent after which answer. */
  tick = 0
  readonly #store: Store
  readonly #budget: RowBudget
  readonly #caches = new Map<JournalId, JournalCache>()
  readonly #deltas: Batcher<JournalCache>

  constructor(options: { readonly store: Store; readonly cacheBytesMax: number; readonly schedule: Schedule }) {
    this.#store = options.store
    this.#budget = new RowBudget(options.cacheBytesMax)
    this.#deltas = new Batcher({
      runningMax: 2,
      schedule: options.schedule,
      run: (caches) => this.#delta(caches),
      fail: (cache, error) => void cache.release(error),
    })
  }

  /** Bytes and number of row sets in memory, and how many were evicted. */
  get size(): { readonly bytes: number; readonly rowSets: number; readonly evicted: number } {
    return { bytes: this.#budget.bytes, rowSets: this.#budget.count, evicted: this.#budget.evictedCount }
  }

  of(log: JournalId): JournalCache {
    let cache = this.#caches.get(log)
    if (cache === undefined) {
      if (this.#caches.size > KEPT_MAX) this.#dropIdle()
      cache = new JournalCache(log, this.#budget)
      this.#caches.set(log, cache)
    }
    return cache
  }

  #dropIdle(): void {
    for (const [log, cache] of this.#caches) if (cache.idle && !COMMON_LOGS.includes(log)) this.#caches.delete(log)
  }

  /** Calls `run` when all caches have reached their targets; with an error if one could not. */
  bringForward(all: readonly Behind[], run: (error?: unknown) => void): void {
    let left = all.length
    let failed: unknown
    for (const behind of all) {
      this.#catchUp(behind, (error) => {
        failed ??= error
        if (--left === 0) run(failed)
      })
    }
  }

  #catchUp({ cache, target }: Behind, run: (error?: unknown) => void): void {
    if (cache.await({ target, run })) this.#deltas.add(cache)
  }

  /** Reads entries from each cache's position to the furthest target that a question needs, and applies them. */
  async #delta(caches: readonly JournalCache[]): Promise<void> {
    const wanted = caches.flatMap((cache) => {
      const { target, position } = cache
      return target === null ? [] : [{ cache, target, from: position }]
    })
    const ranges = wanted.map(({ cache, target, from }) => ({
      log: cache.log,
      from: from.revision,
      to: target.position.revision,
    }))
    const entries = await this.#store.entries(ranges, (DELTA_ENTRIES_MAX + 1) * ranges.length)
    this.tick++
    const byJournal = grouped(entries, (entry) => entry.log)
    for (const { cache, target, from } of wanted) {
      cache.advance({ from, target, entries: byJournal.get(cache.log) ?? [] }, this.tick)
    }
    for (const { cache } of wanted) if (cache.release()) this.#deltas.add(cache)
  }

  /**
   * Loads row sets and the journals' positions by one statement. `done` gets the reading after the rows are installed. Throws PdpError
   * `store_unavailable`.
   */
  async load(logs: readonly JournalId[], keys: readonly RowKey[], done: (reading: Reading) => void): Promise<void> {
    const sentTick = ++this.tick
    const loads = new Map(logs.map((log) => [log, this.of(log).startLoad()]))
    try {
      const { vector, rows } = await this.#store.rows(logs, keys)
      this.tick++
      const reading = { vector, sentTick }
      this.#install(reading, loads, { rows, done: () => done(reading) })
    } catch (err) {
      for (const [log, load] of loads) this.of(log).loads.delete(load)
      throw err
    }
  }

  /** Installs rows when their journal's cache has reached the position at which they were read; then calls `done`. */
  #install(
    reading: Reading,
    loads: ReadonlyMap<JournalId, PendingLoad>,
    of: { rows: readonly RowSet[]; done: () => void },
  ): void {
    const byJournal = grouped(of.rows, (row) => row.key.log)
    let left = loads.size
    for (const [log, load] of loads) {
      const cache = this.of(log)
      const target = targetIn(reading, log)
      const finish = (): void => {
        if (target === null) cache.loads.delete(load)
        else cache.finishLoad(load, target.position, byJournal.get(log) ?? [])
        if (--left === 0) of.done()
      }
      if (target === null || cache.compare(target, this.tick) !== 'behind') finish()
      // If the delta fails, the rows are not installed, and the questions fail by their own delta.
      else this.#catchUp({ cache, target }, finish)
    }
  }
}

/** The journal's position at the reading; null when the journal did not exist. */
export function targetIn(reading: Reading, log: JournalId): Target | null {
  const position = reading.vector.logs.get(log)
  return position === undefined ? null : { position, reading }
}
