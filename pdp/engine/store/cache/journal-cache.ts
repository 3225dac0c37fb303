/** The cached rows of one journal, and their position: exactly the store's content at one revision, moving only forward. */
import type { JournalId, JournalPosition, Vector } from '../../../shared/domain/journal.ts'
import type { JournalEntry, RowKey, RowSet, SubjectRow } from '../contract.ts'
import { JournalRows } from './journal-rows.ts'
import type { RowBudget } from './row-budget.ts'

/** The positions that one statement read, and when it was sent (`JournalCaches.tick`). */
export type Reading = { readonly vector: Vector; readonly sentTick: number }
export type Target = { readonly position: JournalPosition; readonly reading: Reading }
/** A load under way. `entries` are applied to the cache meanwhile, and are replayed on the rows that it brings. */
export type PendingLoad = { readonly generation: number; readonly startedAt: number; readonly entries: JournalEntry[] }
type Waiter = { readonly target: Target; readonly run: (error?: unknown) => void }

export const DELTA_ENTRIES_MAX = 1_000
const VOID: JournalPosition = { revision: -1, writeId: '', entitlementVersion: 0, entitlementWriteId: '' }

export class JournalCache {
  readonly log: JournalId
  readonly rows: JournalRows
  position: JournalPosition = VOID
  /** The reading that the position was taken from. */
  reachedBy: Reading | null = null
  /** The tick at which an answer of the store last confirmed the position. */
  confirmedTick = 0
  /** Raised whenever the cache is emptied: loads of an older generation are discarded. */
  generation = 0
  readonly loads = new Set<PendingLoad>()
  #waiters: Waiter[] = []

  constructor(log: JournalId, budget: RowBudget) {
    this.log = log
    this.rows = new JournalRows(log, budget)
  }

  get idle(): boolean {
    return this.rows.empty && this.loads.size === 0 && this.#waiters.length === 0
  }

  /**
   * How the cache's position relates to the target: `at` it, `behind` it or `ahead` of it. `late`: same revision, other write
   * id, but the statement is too old to decide which is right. A statement that was sent after the position was confirmed
   * and does not continue it shows that the store lost history: the cache is emptied.
   */
  compare(target: Target, tick: number): 'at' | 'behind' | 'ahead' | 'late' {
    const { position } = target
    if (position === this.position) return 'at' // the usual case: nothing has moved
    const same = this.position.revision === position.revision && this.position.writeId === position.writeId
    if (same) return 'at'
    const { sentTick } = target.reading
    const newer = position.revision > this.position.revision || sentTick > this.confirmedTick
    if (newer && this.rows.empty && this.loads.size === 0) {
      this.rows.clear() // there are no rows to bring forward, but what was derived from former rows may still be held
      this.#stand(target, tick)
      return 'at'
    }
    if (this.position.revision < position.revision) return 'behind'
    if (sentTick > this.confirmedTick) {
      this.empty(target, tick)
      return 'at'
    }
    return this.position.revision > position.revision ? 'ahead' : 'late'
  }

  #stand({ position, reading }: Target, tick: number): void {
    this.position = position
    this.reachedBy = reading
    this.confirmedTick = tick
  }

  /** Forgets all rows, and takes the target's position. */
  empty(target: Target, tick: number): void {
    this.rows.clear()
    this.generation++
    this.#stand(target, tick)
  }

  /** Adds a waiter, whose `run` is called at its target. @returns true if a delta has to be started. */
  await(waiter: Waiter): boolean {
    this.#waiters.push(waiter)
    return this.#waiters.length === 1
  }

  /** The furthest target of all waiters. */
  get target(): Target | null {
    return this.#waiters.reduce<Target | null>(
      (far, { target }) => (far === null || target.position.revision > far.position.revision ? target : far),
      null,
    )
  }

  /** Applies the entries from `from` to `target`; if they are not complete and contiguous, the cache is emptied instead. */
  advance(delta: { from: JournalPosition; target: Target; entries: readonly JournalEntry[] }, tick: number): void {
    const { from, target, entries } = delta
    if (this.position !== from) return // the cache was emptied meanwhile, and has another position
    if (!continues(from, target.position, entries)) {
      this.empty(target, tick)
      return
    }
    for (const entry of entries) {
      if (entry.revision <= from.revision) continue
      this.rows.apply(entry.change, entry.atMs)
      for (const load of this.loads) load.entries.push(entry)
    }
    this.#stand(target, tick)
  }

  /** Runs the waiters at their targets, and with an error all of them. @returns true if others still wait. */
  release(error?: unknown): boolean {
    const ready = this.#waiters.filter(
      (w) => error !== undefined || w.target.position.revision <= this.position.revision,
    )
    this.#waiters = this.#waiters.filter((w) => !ready.includes(w))
    for (const { run } of ready) run(error)
    return this.#waiters.length > 0
  }

  startLoad(): PendingLoad {
    const load: PendingLoad = { generation: this.generation, startedAt: this.position.revision, entries: [] }
    this.loads.add(load)
    return load
  }

  /** Installs rows that were read at `readAt`, after replaying the load's later entries on them. */
  finishLoad(load: PendingLoad, readAt: JournalPosition, rows: readonly RowSet[]): void {
    this.loads.delete(load)
    const lost =
      load.generation !== this.generation ||
      readAt.revision < load.startedAt ||
      readAt.revision > this.position.revision
    if (lost) return
    const later = load.entries.filter((entry) => entry.revision > readAt.revision)
    const aside = new JournalRows(this.log, null)
    for (const row of rows) if (row.key.kind !== 'tuple') aside.install(row)
    for (const { change, atMs } of later) aside.apply(change, atMs)
    for (const held of aside.all()) this.rows.adopt(held)
    for (const row of rows)
      if ('row' in row) this.rows.install({ key: row.key, row: replayed(row.key, row.row, later) })
  }
}

/** The row of a single tuple after the later entries. */
function replayed(
  key: RowKey & { kind: 'tuple' },
  row: SubjectRow | null,
  later: readonly JournalEntry[],
): SubjectRow | null {
  let at = row
  for (const { change } of later) {
    if (change.kind !== 'tuple') continue
    const { object, relation, ...written } = change.tuple
    if (object !== key.object || relation !== key.relation || written.subject !== key.subject) continue
    at = change.op === 'write' ? written : null
  }
  return at
}

/** True if the entries are complete: each revision has one, and the last has the target's write id. */
function continues(from: JournalPosition, to: JournalPosition, entries: readonly JournalEntry[]): boolean {
  if (entries.length > DELTA_ENTRIES_MAX) return false
  let at = from.revision
  let writeId = from.writeId
  let known = from.revision === 0 // revision 0 is the begin of a journal, and has no entry to compare with
  for (const entry of entries) {
    if (entry.change.kind === 'clear') return false
    if (entry.revision === from.revision) {
      if (entry.writeId !== from.writeId) return false
      known = true
    } else if (entry.revision > at + 1) return false
    at = entry.revision
    writeId = entry.writeId
  }
  return known && at === to.revision && writeId === to.writeId
}
