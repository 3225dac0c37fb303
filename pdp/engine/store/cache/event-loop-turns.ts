/** Long evaluations take turns: one of them has a slice in each turn of the event loop, so that everything else goes on in between. */

import { PdpError } from '../../../shared/domain/errors.ts'
import { Paused, Slice, type Sliced } from '../../decide/slices.ts'
import { createTenantPlaces } from '../tenant-places.ts'

/** Tuples that are visited for one evaluation before others get their turn. */
const VISITS_PER_SLICE = 2_000
/** Evaluations that are cheap share a turn, as long as they visit no more than this together. */
const VISITS_PER_TURN = 4_000
/** Operations that hold a snapshot of the store at once; each has a connection as long as it lasts, and writes need the others. */
const SNAPSHOTS_MAX = { all: 6, tenant: 4 }
/** A caller over the network waits no longer than its deadline. */
const WAITING_MAX = { all: 4_096, tenant: 1_024 }
/** How long an evaluation lasts at most, its waiting included. Who asked over the network has had an error long before. */
const LASTS_MS_MAX = 5_000

export type EventLoopTurnsOptions = {
  /** Monotonic milliseconds. */
  readonly clock?: () => number
  /** Default: setImmediate. */
  readonly nextTurn?: (run: () => void) => void
  readonly visitsPerSlice?: number
}

export class EventLoopTurns {
  readonly #clock: () => number
  readonly #nextTurn: (run: () => void) => void
  readonly #visitsPerSlice: number
  /** Not begun yet: these come first. */
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

  /** Enough was done in this turn: what has not begun yet is left to a later one. */
  get isOver(): boolean {
    return this.#visits >= VISITS_PER_TURN
  }

  begin(run: () => void): void {
    this.#fresh.push(run)
    this.#schedule()
  }

  /** For an evaluation that ends by `untilMs`. Throws PdpError `evaluation_limit` when that has passed. */
  async next(slice: Slice, untilMs: number): Promise<void> {
    await new Promise<void>((resolve) => {
      this.#begun.push(resolve)
      this.#schedule()
    })
    if (this.#clock() >= untilMs) throw new PdpError('evaluation_limit', 'the question takes too long to evaluate')
    slice.left = this.#visitsPerSlice
  }

  /** Until when an evaluation that is paused now may last. */
  untilMs(): number {
    return this.#clock() + LASTS_MS_MAX
  }

  /** To its end, where nothing that its view shows changes meanwhile. Throws as `next` does. */
  async finish<T>(found: Sliced<T>, slice: Slice): Promise<T> {
    const untilMs = this.untilMs()
    let at = found
    while (at instanceof Paused) {
      await this.next(slice, untilMs)
      at = at.resume()
    }
    return at
  }

  /** For what holds a snapshot while it takes turns: once there is a place for it. Throws as `run` of the places. */
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
