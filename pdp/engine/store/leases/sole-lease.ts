/**
 * A lease on all journals of a database, for a process that writes to it alone. No other writer has to know of it: the database
 * itself holds back whoever else raises a journal, for a term, and takes the lease away with that write.
 */
import type { JournalId, JournalPosition, Vector } from '../../../shared/domain/journal.ts'
import { type LeasedVector, leasedVector } from './leased-vector.ts'
import { atMost, TERM_MS } from './terms.ts'

/** The database's part. Each raise of a journal notes itself (a shared lock) before it looks whether there is a lease. */
export const FENCE = {
  /** A raise says under which lease its process has given up what it covered. */
  holdsBack: (id: string, under: string | null): boolean => id !== under,
  /** A lease begins while no raise is under way, so that each later one sees it. */
  mayBegin: (raising: number): boolean => raising === 0,
  /** A raise locks the row of another's lease until it ends, so that the lease cannot be renewed meanwhile. */
  mayRenew: (raisingAgainstIt: number): boolean => raisingAgainstIt === 0,
  /** The raise waits so long while it holds the row, then commits without it. */
  waitMs: (termMs: number): number => atMost(termMs),
}

export type SoleRenewal = { readonly id: string; readonly sentMs: number }
export type Renewed = { readonly clockMs: number; readonly timeline: number }
/** A statement that reads positions. Null: what it reads is not kept. */
export type SoleReading = { readonly epoch: number } | null

/**
 * `under`: the lease that does not hold back the transaction. `ended`: with false where no answer came, so that it may still be
 * committed: then the lease is over, and another, under another id, begins only after that transaction.
 */
export type Writing = { readonly under: string | null; ended(isKnown: boolean): void }

/** How many journals are covered; when there are more, all are forgotten. */
const COVERED_MAX = 10_000

/** `clock`: monotonic milliseconds, which go on while the process is stopped. */
export class SoleLease {
  readonly #clock: () => number
  readonly #termMs: number
  #id: string | null = null
  #untilMs = Number.NEGATIVE_INFINITY
  #timeline: number | null = null
  #clockRead = { clockMs: 0, sentMs: 0, gotMs: 0 }
  /** Another once something that was read may be over. */
  #epoch = 0
  #writing = 0
  readonly #covered = new Map<JournalId, JournalPosition>()

  constructor({ clock, termMs = TERM_MS }: { readonly clock: () => number; readonly termMs?: number }) {
    this.#clock = clock
    this.#termMs = termMs
  }

  get id(): string | null {
    return this.#id
  }

  renewal(id: string): SoleRenewal {
    return { id, sentMs: this.#clock() }
  }

  /** The row is on disk, under an id that no lease had before. */
  begun(renewal: SoleRenewal, answer: Renewed): void {
    this.giveUp()
    this.#id = renewal.id
    this.renewed(renewal, answer)
  }

  /** Null: the row is gone, since another has written. */
  renewed({ id, sentMs }: SoleRenewal, answer: Renewed | null): void {
    if (id !== this.#id) return
    if (answer === null) {
      this.giveUp()
      return
    }
    // A failover, or a server put back from a copy of its disk, may have lost what was read.
    if (answer.timeline !== this.#timeline || this.#clock() >= this.#untilMs) this.#forget()
    this.#timeline = answer.timeline
    if (sentMs + this.#termMs <= this.#untilMs) return
    this.#untilMs = sentMs + this.#termMs
    this.#clockRead = { clockMs: answer.clockMs, sentMs, gotMs: this.#clock() }
  }

  giveUp(): void {
    this.#id = null
    this.#untilMs = Number.NEGATIVE_INFINITY
    this.#timeline = null
    this.#forget()
  }

  #forget(): void {
    this.#epoch++
    this.#covered.clear()
  }

  /** Before the first statement of a transaction of this process, which tells the database `under`. */
  writing(): Writing {
    const under = this.#id
    this.#forget()
    this.#writing++
    return {
      under,
      ended: (isKnown) => {
        this.#writing--
        if (isKnown) this.#forget()
        else this.giveUp()
      },
    }
  }

  /** Before the statement is sent. */
  reading(): SoleReading {
    return this.#id === null || this.#writing > 0 ? null : { epoch: this.#epoch }
  }

  read(reading: SoleReading, logs: Vector['logs']): void {
    if (reading?.epoch !== this.#epoch) return
    if (this.#covered.size > COVERED_MAX) this.#covered.clear()
    for (const [log, position] of logs) this.#covered.set(log, position)
  }

  /** Null: the database has to be asked. */
  vector(logs: readonly JournalId[]): LeasedVector | null {
    const nowMs = this.#clock()
    if (nowMs >= this.#untilMs) return null
    return leasedVector(logs, { covered: this.#covered, reading: this.#clockRead, nowMs })
  }
}
