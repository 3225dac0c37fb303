/**
 * Answers from memory that reflect every write acknowledged before the question: each question reads the
 * positions of its journals in one statement, brings the caches it needs to exactly there, and is evaluated synchronously over them.
 */

import { grouped } from '../../../shared/domain/grouped.ts'
import { ENVIRONMENT, type JournalId } from '../../../shared/domain/journal.ts'
import { UNKNOWN_MS } from '../../decide/conditions/instants.ts'
import { Paused, type Slice } from '../../decide/slices.ts'
import { Batcher, type Schedule, whenLate } from '../batcher.ts'
import type { RowKey, Store } from '../contract.ts'
import { EventLoopTurns } from './event-loop-turns.ts'
import type { JournalCache, Reading, Target } from './journal-cache.ts'
import { JournalCaches, targetIn } from './journal-cache-set.ts'
import { COMMON_LOGS, type Fresh, journalsFor, type Question, type SnapshotEvaluator } from './question.ts'
import { keysOfLoad, rowKeyName } from './row-keys.ts'
import { RowsView } from './rows-view.ts'
import { evaluateAt } from './snapshot-evaluator.ts'

export type FreshnessOptions = {
  readonly store: Store
  /** Bytes of row sets kept in memory at most. Default 256 MiB. */
  readonly cacheBytesMax?: number
  /** How long questions are gathered for one statement. Default: until the event loop has read what has arrived on all sockets. */
  readonly schedule?: Schedule
  /** Tells when a statement for positions is late, so that a second one may run beside it. Default: after 10 ms. */
  readonly late?: Schedule
  /** How often a question is tried with the cache; after that it gets its own snapshot. Default 12. */
  readonly triesMax?: number
  /** The turns that all evaluations of this process share. Default: turns of its own. */
  readonly turns?: EventLoopTurns
}

/** The journals on which an organization's questions depend, by the tree as of `treeVersion`. */
type JournalsAbove = { readonly logs: readonly JournalId[]; readonly treeVersion: number; readonly known: boolean }
/** A question without an answer yet, whose type only the caller knows. */
type Pending = {
  readonly question: Question<unknown>
  scope: JournalsAbove
  /** The time of the question: only a later statement can answer it. */
  readonly askedTick: number
  tries: number
  /** True: positions in memory are not enough, because the answer expires too soon, so the database is asked. */
  mustAsk: boolean
  /** The latest time of the answer; null until the evaluation pauses for the first time. */
  untilMs: number | null
  readonly resolve: (fresh: Fresh<unknown>) => void
  readonly reject: (error: unknown) => void
}
type Evaluation = {
  readonly pending: Pending
  readonly at: Reading
  readonly scope: JournalsAbove
  readonly view: RowsView
  readonly slice: Slice
}
type Loading = { readonly pending: Pending; readonly needed: readonly RowKey[] }

/** How many scopes are kept; when there are more, all are dropped. */
const SCOPES_MAX = 10_000

export class Freshness implements SnapshotEvaluator {
  readonly #store: Store
  readonly #triesMax: number
  readonly #caches: JournalCaches
  readonly #scopes = new Map<JournalId | null, JournalsAbove>()
  readonly #environment: JournalCache
  readonly #turns: EventLoopTurns
  /** The view of all evaluations that end without a pause. One that pauses keeps it, and the others get a new one. */
  #view: RowsView
  readonly #vectorBatches: Batcher<Pending>
  readonly #loadings: Batcher<Loading>

