/**
 * A lease: positions of journals by which one process may answer from memory, since no writer raises them before the process has
 * given them up, or its term is over. No timer and no database is in it: its user sends what `renewal` says, one at a time.
 */
import type { JournalId, JournalPosition } from '../../../shared/domain/journal.ts'
import { type LeasedVector, leasedVector } from './leased-vector.ts'
import { TERM_MS } from './terms.ts'

/** The row of a process in the registry. */
export type Registered = {
  /** Grows with every renewal that is sent. */
  readonly stamp: number
  /** A writer of one of these waits until the process has acknowledged its intent. */
  readonly interests: ReadonlySet<JournalId>
  /** Intents: no answer of the process rests on what they will change. */
  readonly acknowledged: ReadonlySet<string>
}
export type Renewal = Registered & {
  readonly id: string
  readonly sentMs: number
  /** Positions of these are to be read; those of the others are known. */
  readonly reads: ReadonlySet<JournalId>
  /** Its commit waits for the disk: a crash must not take back an interest that counts. */
  readonly isDurable: boolean
  /** Intents that the database had when this was sent: one that it does not show is over. */
  readonly awaited: ReadonlySet<string>
}
/** All of one snapshot, from before the renewal changed the row. */
export type Registry = {
  readonly interests: ReadonlySet<JournalId>
  readonly intents: ReadonlyMap<string, JournalId>
  readonly positions: ReadonlyMap<JournalId, JournalPosition>
  readonly clockMs: number
  readonly timeline: number
}

/** A renewal that its sender gave up may run late: it changes nothing then. */
export const takesEffect = (row: Registered | undefined, renewal: Registered): row is Registered =>
  row !== undefined && row.stamp < renewal.stamp

type Heard = { readonly log: JournalId; readonly sinceMs: number; isAnnouncing: boolean }
type Options = { readonly clock: () => number; readonly termMs?: number }

/** `clock`: monotonic milliseconds, which go on while the process is stopped. */
export class NodeLease {
  readonly #clock: () => number
  readonly #termMs: number
  #id: string | null = null
  #stamp = 0
  #untilMs = Number.NEGATIVE_INFINITY
  #timeline: number | null = null
  #read = { clockMs: 0, sentMs: 0, gotMs: 0 }
  #durable: ReadonlySet<JournalId> = new Set()
  readonly #wanted = new Set<JournalId>()
  readonly #covered = new Map<JournalId, JournalPosition>()
  readonly #heard = new Map<string, Heard>()

  constructor({ clock, termMs = TERM_MS }: Options) {
    this.#clock = clock
    this.#termMs = termMs
  }

  get id(): string | null {
    return this.#id
  }

  /** The row is on disk. Nothing of an earlier id holds. */
  registered(id: string): void {
    this.giveUp()
    this.#id = id
  }

  giveUp(): void {
    this.#id = null
    this.#untilMs = Number.NEGATIVE_INFINITY
    this.#timeline = null
    this.#durable = new Set()
    this.#covered.clear()
    this.#heard.clear()
  }

  want(log: JournalId): void {
    this.#wanted.add(log)
  }

  leave(log: JournalId): void {
    this.#wanted.delete(log)
    this.#covered.delete(log)
  }

  /** Throws TypeError without a row. */
  renewal(): Renewal {
    if (this.#id === null) throw new TypeError('a process without a row renews nothing')
    const sentMs = this.#clock()
    const isOver = sentMs >= this.#untilMs
    const wanted = [...this.#wanted]
    return {
      id: this.#id,
      sentMs,
      stamp: ++this.#stamp,
      interests: new Set(wanted),
      acknowledged: new Set(this.#heard.keys()),
      reads: new Set(wanted.filter((log) => isOver || !this.#covered.has(log))),
      isDurable: wanted.some((log) => !this.#durable.has(log)),
      awaited: new Set([...this.#heard].flatMap(([intent, { isAnnouncing }]) => (isAnnouncing ? [] : [intent]))),
    }
  }

  /** Null: no row took effect, so that the process has to register under another id. @returns whether to renew at once. */
  renewed(renewal: Renewal, registry: Registry | null): boolean {
    if (renewal.id !== this.#id || renewal.stamp !== this.#stamp) return false
    if (registry === null) {
      this.giveUp()
      return false
    }
    this.#durable = renewal.interests
    this.#dropWhatIsOver(registry)
    for (const intent of renewal.awaited) if (!registry.intents.has(intent)) this.#heard.delete(intent)
    const news = [...registry.intents].filter(([intent]) => !this.#heard.has(intent))
    for (const [intent, log] of news) this.#learn(intent, log, false)
    this.#cover(renewal, registry)
    this.#timeline = registry.timeline
    this.#untilMs = renewal.sentMs + this.#termMs
    this.#read = { clockMs: registry.clockMs, sentMs: renewal.sentMs, gotMs: this.#clock() }
    return news.length > 0
  }

  /** Journals that were covered when the answer came were current in its snapshot, and need not be read again. */
  #dropWhatIsOver({ interests, timeline }: Registry): void {
    if (this.#clock() >= this.#untilMs || timeline !== this.#timeline) this.#covered.clear()
    for (const log of this.#covered.keys()) if (!interests.has(log)) this.#covered.delete(log)
  }

  #cover(renewal: Renewal, { interests, positions }: Registry): void {
    // A writer may have read the holders after the snapshot and before the row changed: only what the snapshot shows counts.
    for (const [log, position] of positions)
      if (interests.has(log) && renewal.interests.has(log) && this.#wanted.has(log)) this.#covered.set(log, position)
    for (const { log } of this.#heard.values()) this.#covered.delete(log)
  }

  /** A writer's intent, by an announcement. @returns whether to renew at once, which acknowledges it. */
  hear(intent: string, log: JournalId): boolean {
    if (this.#id === null || this.#heard.has(intent)) return false
    this.#learn(intent, log, false)
    return true
  }

  /** An intent of this process, before it is sent. */
  announcing(intent: string, log: JournalId): void {
    this.#learn(intent, log, true)
  }

  /** Its answer came, or none. */
  announced(intent: string): void {
    const own = this.#heard.get(intent)
    if (own !== undefined) own.isAnnouncing = false
  }

  #learn(intent: string, log: JournalId, isAnnouncing: boolean): void {
    this.#heard.set(intent, { log, isAnnouncing, sinceMs: this.#clock() })
    this.#covered.delete(log)
  }

  /**
   * Anybody may delete these intents: their writers are gone, and cannot write without them. The commit waits for the disk: a crash
   * that gave an intent back would let a late writer write, when others had seen it deleted and rely on the journal again.
   */
  abandoned(): { readonly intents: readonly string[]; readonly isDurable: boolean } {
    const leastMs = this.#clock() - 3 * this.#termMs
    const intents = [...this.#heard].flatMap(([intent, { sinceMs }]) => (sinceMs < leastMs ? [intent] : []))
    return { intents, isDurable: true }
  }

  /** Null: the database has to be asked. */
  vector(logs: readonly JournalId[]): LeasedVector | null {
    const nowMs = this.#clock()
    if (nowMs >= this.#untilMs) return null
    return leasedVector(logs, { covered: this.#covered, reading: this.#read, nowMs })
  }
}
