/** A process of the leases' schedules: the real lease and the real wait of a writer, over simulated statements. */
import type { Holders, Removal, Step, Wait } from '../../../pdp/engine/store/leases/announced-write.ts'
import type { NodeLease, Registered, Registry, Renewal } from '../../../pdp/engine/store/leases/node-lease.ts'
import { ENVIRONMENT, type JournalId, TOKENS } from '../../../pdp/shared/domain/journal.ts'
import type { Tables, Value } from './database.ts'
import { Process, TERM_MS, type World } from './world.ts'

/** The code under test, so that a mutated copy of it can take its place. */
export type Engine = typeof import('../../../pdp/engine/store/leases/node-lease.ts') &
  typeof import('../../../pdp/engine/store/leases/announced-write.ts')
export type Write = { readonly log: JournalId; readonly key: string; readonly value: Value }
type Announced = { readonly intent: string; readonly write: Write; readonly wait: Wait }
/** In the database: its snapshot was read; it took effect; it registered an interest. */
export type Phase = 'read' | 'renewed' | 'registered'
/** Hears what all processes do. */
export type Observer = {
  readonly nodes: readonly Node[]
  written(): void
  renewed(node: Node): void
  renewing(node: Node, phase: Phase): void
}

const RENEW_EVERY_MS = TERM_MS / 4
const REREAD_EVERY_MS = 3
const MOVING: readonly JournalId[] = ['o0', 'o1', 'p']

export class Node extends Process {
  readonly #engine: Engine
  readonly #observer: Observer
  readonly #wanted = new Set<JournalId>([ENVIRONMENT, TOKENS, 'o0', 'p'])
  lease: NodeLease
  isListening = false
  #isRenewing = false
  #isAgain = false

  constructor(world: World, engine: Engine, observer: Observer) {
    super(world)
    this.#engine = engine
    this.#observer = observer
    this.lease = this.#newLease()
  }

  #newLease = (): NodeLease => new this.#engine.NodeLease({ clock: this.clock, termMs: TERM_MS })

  override start(): void {
    super.start()
    this.lease = this.#newLease()
    for (const log of this.#wanted) this.lease.want(log)
    this.#register()
  }

  override resumed(): void {
    this.#observer.renewed(this)
  }

  #register(): void {
    const id = `n${this.world.random()}`
    this.isListening = true
    this.#isRenewing = false
    this.#isAgain = false
    const row: Registered = { stamp: 0, interests: new Set(), acknowledged: new Set() }
    const insert = (): void => this.world.database.commit(true, ({ rows }) => rows.set(id, row))
    this.statement([insert], (isAnswered) => {
      if (!isAnswered) {
        this.after(20, () => this.#register())
        return
      }
      this.lease.registered(id)
      this.#loop(id)
    })
  }

  #loop(id: string): void {
    if (this.lease.id !== id) return
    if (!this.world.database.isDown) this.isListening = true
    if (this.world.chance(this.world.setup.moving ?? 0.08)) this.#move(this.world.pick(MOVING))
    this.renew()
    this.after(RENEW_EVERY_MS, () => this.#loop(id))
  }

  #move(log: JournalId): void {
    const isLeft = this.#wanted.delete(log)
    if (isLeft) this.lease.leave(log)
    else {
      this.#wanted.add(log)
      this.lease.want(log)
    }
  }

  renew(): void {
    if (this.lease.id === null) return
    if (this.#isRenewing) {
      this.#isAgain = true
      return
    }
    this.#isRenewing = true
    this.#isAgain = false
    const renewal = this.lease.renewal()
    let registry: Registry | null = null
    const read = (): void => {
      registry = this.#registry(renewal)
    }
    const update = (): void => {
      if (!this.#update(renewal)) registry = null
    }
    this.statement([read, update], (isAnswered) => {
      if (renewal.id !== this.lease.id) return
      this.#isRenewing = false
      if (!isAnswered) {
        this.after(2, () => this.renew())
        return
      }
      if (this.lease.renewed(renewal, registry)) this.#isAgain = true
      this.#observer.renewed(this)
      if (this.lease.id === null) this.#register()
      else if (this.#isAgain) this.renew()
      this.#clearAway()
    })
  }

  #registry({ id, reads }: Renewal): Registry {
    const { tables, clockMs } = this.world.database
    this.#observer.renewing(this, 'read')
    return {
      interests: tables.rows.get(id)?.interests ?? new Set(),
      intents: new Map([...tables.intents].map(([intent, { log }]) => [intent, log])),
      positions: new Map([...tables.logs].filter(([log]) => reads.has(log))),
      clockMs,
      timeline: tables.timeline,
    }
  }

  #update(renewal: Renewal): boolean {
    const { database } = this.world
    const { id, stamp, interests, acknowledged } = renewal
    const row = database.tables.rows.get(id)
    if (!this.#engine.takesEffect(row, renewal)) return false
    database.commit(renewal.isDurable, ({ rows }) => rows.set(id, { stamp, interests, acknowledged }))
    const isNew = [...interests].some((log) => !row.interests.has(log))
    this.#observer.renewing(this, isNew ? 'registered' : 'renewed')
    return true
  }

  #clearAway(): void {
    const { intents, isDurable } = this.lease.abandoned()
    for (const intent of intents)
      this.statement([() => this.world.database.commit(isDurable, (tables) => tables.intents.delete(intent))], () => {})
  }

