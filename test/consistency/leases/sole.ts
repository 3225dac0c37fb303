/**
 * One schedule of a sole lease: two processes that may hold it, and writers that know nothing of leases. The database holds back
 * whoever raises a journal beside a lease.
 */
import type { Renewed, SoleLease } from '../../../pdp/engine/store/leases/sole-lease.ts'
import type { Vector } from '../../../pdp/shared/domain/journal.ts'
import { LOGS } from './database.ts'
import { judge } from './judge.ts'
import type { Outcome } from './simulate.ts'
import { DRIFT, Process, type Setup, TERM_MS, World } from './world.ts'

export type SoleEngine = typeof import('../../../pdp/engine/store/leases/sole-lease.ts')

const END_MS = 1_600
const RENEW_EVERY_MS = TERM_MS / 4
/** A loss may have taken the lease away with the writes: so long its holder may not know. */
const AFTER_LOSS_MS = TERM_MS / (1 - DRIFT)

/** The table with the lease, and the transactions that raise a journal, which end with the server. */
class Fence {
  readonly #world: World
  readonly #engine: SoleEngine
  readonly #onWritten: () => void
  #raising = 0
  #isLocked = false
  constructor(world: World, engine: SoleEngine, onWritten: () => void) {
    this.#world = world
    this.#engine = engine
    this.#onWritten = onWritten
  }

  get id(): string | null {
    const [id = null] = this.#world.database.tables.rows.keys()
    return id
  }

  crashed(): void {
    this.#raising = 0
    this.#isLocked = false
  }

  begin(id: string): Renewed | null {
    if (this.id !== null || !this.#engine.FENCE.mayBegin(this.#raising)) return null
    const row = { stamp: 0, interests: new Set<number>(), seen: 0 }
    this.#world.database.commit(true, ({ rows }) => rows.set(id, row))
    return this.#standing
  }

  /** `waits`: for a raise. */
  renew(id: string): Renewed | null | 'waits' {
    if (this.id !== id) return null
    return this.#engine.FENCE.mayRenew(this.#isLocked ? 1 : 0) ? this.#standing : 'waits'
  }

  get #standing(): Renewed {
    const { clockMs, tables } = this.#world.database
    return { clockMs, timeline: tables.timeline }
  }