  constructor(options: FreshnessOptions) {
    const { store, schedule = setImmediate, late = whenLate, cacheBytesMax = 256 * 1024 * 1024 } = options
    this.#store = store
    this.#triesMax = options.triesMax ?? 12
    this.#caches = new JournalCaches({ store, cacheBytesMax, schedule })
    this.#environment = this.#caches.of(ENVIRONMENT)
    this.#turns = options.turns ?? new EventLoopTurns()
    this.#view = this.#newView()
    this.#vectorBatches = new Batcher({
      runningMax: 2,
      schedule,
      late,
      run: (pending) => this.#askVector(pending),
      fail: (pending, error) => pending.reject(error),
    })
    this.#loadings = new Batcher({
      runningMax: 2,
      schedule,
      run: (loadings) => this.#load(loadings),
      fail: ({ pending }, error) => pending.reject(error),
    })
  }

  #newView(): RowsView {
    return new RowsView((log) => this.#caches.of(log).rows, 0)
  }

  /** The bytes and number of row sets in memory. */
  get size(): JournalCaches['size'] {
    return this.#caches.size
  }

  ask<T>(question: Question<T>): Promise<Fresh<T>> {
    return new Promise((resolve, reject) => {
      this.#vectorBatches.add({
        question,
        scope: this.#scopeOf(question.organization),
        askedTick: this.#caches.tick,
        tries: 0,
        mustAsk: false,
        untilMs: null,
        resolve: resolve as Pending['resolve'], // it only gets what this question's own `evaluate` returned
        reject,
      })
    })
  }

  /** The scope by the cached tree, which may be out of date: `#step` notices that before anything is evaluated. */
  #scopeOf(organization: JournalId | null): JournalsAbove {
    const treeVersion = this.#environment.rows.version
    const kept = this.#scopes.get(organization)
    if (kept?.treeVersion === treeVersion) return kept
    this.#view.begin(0)
    const found = journalsFor(this.#view, organization)
    const logs = found ?? (organization === null ? COMMON_LOGS : [organization, ...COMMON_LOGS])
    const scope = { logs, treeVersion, known: found !== undefined }
    if (this.#scopes.size > SCOPES_MAX) this.#scopes.clear()
    this.#scopes.set(organization, scope)
    return scope
  }

  /** Reads positions by one statement for all waiting questions, which were asked before it is sent. */
  async #askVector(all: readonly Pending[]): Promise<void> {
    const logs = logsOf(all)
    const sentTick = ++this.#caches.tick
    const leased = all.some(({ mustAsk }) => mustAsk) ? null : this.#store.leased?.([...logs], all.length)
    const vector = leased ?? (await this.#store.vector([...logs]))
    this.#caches.tick++
    this.#settle(all, { vector, sentTick })
  }

  /** Goes on with the questions of each scope together, since they need the same caches. */
  #settle(all: readonly Pending[], reading: Reading): void {
    const [first] = all
    if (first === undefined) return
    if (all.every(({ scope }) => scope === first.scope)) this.#step(all, reading)
    else for (const group of grouped(all, ({ scope }) => scope).values()) this.#step(group, reading)
  }

  /** Brings the caches to the reading, evaluates, and loads what is missing. Called again after every wait. */
  #step(all: readonly Pending[], asked: Reading): void {
    const [first] = all
    if (first === undefined) return
    const { logs } = first.scope
    const reading = this.#align(all, asked)
    if (reading === null) return
    // Nothing changes while questions are evaluated, so one scope serves one organization.
    const scope = this.#scopeOf(first.question.organization)
    if (scope.known && scope.logs.some((log) => !logs.includes(log))) {
      for (const pending of all) {
        pending.scope = scope // the tree is not what was assumed
        this.#again(pending)
      }
      return
    }
    for (const pending of all)
      if (this.#turns.isOver) this.#turns.begin(() => this.#step([pending], reading))
      else this.#evaluate(pending, reading, scope)
  }

  #evaluate(pending: Pending, at: Reading, scope: JournalsAbove): void {
    const view = this.#view
    view.begin(at.vector.clockMs)
    const slice = this.#turns.newSlice()
    try {
      const found = pending.question.evaluate(view, slice)
      this.#turns.spent(slice)
      if (found instanceof Paused) this.#goOn(found, { pending, at, scope, view, slice })
      else this.#evaluated(found, { pending, at, scope, view })
    } catch (err) {
      pending.reject(err)
    }
  }

  #evaluated(value: unknown, { pending, at, scope, view }: Omit<Evaluation, 'slice'>): void {
    if (value !== undefined && scope.known) {
      const { validUntilMs } = view
      const { clockMsMax } = at.vector
      if (clockMsMax !== undefined && validUntilMs !== null && validUntilMs <= clockMsMax + UNKNOWN_MS) {
        pending.mustAsk = true
        this.#again(pending)
        return
      }
      pending.resolve({ value, vector: at.vector, logs: scope.logs, validUntilMs })
      return
    }
    if (!scope.known) journalsFor(view, pending.question.organization) // notes the missing rows of the tree
    if (++pending.tries > this.#triesMax) this.#fallBack(pending)
    else this.#loadings.add({ pending, needed: keysOfLoad(pending.tries, view.needed) })
  }

  /** Resumes a paused evaluation in each turn. If a cache's position changes meanwhile, the question begins again. */
  async #goOn(paused: Paused<unknown>, evaluation: Evaluation): Promise<void> {
    const { pending, at, scope, view, slice } = evaluation
    this.#view = this.#newView()
    pending.untilMs ??= this.#turns.untilMs()
    try {
      let found: unknown = paused
      while (found instanceof Paused) {
        await this.#turns.next(slice, pending.untilMs)
        if (!this.#standsAt(at, at, scope.logs)) {
          this.#again(pending)
          return
        }
        view.goOn()
        found = found.resume()
      }
      this.#evaluated(found, evaluation)
    } catch (err) {
      pending.reject(err)
    }
  }

  /** @returns a reading whose positions all caches of the questions have; null: the questions must wait or begin again. */
  #align(all: readonly Pending[], reading: Reading): Reading | null {
    const logs = all[0]?.scope.logs ?? []
    const behind: { cache: JournalCache; target: Target }[] = []
    let passedBy: Reading | null = null
    let passed = false
    for (const log of logs) {
      const target = targetIn(reading, log)
      if (target === null) continue // the journal does not exist, so nothing cached of it can be stale
      const cache = this.#caches.of(log)
      const relation = cache.compare(target, this.#caches.tick)
      if (relation === 'behind') behind.push({ cache, target })
      else if (relation !== 'at') {
        passed = true
        passedBy = cache.reachedBy
      }
    }
    if (behind.length > 0) {
      this.#caches.bringForward(behind, (error) => {
        if (error === undefined) this.#step(all, reading)
        else for (const pending of all) pending.reject(error)
      })
      return null
    }
    if (!passed) return reading
    // Other questions moved caches on. If all caches stand at one later reading, it serves too: it has all that ours has.
    const askedTick = all.reduce((latest, pending) => Math.max(latest, pending.askedTick), 0)
    if (passedBy !== null && passedBy.sentTick > askedTick && this.#standsAt(passedBy, reading, logs)) {
      return laterOf(passedBy, reading)
    }
    for (const pending of all) this.#again(pending)
    return null
  }

  /** True if all caches are exactly at `later`, which in no journal is before the question's reading, `own`. */
  #standsAt(later: Reading, own: Reading, logs: readonly JournalId[]): boolean {
    return logs.every((log) => {
      const at = later.vector.logs.get(log)
      const asked = own.vector.logs.get(log)
      if (at === undefined || asked === undefined) return at === asked
      const { position } = this.#caches.of(log)
      return position.revision === at.revision && position.writeId === at.writeId && at.revision >= asked.revision
    })
  }

  #again(pending: Pending): void {
    if (++pending.tries > this.#triesMax) this.#fallBack(pending)
    else this.#vectorBatches.add(pending)
  }

  /** Loads all row sets that the waiting questions lack, and the positions that they depend on, in one statement. */
  async #load(all: readonly Loading[]): Promise<void> {
    const waiting = all.map(({ pending }) => pending)
    const keys = new Map<string, RowKey>()
    for (const { needed } of all) for (const key of needed) keys.set(rowKeyName(key), key)
    const logs = logsOf(waiting)
    for (const key of keys.values()) logs.add(key.log)
    await this.#caches.load([...logs], [...keys.values()], (reading) => this.#settle(waiting, reading))
  }

  /** The last resort after `triesMax` tries: one transaction that neither reads nor fills the cache. */
  #fallBack(pending: Pending): void {
    evaluateAt(this.#store, this.#turns, pending.question).then(pending.resolve, pending.reject)
  }
}

function logsOf(all: readonly Pending[]): Set<JournalId> {
  const logs = new Set<JournalId>()
  let last: JournalsAbove | null = null
  for (const { scope } of all) {
    if (scope === last) continue // most questions of a batch have the same scope
    for (const log of scope.logs) logs.add(log)
    last = scope
  }
  return logs
}

/** The later positions, with the later clock of the two, so that the clock is not before any question. */
function laterOf(later: Reading, own: Reading): Reading {
  const clockMs = Math.max(later.vector.clockMs, own.vector.clockMs)
  const clockMsMax = Math.max(clockMs, later.vector.clockMsMax ?? 0, own.vector.clockMsMax ?? 0)
  const { logs } = later.vector
  return { sentTick: later.sentTick, vector: { clockMs, ...(clockMsMax > clockMs ? { clockMsMax } : {}), logs } }
}