  hear(intent: string, log: JournalId): void {
    if (this.lease.hear(intent, log)) this.renew()
  }

  /** Announces, waits, writes. Where no answer comes the writer gives up. */
  write(write: Write): void {
    const intent = `i${++this.world.intentCount}`
    const { clock } = this
    const wait = this.#engine.createWait({
      ...{ clock, intent, own: this.lease.id, rereadEveryMs: REREAD_EVERY_MS, termMs: TERM_MS },
    })
    this.lease.announcing(intent, write.log)
    let holders: Holders | null = null
    const parts = {
      intent: () => this.#announce(intent, write.log),
      holders: () => {
        holders = this.#holders(write.log)
      },
    }
    this.statement(
      this.#engine.ANNOUNCEMENT.map((part) => parts[part]),
      (isAnswered) => {
        this.lease.announced(intent)
        if (isAnswered && holders !== null) this.#take(wait.found(holders), { intent, write, wait })
      },
    )
  }

  #announce(intent: string, log: JournalId): void {
    const { world } = this
    const { timeline } = world.database.tables
    world.database.commit(false, ({ intents }) => intents.set(intent, { log, timeline }))
    for (const node of this.#listeners())
      if (!world.chance(world.setup.deaf ?? 0.02)) node.at(world.nowMs + world.delay(), () => node.hear(intent, log))
  }

  #listeners = (): readonly Node[] =>
    this.#observer.nodes.filter((node) => node.isAlive && node.isListening && !node.isCut)

  #holders(log: JournalId): Holders {
    const { tables, life: serverLife } = this.world.database
    const rows = new Map([...tables.rows].filter(([, { interests }]) => interests.has(log)))
    return { rows, timeline: tables.timeline, settled: tables.settled, serverLife }
  }

  #take(step: Step, of: Announced): void {
    if (step.kind === 'settle') this.after(step.afterMs, () => this.#settle(step.timeline, of))
    else if (step.kind === 'reread') this.after(step.afterMs, () => this.#reread(of))
    else {
      for (const removal of step.removals) this.#remove(removal)
      if (step.afterMs === 0) this.#commit(of.intent, of.write)
      else this.after(step.afterMs, () => this.#commit(of.intent, of.write))
    }
  }

  #settle(timeline: number, of: Announced): void {
    const { database } = this.world
    let holders: Holders | null = null
    const settle = (): void => {
      if (database.tables.timeline !== timeline) return
      database.commit(true, (tables) => {
        tables.settled = timeline
      })
    }
    const read = (): void => {
      holders = this.#holders(of.write.log)
    }
    this.statement([settle, read], (isAnswered) => {
      if (isAnswered && holders !== null) this.#take(of.wait.found(holders), of)
    })
  }

  #reread(of: Announced): void {
    let rows: Tables['rows'] | null = null
    const read = (): void => {
      rows = new Map(this.world.database.tables.rows)
    }
    this.statement([read], (isAnswered) => this.#take(of.wait.reread(isAnswered ? rows : null), of))
  }

  #remove(removal: Removal): void {
    const { database } = this.world
    const remove = (): void => {
      if (this.#engine.mayRemove(database.tables.rows.get(removal.id), removal, database.life))
        database.commit(false, ({ rows }) => rows.delete(removal.id))
    }
    this.after(Math.max(0, removal.atMs - this.clock()), () => this.statement([remove], () => {}))
  }

  #commit(intent: string, { log, key, value }: Write): void {
    const { world } = this
    const { database } = world
    const write = (): void => {
      const { intents, timeline } = database.tables
      if (!this.#engine.mayWrite(intents.get(intent), timeline)) return
      database.write(log, key, value, (tables) => void tables.intents.delete(intent))
      this.#observer.written()
      for (const node of this.#listeners()) node.at(world.nowMs + world.delay(), () => node.renew())
    }
    this.statement([write], () => {})
  }
}