  /** A transaction: its raise, and after a while its end. `done` when it was committed. */
  write(under: string | null, done: () => void): void {
    const { database } = this.#world
    const { life } = database
    this.#raising++
    const later = (ms: number, run: () => void): void =>
      this.#world.agenda.add(this.#world.nowMs + ms, () => {
        if (database.life === life && !database.isDown) run()
      })
    const look = (): void => {
      const { id } = this
      if (id === null || !this.#engine.FENCE.holdsBack(id, under)) later(this.#world.between(0, 20), () => end(null))
      else if (this.#isLocked) later(1, look)
      else {
        this.#isLocked = true
        later(this.#engine.FENCE.waitMs(TERM_MS) / database.rate, () => end(id))
      }
    }
    const end = (struck: string | null): void => {
      this.#raising--
      if (struck !== null) this.#isLocked = false
      if (this.#world.chance(0.1)) return // rolled back
      const log = this.#world.pick(LOGS)
      const value = { on: this.#world.chance(0.5) }
      database.write([log], { key: 'k', value }, ({ rows }) => void (struck !== null && rows.delete(struck)))
      this.#onWritten()
      done()
    }
    look()
  }
}

class Holder extends Process {
  readonly #fence: Fence
  readonly #engine: SoleEngine
  readonly #judge: (holder: Holder) => void
  lease: SoleLease
  constructor(world: World, engine: SoleEngine, parts: { fence: Fence; judge: (holder: Holder) => void }) {
    super(world)
    this.#fence = parts.fence
    this.#engine = engine
    this.#judge = parts.judge
    this.lease = this.#newLease()
  }

  #newLease = (): SoleLease => new this.#engine.SoleLease({ clock: this.clock, termMs: TERM_MS })

  override start(): void {
    super.start()
    this.lease = this.#newLease()
    this.#loop()
  }

  override resumed(): void {
    this.#judge(this)
  }

  #loop(): void {
    const { id } = this.lease
    if (id === null) this.#begin()
    else this.#renew(id)
    this.after(RENEW_EVERY_MS, () => this.#loop())
  }

  #begin(): void {
    const renewal = this.lease.renewal(`l${this.world.random()}`)
    let answer: Renewed | null = null
    const begin = (): void => {
      answer = this.#fence.begin(renewal.id)
    }
    this.statement([begin], (isAnswered) => {
      if (isAnswered && answer !== null && this.lease.id === null) this.lease.begun(renewal, answer)
    })
  }

  #renew(id: string): void {
    const renewal = this.lease.renewal(id)
    let answer: Renewed | null | 'waits' = 'waits'
    const renew = (): void => {
      answer = this.#fence.renew(id)
    }
    this.statement([renew], (isAnswered) => {
      if (isAnswered && answer !== 'waits') this.lease.renewed(renewal, answer)
      this.#judge(this)
    })
  }

  /** Asks the database for what cannot be answered from memory. */
  ask(): void {
    if (this.lease.vector(LOGS) !== null) return
    const reading = this.lease.reading()
    let logs: Vector['logs'] = new Map()
    const read = (): void => {
      logs = new Map(this.world.database.tables.logs)
    }
    this.statement([read], (isAnswered) => {
      if (isAnswered) this.lease.read(reading, logs)
      this.#judge(this)
    })
  }

  write(): void {
    const writing = this.lease.writing()
    let isOver = false
    const ended = (isKnown: boolean): void => {
      if (!isOver) writing.ended(isKnown)
      isOver = true
    }
    // Its answer comes after the commit, or never.
    const send = (): void =>
      this.#fence.write(writing.under, () => this.at(this.world.nowMs + this.world.delay(), () => ended(true)))
    this.statement([send], (isAnswered) => isAnswered || ended(false))
    this.after(TERM_MS / 2, () => ended(false))
  }
}

export function simulateSole(seed: number, engine: SoleEngine, setup: Setup): Outcome {
  const world = new World(seed, setup)
  const counts = { asked: 0, leased: 0, written: 0 }
  let wrong: string | null = null
  let lossMs = Number.NEGATIVE_INFINITY
  const judgeOne = (holder: Holder): void => {
    if (!holder.isRunning || world.nowMs <= lossMs + AFTER_LOSS_MS) return
    for (const log of LOGS) {
      counts.asked++
      const said = holder.lease.vector([log])
      if (said === null) continue
      counts.leased++
      wrong ??= judge(said, [log], world)
    }
  }
  const judgeAll = (): void => holders.forEach(judgeOne)
  const fence = new Fence(world, engine, () => {
    counts.written++
    judgeAll()
  })
  const holders = [0, 1].map(() => new Holder(world, engine, { fence, judge: judgeOne }))
  const { writes = 25, foreign = 400, pause = 0.5, crash = 0.1, cut = 0.1, restart = 0, failover = 0 } = setup
  const often = (meanMs: number, share: number, run: () => void): void => {
    if (share > 0) world.every(meanMs, END_MS, () => world.chance(share) && run())
  }
  const any = (): Holder => world.pick(holders)
  const longMs = (): number => (world.chance(0.5) ? world.between(1, 40) : world.between(TERM_MS / 2, 2.5 * TERM_MS))
  const crashDatabase = (isFailover: boolean): void => {
    if (world.database.isDown) return
    const losesWrites = isFailover && setup.losesWrites === true
    const { id } = fence
    world.database.crash({ isFailover, losesWrites })
    if (fence.id !== id) lossMs = world.nowMs
    fence.crashed()
    world.agenda.add(world.nowMs + world.between(1, 40), () => {
      world.database.isDown = false
    })
    judgeAll()
  }
  for (const holder of holders) world.agenda.add(world.between(0, 5), () => holder.start())
  often(6, 1, () => {
    const holder = any()
    judgeOne(holder)
    if (holder.isAlive) holder.at(world.nowMs, () => holder.ask())
  })
  often(writes, 1, () => {
    // Only the one with the lease, or it would be taken away all the time.
    const holder = holders.find(({ lease }) => lease.id !== null)
    if (holder?.isAlive === true) holder.at(world.nowMs, () => holder.write())
  })
  often(foreign, 1, () => {
    if (!world.database.isDown) fence.write(null, () => {})
  })
  often(120, pause, () => any().pause(longMs()))
  often(250, cut, () => {
    any().cutUntilMs = world.nowMs + world.between(TERM_MS / 4, 2.5 * TERM_MS)
  })
  often(300, crash, () => {
    const holder = any()
    if (!holder.isAlive) return
    holder.crash()
    world.agenda.add(world.nowMs + world.between(1, TERM_MS), () => holder.start())
  })
  often(300, restart, () => crashDatabase(false))
  often(500, failover, () => crashDatabase(true))
  while (world.nowMs < END_MS && wrong === null) if (!world.agenda.step()) break
  return { wrong, ...counts }
}
