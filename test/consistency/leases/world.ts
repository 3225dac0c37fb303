/** True time and chance of a schedule, and processes in it: each with a clock of its own rate, pauses, crashes, and statements that get lost. */
import { xorshift } from '../simulate.ts'
import { Database } from './database.ts'

/** Chances are per occasion, or per statement. */
export type Setup = {
  /** Milliseconds between two writes, about. Default 25. */
  readonly writes?: number
  /** Beside a sole lease: between two writes of others, about. Default 400. */
  readonly foreign?: number
  readonly pause?: number
  readonly crash?: number
  /** A process that cannot reach the database, and goes on answering. */
  readonly cut?: number
  readonly lost?: number
  readonly slow?: number
  /** Announcements that a process does not hear. */
  readonly deaf?: number
  /** Interests taken and given up. */
  readonly moving?: number
  readonly restart?: number
  readonly failover?: number
  readonly losesWrites?: boolean
  /** The rate of the database's clock. Default: by chance. */
  readonly rate?: number
  /** An adversary cuts a process off when its term has just begun, and has another write at once. */
  readonly ambush?: number
  /** It also crashes the database when a renewal has just taken effect, or one that registered an interest. */
  readonly ambushStamp?: number
  readonly ambushDisk?: number
}
export const DRIFT = 0.01
export const TERM_MS = 200

type Event = { readonly atMs: number; readonly order: number; readonly run: () => void }
const isBefore = (a: Event, b: Event): boolean => a.atMs < b.atMs || (a.atMs === b.atMs && a.order < b.order)

/** A heap of what will happen, by time and then by order of entry. */
class Agenda {
  readonly #heap: Event[] = []
  #order = 0
  nowMs = 0

