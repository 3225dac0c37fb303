/** Runs long evaluations in slices, one in each pass of the event loop (turn), so that other work goes on in between. */

import { PdpError } from '../../../shared/domain/errors.ts'
import { Paused, Slice, type Sliced } from '../../decide/slices.ts'
import { createTenantPlaces } from '../tenant-places.ts'

/** How many tuples an evaluation may visit per slice. */
const VISITS_PER_SLICE = 2_000
/** How many tuples all evaluations may visit in a turn; after that, no other begins in it. */
const VISITS_PER_TURN = 4_000
/** How many operations may hold a snapshot at once. Each has its own connection, and writes need the rest of the pool. */
const SNAPSHOTS_MAX = { all: 6, tenant: 4 }
/** How many operations may wait for a snapshot. */
const WAITING_MAX = { all: 4_096, tenant: 1_024 }
/** How long an evaluation may last, with its waiting. The deadline of a caller over the network is far shorter. */
const LASTS_MS_MAX = 5_000

export type EventLoopTurnsOptions = {
  /** Monotonic milliseconds. */
  readonly clock?: () => number
  /** Schedules the next turn; default: setImmediate. */
  readonly nextTurn?: (run: () => void) => void
  readonly visitsPerSlice?: number
}

export class EventLoopTurns {
  readonly #clock: () => number
  readonly #nextTurn: (run: () => void) => void
  readonly #visitsPerSlice: number
  /** Evaluations that have not begun: they run before those that have (`#begun`). */
  readonly #fresh: (() => void)[] = []
  readonly #begun: (() => void)[] = []
  #visits = 0
  #scheduled = false
  readonly #snapshots = createTenantPlaces({ open: SNAPSHOTS_MAX, waiting: WAITING_MAX })

  constructor(options: EventLoopTurnsOptions = {}) {
    this.#clock = options.clock ?? (() => performance.now())
    this.#nextTurn = options.nextTurn ?? setImmediate
    this.#visitsPerSlice = options.visitsPerSlice ?? VISITS_PER_SLICE
  }

  newSlice(): Slice {
    return new Slice(this.#visitsPerSlice)
  }

  /** Counts the tuples that were visited with a slice. */
  spent({ left }: Slice): void {
    this.#visits += this.#visitsPerSlice - left
  }

  /** True when the turn has visited enough tuples, so that no other evaluation begins in it. */
  get isOver(): boolean {
    return this.#visits >= VISITS_PER_TURN
  }

  begin(run: () => void): void {
    this.#fresh.push(run)
    this.#schedule()
  }

  /** Waits until the evaluation may go on, with a new slice. Throws PdpError `evaluation_limit` after `untilMs`. */
  async next(slice: Slice, untilMs: number): Promise<void> {
    await new Promise<void>((resolve) => {
      this.#begun.push(resolve)
      this.#schedule()
    })
    if (this.#clock() >= untilMs) throw new PdpError('evaluation_limit', 'the question takes too long to evaluate')
    slice.left = this.#visitsPerSlice
  }

  /** The latest end of an evaluation that pauses now for the first time. */
  untilMs(): number {
    return this.#clock() + LASTS_MS_MAX
  }

  /** Resumes a paused evaluation until it ends; its view must not change meanwhile. Throws what `next` throws. */
  async finish<T>(found: Sliced<T>, slice: Slice): Promise<T> {
    const untilMs = this.untilMs()
    let at = found
    while (at instanceof Paused) {
      await this.next(slice, untilMs)
      at = at.resume()
    }
    return at
  }

  /** Runs an operation with a snapshot when fewer than SNAPSHOTS_MAX have one. Throws what `TenantPlaces.run` throws. */
  inSnapshot<T>(organization: string | null, run: () => Promise<T>): Promise<T> {
    return this.#snapshots.run(organization, run)
  }

  #schedule(): void {
    if (this.#scheduled) return
    this.#scheduled = true
    this.#nextTurn(() => {
      this.#scheduled = false
      this.#visits = 0
      while (!this.isOver) {
        const run = this.#fresh.shift()
        if (run === undefined) break
        run()
      }
      this.#begun.shift()?.()
      if (this.#fresh.length + this.#begun.length > 0) this.#schedule()
    })
  }
}
