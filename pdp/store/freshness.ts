/**
 * Answers from memory that reflect every write acknowledged before the question: each question learns from one statement
 * where the store stands, brings the caches it needs to exactly there, and is evaluated synchronously over them.
 */
import { lineage } from '../decide/roles.ts'
import { Batcher, type Schedule } from './batcher.ts'
import { ENVIRONMENT, type LogId, type RowKey, type RowSet, type Store, TOKENS } from './contracts.ts'
import { DELTA_ENTRIES_MAX, LogCache, type Moment, type PendingLoad, type Target } from './log-cache.ts'
import { evaluateAt } from './moment.ts'
import type { Fresh, Moments, Question } from './moments.ts'
import { RowBudget } from './row-budget.ts'
import { rowKeyName } from './row-keys.ts'
import { RowsView } from './rows-view.ts'

export type FreshnessOptions = {
  readonly store: Store
  /** Bytes of row sets kept in memory at most. Default 256 MiB. */
  readonly cacheBytesMax?: number
  /** How a tick's questions are gathered. Default: setImmediate. */
  readonly schedule?: Schedule
  /** Tries before a question is answered from a snapshot of its own, without the cache. Default 12. */
  readonly triesMax?: number
}

/** What an organization's questions depend on, by the tree as it was at `treeVersion`. */
type Scope = { readonly logs: readonly LogId[]; readonly treeVersion: number; readonly known: boolean }
/** A question on its way. Its type is the caller's; here it only has to be settled. */
type Pending = {
  readonly question: Question<unknown>
  scope: Scope
  /** When it was asked: only a statement sent later than this can answer it. */
  readonly askedTick: number
  tries: number
  readonly resolve: (fresh: Fresh<unknown>) => void
  readonly reject: (error: unknown) => void
}
type Loading = { readonly pending: Pending; readonly needed: readonly RowKey[] }

/** Caches and scopes that are kept at most before the idle ones are dropped. */
const KEPT_MAX = 10_000
const ALWAYS: readonly LogId[] = [ENVIRONMENT, TOKENS]

export class Freshness implements Moments {
  /** Counts of statements and of what they were for; read by metrics and tests. */
  readonly counts = { vectors: 0, deltas: 0, loads: 0, snapshots: 0, restarts: 0 }
  readonly #store: Store
  readonly #triesMax: number
  readonly #budget: RowBudget
  readonly #caches = new Map<LogId, LogCache>()
  readonly #scopes = new Map<LogId, Scope>()
  readonly #environment: LogCache
  /** One view for all evaluations: they are synchronous, so there is never more than one under way. */
  readonly #view: RowsView
  /** Counts sendings and answers, so that "sent after that answer arrived" can be told. */
  #tick = 0
  readonly #waves: Batcher<Pending>
  readonly #deltas: Batcher<LogCache>
  readonly #loadings: Batcher<Loading>

  constructor(options: FreshnessOptions) {
    const schedule = options.schedule ?? setImmediate
    this.#store = options.store
    this.#triesMax = options.triesMax ?? 12
    this.#budget = new RowBudget(options.cacheBytesMax ?? 256 * 1024 * 1024)
    this.#environment = this.#cache(ENVIRONMENT)
    this.#view = new RowsView((log) => this.#cache(log).rows, 0)
    this.#waves = new Batcher({ runningMax: 2, schedule, run: (pending) => this.#wave(pending) })
    this.#deltas = new Batcher({ runningMax: 2, schedule, run: (caches) => this.#delta(caches) })
    this.#loadings = new Batcher({ runningMax: 2, schedule, run: (loadings) => this.#load(loadings) })
  }

