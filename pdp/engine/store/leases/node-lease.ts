/**
 * A lease: positions of journals by which one of several processes answers from memory, since no writer raises them before the
 * process has seen its intent, or its term is over. No timer and no database is in it: its user sends what `renewal` says.
 */
import { createHash } from 'node:crypto'
import type { JournalId, JournalPosition } from '../../../shared/domain/journal.ts'
import { type LeasedVector, leasedVector } from './leased-vector.ts'
import { atMost, TERM_MS } from './terms.ts'

/** The row of a process in the registry. */
export type Registered = {
  /** Grows with every renewal that is sent. */
  readonly stamp: number
  /** Buckets of journals. A writer of one of these waits for the process. */
  readonly interests: ReadonlySet<number>
  /** The turn of its last renewal. It has seen every intent that a writer noted before an earlier turn. */
  readonly seen: number
}

/**
 * The database's part (migrations/0034-shared-lease.sql). An intent is a lock that a transaction holds until after its end, so that
 * it is seen at once and outlives nothing. A turn is the next number of a sequence. Each part sees what the parts before it left.
 */
export const REGISTRY = {
  /** Parts of a raise. At its commit the transaction waits for the processes that are interested then. */
  raise: ['intent', 'turn'],
  /** Parts of a renewal. It keeps its row locked from the first part to the last. */
  renewal: ['row', 'turn', 'intents', 'positions', 'update'],
  /** A renewal that its sender gave up may run late: it changes nothing then. */
  takesEffect: (row: Registered | undefined, renewal: { readonly stamp: number }): row is Registered =>
    row !== undefined && row.stamp < renewal.stamp,
  /** A process that is being struck off counts as gone. */
  mayRenew: (isLocked: boolean): boolean => !isLocked,
  /** Such a process answers from nothing that the writer will change. */
  hasSeen: (row: Registered, turn: number): boolean => row.seen > turn,
  /** A write waits no longer, and strikes off who has not renewed for so long. */
  waitMs: (termMs: number): number => atMost(termMs),
  /** Beside a primary that has not been waited for, the registry may lack processes that still answer. */
  isSettled: (settled: number, timeline: number): boolean => settled === timeline,
} as const

export type Renewal = {
  readonly id: string
  readonly sentMs: number
  readonly stamp: number
  readonly interests: ReadonlySet<number>
  /** Positions of these are to be read. */
  readonly reads: readonly JournalId[]
  /** These were covered when this was sent, and are again if the answer shows no intent on them. */
  readonly kept: ReadonlyMap<JournalId, JournalPosition>
  /** Its commit waits for the disk: a crash must not take back an interest that counts. */
  readonly isDurable: boolean
}
export type Registry = {
  /** As they were before the renewal changed the row. */
  readonly interests: ReadonlySet<number>
  readonly intents: ReadonlySet<number>
  readonly positions: ReadonlyMap<JournalId, JournalPosition>
  readonly clockMs: number
  readonly timeline: number
}

export const BUCKETS = 1_024
/** How many journals are wanted; when there are more, all are left. */
const WANTED_MAX = 10_000
/** How many positions one renewal reads. */
const READS_MAX = 1_000

/** Journals of one bucket are told apart by nothing in the registry. */
export const bucketOf = (log: JournalId): number => createHash('sha256').update(log).digest().readUInt16BE() % BUCKETS

/** `clock`: monotonic milliseconds, which go on while the process is stopped. */
export class NodeLease {
  readonly #clock: () => number
  readonly #termMs: number
  #id: string | null = null
  #stamp = 0
  #untilMs = Number.NEGATIVE_INFINITY
  #timeline: number | null = null
  #read = { clockMs: 0, sentMs: 0, gotMs: 0 }
  #durable: ReadonlySet<number> = new Set()
  readonly #wanted = new Map<JournalId, number>()
  readonly #asked = new Set<JournalId>()
  #covered = new Map<JournalId, JournalPosition>()

  constructor({ clock, termMs = TERM_MS }: { readonly clock: () => number; readonly termMs?: number }) {
    this.#clock = clock
    this.#termMs = termMs
  }

  get id(): string | null {
    return this.#id
  }

  /** The row is on disk, under an id that no row had before. Nothing of an earlier id holds. */
  registered(id: string): void {
    this.giveUp()
    this.#id = id
  }

  giveUp(): void {
    this.#id = null
    this.#untilMs = Number.NEGATIVE_INFINITY
    this.#timeline = null
    this.#durable = new Set()
    this.#covered = new Map()
  }

  want(log: JournalId): void {
    this.#asked.add(log)
    if (this.#wanted.has(log)) return
    if (this.#wanted.size >= WANTED_MAX) {
      this.#wanted.clear()
      this.#asked.clear()
      this.#covered.clear()
    }
    this.#wanted.set(log, bucketOf(log))
  }

  leave(log: JournalId): void {
    this.#wanted.delete(log)
    this.#covered.delete(log)
  }

  /** Leaves the journals that nobody has asked about since the last call. */
  leaveIdle(): void {
    for (const log of this.#wanted.keys()) if (!this.#asked.has(log)) this.leave(log)
    this.#asked.clear()
  }

  /**
   * Until the answer comes, the database is asked: the renewal says to writers that this process has seen their intents. If no
   * answer comes, what was covered is read again. Throws TypeError without a row.
   */
  renewal(): Renewal {
    if (this.#id === null) throw new TypeError('a process without a row renews nothing')
    const sentMs = this.#clock()
    const kept = this.#covered
    this.#covered = new Map()
    const interests = new Set(this.#wanted.values())
    const unread = [...this.#wanted.keys()].filter((log) => sentMs >= this.#untilMs || !kept.has(log))
    return {
      id: this.#id,
      sentMs,
      stamp: ++this.#stamp,
      interests,
      reads: unread.slice(0, READS_MAX),
      kept,
      isDurable: [...interests].some((bucket) => !this.#durable.has(bucket)),
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
    const { interests, intents, positions, timeline, clockMs } = registry
    const nowMs = this.#clock()
    // After a lapse, writers have not waited; a failover may have lost what was read.
    const isOver = nowMs >= this.#untilMs || timeline !== this.#timeline
    for (const [log, position] of [...(isOver ? [] : renewal.kept), ...positions]) {
      const bucket = this.#wanted.get(log)
      // A writer that ends before this renewal does need not have known of an interest that is new with it.
      const counts = bucket !== undefined && interests.has(bucket) && renewal.interests.has(bucket)
      if (counts && !intents.has(bucket)) this.#covered.set(log, position)
    }
    // A name of somebody's that is no journal must not be read again and again.
    for (const log of renewal.reads) if (!positions.has(log)) this.leave(log)
    this.#timeline = timeline
    this.#untilMs = renewal.sentMs + this.#termMs
    this.#read = { clockMs, sentMs: renewal.sentMs, gotMs: nowMs }
    return [...renewal.interests].some((bucket) => !interests.has(bucket))
  }

  /** Null: the database has to be asked. */
  vector(logs: readonly JournalId[]): LeasedVector | null {
    for (const log of logs) if (this.#wanted.has(log)) this.#asked.add(log)
    const nowMs = this.#clock()
    if (nowMs >= this.#untilMs) return null
    return leasedVector(logs, { covered: this.#covered, reading: this.#read, nowMs })
  }
}