  add(atMs: number, run: () => void): void {
    const event = { atMs: Math.max(atMs, this.nowMs), order: this.#order++, run }
    let at = this.#heap.length
    while (at > 0) {
      const above = (at - 1) >> 1
      const parent = this.#heap[above]
      if (parent === undefined || isBefore(parent, event)) break
      this.#heap[at] = parent
      at = above
    }
    this.#heap[at] = event
  }

  /** @returns whether there was something left. */
  step(): boolean {
    const [first] = this.#heap
    const last = this.#heap.pop()
    if (first === undefined || last === undefined) return false
    if (this.#heap.length > 0) this.#sink(last)
    this.nowMs = first.atMs
    first.run()
    return true
  }

  #sink(event: Event): void {
    for (let at = 0; ; ) {
      const [left, right] = [this.#heap[2 * at + 1], this.#heap[2 * at + 2]]
      const isRight = left !== undefined && right !== undefined && isBefore(right, left)
      const least = isRight ? right : left
      if (least === undefined || isBefore(event, least)) {
        this.#heap[at] = event
        return
      }
      this.#heap[at] = least
      at = 2 * at + (isRight ? 2 : 1)
    }
  }
}

export class World {
  readonly setup: Setup
  readonly agenda = new Agenda()
  readonly database: Database
  readonly random: () => number
  constructor(seed: number, setup: Setup) {
    this.setup = setup
    this.random = xorshift(seed)
    const now = (): number => this.agenda.nowMs
    const byChance = this.between(1 - DRIFT, 1 + DRIFT)
    this.database = new Database({ random: this.random, now, rate: setup.rate ?? byChance })
  }
  get nowMs(): number {
    return this.agenda.nowMs
  }
  chance = (share: number): boolean => this.random() < share
  between = (low: number, high: number): number => low + this.random() * (high - low)
  pick<T>(items: readonly T[]): T {
    const item = items[Math.floor(this.random() * items.length)]
    if (item === undefined) throw new TypeError('there is nothing to pick from')
    return item
  }
  /** Of a message. */
  delay = (): number => (this.chance(this.setup.slow ?? 0.03) ? this.between(5, 0.45 * TERM_MS) : this.between(0.1, 2))
  every(meanMs: number, untilMs: number, run: () => void): void {
    const next = (): void => {
      if (this.nowMs > untilMs) return
      run()
      this.agenda.add(this.nowMs + this.between(0.2, 2) * meanMs, next)
    }
    this.agenda.add(this.between(0, meanMs), next)
  }
}

export class Process {
  readonly world: World
  readonly #rate: number
  readonly #offset: number
  #life = 0
  #pausedUntilMs = 0
  readonly #waiting: (() => void)[] = []
  isAlive = false
  cutUntilMs = 0

  constructor(world: World) {
    this.world = world
    const rates = [1 - DRIFT, 1 + DRIFT, world.between(1 - DRIFT, 1 + DRIFT)]
    this.#rate = world.pick(rates)
    this.#offset = world.between(0, 1e6)
  }
  /** It goes on while the process is paused. */
  clock = (): number => this.#offset + this.world.nowMs * this.#rate
  get isRunning(): boolean {
    return this.isAlive && this.#pausedUntilMs <= this.world.nowMs
  }
  get isCut(): boolean {
    return this.cutUntilMs > this.world.nowMs
  }
  pause(ms: number): void {
    this.#pausedUntilMs = Math.max(this.#pausedUntilMs, this.world.nowMs + ms)
  }
  start(): void {
    this.isAlive = true
    this.#pausedUntilMs = 0
  }
  crash(): void {
    this.isAlive = false
    this.#life++
  }
  /** What a question would be answered that came while the process was paused: it stands before all that came later. */
  resumed(): void {}
  /** Once the process runs, in order of arrival; never in another life. */
  at(atMs: number, run: () => void): void {
    const life = this.#life
    const deliver = (): void => {
      if (this.isAlive && this.#life === life) run()
    }
    this.world.agenda.add(atMs, () => {
      if (this.#waiting.length === 0 && this.#pausedUntilMs <= this.world.nowMs) deliver()
      else if (this.#waiting.push(deliver) === 1) this.#later()
    })
  }
  #later(): void {
    this.world.agenda.add(this.#pausedUntilMs, () => {
      if (this.isAlive) this.resumed()
      while (this.#waiting.length > 0) {
        if (this.#pausedUntilMs > this.world.nowMs) {
          this.#later()
          return
        }
        this.#waiting.shift()?.()
      }
    })
  }
  /** By its own clock. */
  after(ms: number, run: () => void): void {
    this.at(this.world.nowMs + ms / this.#rate, run)
  }

  /** The parts take effect one after the other. One that gets no answer may have run, or may run after it was given up. */
  statement(parts: readonly (() => void)[], done: (isAnswered: boolean) => void): void {
    const { world } = this
    const { lost = 0.01, slow = 0.03 } = world.setup
    const { life } = world.database
    let isSettled = false
    const settle = (isAnswered: boolean): void => {
      if (isSettled) return
      isSettled = true
      done(isAnswered)
    }
    const run = (atMs: number, index: number, isSilent: boolean): void =>
      world.agenda.add(atMs, () => {
        if (world.database.isDown || world.database.life !== life) return
        parts[index]?.()
        const apartMs = world.chance(slow + 0.02) ? world.between(2, 30) : world.between(0, 1)
        if (index + 1 < parts.length) run(world.nowMs + apartMs, index + 1, isSilent)
        else if (!isSilent) this.at(world.nowMs + world.delay(), () => settle(true))
      })
    const roll = this.isCut ? 0 : world.random() / lost
    if (roll >= 1) run(world.nowMs + world.delay(), 0, false)
    else if (roll >= 2 / 3) run(world.nowMs + world.between(20, 2.5 * TERM_MS), 0, true)
    else if (roll >= 1 / 3) run(world.nowMs + world.delay(), 0, true)
    this.after(TERM_MS / 2, () => settle(false))
  }
}