  /** Bytes and row sets held. */
  get size(): { readonly bytes: number; readonly rowSets: number; readonly evicted: number } {
    return { bytes: this.#budget.bytes, rowSets: this.#budget.count, evicted: this.#budget.evictedCount }
  }

  ask<T>(question: Question<T>): Promise<Fresh<T>> {
    return new Promise((resolve, reject) => {
      this.#waves.add({
        question,
        scope: this.#scopeOf(question.organization),
        askedTick: this.#tick,
        tries: 0,
        resolve: (fresh) => resolve(fresh as Fresh<T>), // the value is what this question's evaluation returned
        reject,
      })
    })
  }

  #cache(log: LogId): LogCache {
    let cache = this.#caches.get(log)
    if (cache === undefined) {
      if (this.#caches.size > KEPT_MAX) this.#dropIdle()
      cache = new LogCache(log, this.#budget)
      this.#caches.set(log, cache)
    }
    return cache
  }

  #dropIdle(): void {
    for (const [log, cache] of this.#caches) if (cache.idle && !ALWAYS.includes(log)) this.#caches.delete(log)
  }

  /** By the tree as it is cached, which may be behind: that is noticed before anything is evaluated. */
  #scopeOf(organization: LogId): Scope {
    const treeVersion = this.#environment.rows.version
    const kept = this.#scopes.get(organization)
    if (kept?.treeVersion === treeVersion) return kept
    this.#view.begin(0)
    const path = lineage(this.#view, organization)
    // An organization that does not exist depends on the environment alone, which says so.
    const logs = path === undefined || path.length === 0 ? [organization] : path
    const scope = { logs: [...logs, ...ALWAYS], treeVersion, known: path !== undefined }
    if (this.#scopes.size > KEPT_MAX) this.#scopes.clear()
    this.#scopes.set(organization, scope)
    return scope
  }

  /** One statement for all questions that wait; none of them was asked after it was sent. */
  async #wave(all: readonly Pending[]): Promise<void> {
    this.counts.vectors++
    const logs = new Set<LogId>()
    for (const { scope } of all) for (const log of scope.logs) logs.add(log)
    const sentTick = ++this.#tick
    try {
      const vector = await this.#store.vector([...logs])
      this.#tick++
      this.#settle(all, { vector, sentTick })
    } catch (error) {
      for (const pending of all) pending.reject(error)
    }
  }

  /** Questions of the same scope stand or fall together. */
  #settle(all: readonly Pending[], moment: Moment): void {
    const [first] = all
    if (first === undefined) return
    if (all.every(({ scope }) => scope === first.scope)) this.#step(all, moment)
    else for (const group of Map.groupBy(all, ({ scope }) => scope).values()) this.#step(group, moment)
  }

  /** Brings the caches to the moment, evaluates, and loads what is missing. Called anew after every wait. */
  #step(all: readonly Pending[], asked: Moment): void {
    const [first] = all
    if (first === undefined) return
    const { logs } = first.scope
    const moment = this.#align(all, asked)
    if (moment === null) return
    for (const pending of all) {
      const scope = this.#scopeOf(pending.question.organization)
      if (scope.known && scope.logs.some((log) => !logs.includes(log))) {
        pending.scope = scope // the tree is not what was assumed
        this.#again(pending)
      } else this.#evaluate(pending, moment, scope)
    }
  }

  #evaluate(pending: Pending, moment: Moment, scope: Scope): void {
    const view = this.#view
    view.begin(moment.vector.clockMs)
    try {
      const value = pending.question.evaluate(view)
      if (value !== undefined && scope.known) {
        const { validUntilMs } = view
        pending.resolve({ value, vector: moment.vector, logs: scope.logs, validUntilMs })
        return
      }
      if (!scope.known) lineage(view, pending.question.organization)
      if (++pending.tries > this.#triesMax) this.#fallBack(pending)
      else this.#loadings.add({ pending, needed: view.needed })
    } catch (error) {
      pending.reject(error)
    }
  }

  /** @returns a moment at which every cache of the questions stands exactly; null when that has to be waited for. */
  #align(all: readonly Pending[], moment: Moment): Moment | null {
    const logs = all[0]?.scope.logs ?? []
    const behind: { cache: LogCache; target: Target }[] = []
    let passedBy: Moment | null = null
    let passed = false
    for (const log of logs) {
      const target = targetIn(moment, log)
      if (target === null) continue // there is no such log, so there is nothing of it to be stale
      const cache = this.#cache(log)
      const relation = cache.compare(target, this.#tick)
      if (relation === 'behind') behind.push({ cache, target })
      else if (relation !== 'at') {
        passed = true
        passedBy = cache.reachedBy
      }
    }
    if (behind.length > 0) {
      this.#awaitAll(behind, (error) => {
        if (error === undefined) this.#step(all, moment)
        else for (const pending of all) pending.reject(error)
      })
      return null
    }
    if (!passed) return moment
    // Others have moved on. If everything stands at one later moment, that is as good: it reflects all that ours does.
    const askedTick = all.reduce((latest, pending) => Math.max(latest, pending.askedTick), 0)
    if (passedBy !== null && passedBy.sentTick > askedTick && this.#standsAt(passedBy, moment, logs)) {
      return laterOf(passedBy, moment)
    }
    for (const pending of all) this.#again(pending)
    return null
  }

  #awaitAll(all: readonly { cache: LogCache; target: Target }[], run: (error?: unknown) => void): void {
    let left = all.length
    let failed: unknown
    for (const { cache, target } of all) {
      this.#catchUp(cache, target, (error) => {
        failed ??= error
        if (--left === 0) run(failed)
      })
    }
  }

  /** Are all the caches exactly at the later moment, and is it no earlier than the question's own in any log? */
  #standsAt(later: Moment, own: Moment, logs: readonly LogId[]): boolean {
    return logs.every((log) => {
      const at = later.vector.logs.get(log)
      const asked = own.vector.logs.get(log)
      if (at === undefined || asked === undefined) return at === asked
      const { standing } = this.#cache(log)
      return standing.revision === at.revision && standing.writeId === at.writeId && at.revision >= asked.revision
    })
  }

  #again(pending: Pending): void {
    this.counts.restarts++
    if (++pending.tries > this.#triesMax) this.#fallBack(pending)
    else this.#waves.add(pending)
  }

  #catchUp(cache: LogCache, target: Target, run: (error?: unknown) => void): void {
    if (cache.await({ target, run })) this.#deltas.add(cache)
  }

  /** Log entries from where each cache stands to the furthest target that was taken from a vector, and never past it. */
  async #delta(caches: readonly LogCache[]): Promise<void> {
    this.counts.deltas++
    const wanted = caches.flatMap((cache) => {
      const { target, standing } = cache
      return target === null ? [] : [{ cache, target, from: standing }]
    })
    const ranges = wanted.map(({ cache, target, from }) => ({
      log: cache.log,
      from: from.revision,
      to: target.standing.revision,
    }))
    try {
      const entries = await this.#store.entries(ranges, (DELTA_ENTRIES_MAX + 1) * ranges.length)
      this.#tick++
      for (const { cache, target, from } of wanted) {
        cache.advance({ from, target, entries: entries.filter((e) => e.log === cache.log) }, this.#tick)
      }
      for (const { cache } of wanted) if (cache.release()) this.#deltas.add(cache)
    } catch (error) {
      for (const { cache } of wanted) cache.release(error)
    }
  }

  /** One statement for every row set that the waiting questions miss, with the standings of all that they depend on. */
  async #load(all: readonly Loading[]): Promise<void> {
    this.counts.loads++
    const logs = new Set(all.flatMap(({ pending }) => pending.scope.logs))
    const keys = [
      ...new Map(all.flatMap(({ needed }) => needed.map((key) => [rowKeyName(key), key] as const))).values(),
    ]
    for (const key of keys) logs.add(key.log)
    const sentTick = ++this.#tick
    const loads = new Map([...logs].map((log) => [log, this.#cache(log).startLoad()]))
    try {
      const reading = await this.#store.rows([...logs], keys)
      this.#tick++
      const moment = { vector: reading.vector, sentTick }
      this.#install(moment, loads, {
        rows: reading.rows,
        done: () =>
          this.#settle(
            all.map(({ pending }) => pending),
            moment,
          ),
      })
    } catch (error) {
      for (const [log, load] of loads) this.#cache(log).loads.delete(load)
      for (const { pending } of all) pending.reject(error)
    }
  }

  /** Every log's rows are installed once its cache stands where they were read, or past it; then `done` is called. */
  #install(
    moment: Moment,
    loads: ReadonlyMap<LogId, PendingLoad>,
    of: { rows: readonly RowSet[]; done: () => void },
  ): void {
    const byLog = Map.groupBy(of.rows, (row) => row.key.log)
    let left = loads.size
    for (const [log, load] of loads) {
      const cache = this.#cache(log)
      const target = targetIn(moment, log)
      const finish = (): void => {
        if (target === null) cache.loads.delete(load)
        else cache.finishLoad(load, target.standing, byLog.get(log) ?? [])
        if (--left === 0) of.done()
      }
      if (target === null || cache.compare(target, this.#tick) !== 'behind') finish()
      // If the delta cannot be had, nothing is installed; the questions find out by themselves.
      else this.#catchUp(cache, target, finish)
    }
  }

  /** One transaction that neither reads nor fills the cache: for questions that the cache cannot hold still for. */
  #fallBack(pending: Pending): void {
    this.counts.snapshots++
    evaluateAt(this.#store, pending.question).then(pending.resolve, pending.reject)
  }
}

function targetIn(moment: Moment, log: LogId): Target | null {
  const standing = moment.vector.logs.get(log)
  return standing === undefined ? null : { standing, moment }
}

/** The same standings, with a clock that no question was asked after. */
function laterOf(later: Moment, own: Moment): Moment {
  const clockMs = Math.max(later.vector.clockMs, own.vector.clockMs)
  return { sentTick: later.sentTick, vector: { clockMs, logs: later.vector.logs } }
}
