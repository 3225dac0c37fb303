/** A transaction of the leases' schedules that raises journals, as the database runs it: at its commit it waits for who may still answer. */
import { bucketOf } from '../../../pdp/engine/store/leases/node-lease.ts'
import type { JournalId } from '../../../pdp/shared/domain/journal.ts'
import type { Raising, Value } from './database.ts'
import { TERM_MS, type World } from './world.ts'

/** The code under test, so that a mutated copy of it can take its place. */
export type Engine = Pick<typeof import('../../../pdp/engine/store/leases/node-lease.ts'), 'NodeLease' | 'REGISTRY'>
export type Write = { readonly logs: readonly JournalId[]; readonly key: string; readonly value: Value }
type Options = {
  readonly world: World
  readonly engine: Engine
  readonly poke: () => void
  readonly written: () => void
}

const POLL_MS = 2
const IDLE_MS = TERM_MS / 2

export class Raise {
  readonly #write: Write
  readonly #of: Options
  readonly #life: number
  readonly #own: Raising = { journals: new Set(), intents: new Set() }
  readonly #struck = new Set<string>()
  readonly #settles: boolean
  #isSettled: boolean
  #turn = 0

  constructor(write: Write, of: Options) {
    const { database } = of.world
    this.#write = write
    this.#of = of
    this.#life = database.life
    this.#isSettled = of.engine.REGISTRY.isSettled(database.tables.settled, database.tables.timeline)
    this.#settles = !this.#isSettled
    database.raising.add(this.#own)
    this.#raise(0)
  }

  /** Never in another life of the server. */
  #after(ms: number, run: () => void): void {
    const { world } = this.#of
    world.agenda.add(world.nowMs + ms, () => {
      if (!world.database.isDown && world.database.life === this.#life) run()
    })
  }

  #raise(index: number): void {
    const { world, engine, poke } = this.#of
    const log = this.#write.logs[index]
    if (log === undefined) {
      this.#after(this.#apartMs(), () => this.#await(0, world.database.clockMs))
      return
    }
    if ([...world.database.raising].some((other) => other !== this.#own && other.journals.has(log))) {
      this.#after(POLL_MS, () => this.#raise(index))
      return
    }
    this.#own.journals.add(log)
    const parts = {
      intent: () => this.#own.intents.add(log),
      turn: () => {
        this.#turn = ++world.database.turn
      },
    }
    const [first, second] = engine.REGISTRY.raise
    this.#after(0, parts[first])
    this.#after(this.#apartMs(), () => {
      parts[second]()
      poke()
      this.#after(this.#apartMs(), () => this.#raise(index + 1))
    })
  }

  #apartMs = (): number => {
    const { world } = this.#of
    if (world.chance(0.5)) return 0
    return world.chance(0.1) ? world.between(2, IDLE_MS) : world.between(0, 2)
  }

  /** Journal by journal, as the deferred trigger runs. */
  #await(index: number, sinceMs: number): void {
    const { world, engine } = this.#of
    const { database } = world
    const { REGISTRY } = engine
    const log = this.#write.logs[index]
    if (log === undefined) {
      this.#after(this.#apartMs(), () => this.#end())
      return
    }
    const open = [...database.tables.rows].filter(
      ([, row]) => row.interests.has(bucketOf(log)) && !REGISTRY.hasSeen(row, this.#turn),
    )
    const leftMs = sinceMs + REGISTRY.waitMs(TERM_MS) - database.clockMs
    if (leftMs > 1e-6 && (open.length > 0 || !this.#isSettled)) {
      this.#after(Math.min(POLL_MS, leftMs / database.rate), () => this.#await(index, sinceMs))
      return
    }
    this.#isSettled = true
    for (const [id] of open) if (!database.locked.has(id)) this.#strikeOff(id)
    this.#after(this.#apartMs(), () => this.#await(index + 1, sinceMs))
  }

  #strikeOff(id: string): void {
    this.#of.world.database.locked.add(id)
    this.#struck.add(id)
  }

  #end(): void {
    const { world, written, poke } = this.#of
    const { database } = world
    const isDone = !world.chance(0.05)
    const { timeline } = database.tables
    if (isDone)
      database.write(this.#write.logs, this.#write, (tables) => {
        for (const id of this.#struck) tables.rows.delete(id)
        if (this.#settles && tables.timeline === timeline) tables.settled = timeline
      })
    // The locks are seen for a moment after the commit.
    const release = (): void => {
      database.raising.delete(this.#own)
      for (const id of this.#struck) database.locked.delete(id)
      poke()
    }
    this.#after(this.#apartMs(), release)
    if (isDone) written()
  }
}
