/** The simulated database of the leases' schedules: commits that a crash may lose, restarts, and failovers that lose more. */
import type { Registered } from '../../../pdp/engine/store/leases/node-lease.ts'
import { ENVIRONMENT, type JournalId, type JournalPosition, TOKENS } from '../../../pdp/shared/domain/journal.ts'

/** A grant, a switch, a dead token or, with `parent`, the place of an organization in the tree. */
export type Value = { readonly on: boolean; readonly parent?: JournalId }
export type Log = JournalPosition & { readonly content: ReadonlyMap<string, Value> }
export type Logs = ReadonlyMap<JournalId, Log>
export const LOGS = [ENVIRONMENT, TOKENS, 'o0', 'o1', 'p'] as const

export type Tables = {
  readonly logs: Map<JournalId, Log>
  readonly rows: Map<string, Registered>
  timeline: number
  settled: number
}
/** A transaction that raises journals: its locks end with the server. */
export type Raising = { readonly journals: Set<JournalId>; readonly intents: Set<JournalId> }
type Commit = { readonly atMs: number; readonly isDurable: boolean; readonly change: (tables: Tables) => void }

/** Commits that did not wait for the disk, and are no older, may be lost in a crash. */
const UNSYNCED_MS = 30
const LOST_MAX = 12

const copied = (of: Tables): Tables => ({
  logs: new Map(of.logs),
  rows: new Map(of.rows),
  timeline: of.timeline,
  settled: of.settled,
})

export class Database {
  readonly #random: () => number
  readonly #now: () => number
  readonly rate: number
  #base: Tables
  #commits: Commit[] = []
  tables: Tables
  isDown = false
  /** Grows with every start. */
  life = 0
  turn = 0
  readonly raising = new Set<Raising>()
  /** Rows of the registry that a transaction has locked. */
  readonly locked = new Set<string>()
  /** The state before a failover that lost writes. Null once something was written after it. */
  beforeLoss: { readonly atMs: number; readonly logs: Logs } | null = null

  constructor(of: { random: () => number; now: () => number; rate: number }) {
    this.#random = of.random
    this.#now = of.now
    this.rate = of.rate
    const none = { revision: 0, entitlementVersion: 0, entitlementWriteId: '', content: new Map() }
    const logs = new Map(LOGS.map((log) => [log, { ...none, writeId: `${log} 0` }]))
    this.#base = { logs, rows: new Map(), timeline: 1, settled: 1 }
    this.tables = copied(this.#base)
  }

  get clockMs(): number {
    return this.#now() * this.rate
  }

  commit(isDurable: boolean, change: (tables: Tables) => void): void {
    this.#commits.push({ atMs: this.#now(), isDurable, change })
    change(this.tables)
  }

  write(
    logs: readonly JournalId[],
    { key, value }: { readonly key: string; readonly value: Value },
    also: (tables: Tables) => void = () => {},
  ): void {
    const raised = logs.map((log) => {
      const { revision, content, ...rest } = this.log(log)
      const writeId = String(this.#random())
      return [log, { ...rest, revision: revision + 1, writeId, content: new Map(content).set(key, value) }] as const
    })
    this.beforeLoss = null
    this.commit(true, (tables) => {
      for (const [log, at] of raised) tables.logs.set(log, at)
      also(tables)
    })
  }

  log(log: JournalId): Log {
    const found = this.tables.logs.get(log)
    if (found === undefined) throw new TypeError(`there is no journal ${log}`)
    return found
  }

  crash(how: { readonly isFailover: boolean; readonly losesWrites: boolean }): void {
    const before = this.tables
    const kept = this.#commits.slice(0, how.losesWrites ? this.#keptAtLoss() : this.#keptAtCrash())
    const tables = copied(this.#base)
    for (const { change } of kept) change(tables)
    if (how.isFailover) tables.timeline = before.timeline + 1
    this.#base = tables
    this.tables = copied(tables)
    this.#commits = []
    this.life++
    this.isDown = true
    // A row that was kept is later in the log than its turn.
    this.turn = Math.max(0, ...[...tables.rows.values()].map(({ seen }) => seen))
    this.raising.clear()
    this.locked.clear()
    if (how.losesWrites) this.beforeLoss = { atMs: this.#now(), logs: before.logs }
  }

  #keptAtLoss = (): number => Math.max(0, this.#commits.length - 1 - Math.floor(this.#random() * LOST_MAX))

  #keptAtCrash(): number {
    let kept = this.#commits.length
    for (; kept > 0 && this.#random() < 0.8; kept--) {
      const last = this.#commits[kept - 1]
      if (last === undefined || last.isDurable || last.atMs < this.#now() - UNSYNCED_MS) break
    }
    return kept
  }
}
