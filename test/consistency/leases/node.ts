/** A process of the leases' schedules: the real lease, over simulated statements. */
import {
  bucketOf,
  type NodeLease,
  type Registered,
  type Registry,
  type Renewal,
} from '../../../pdp/engine/store/leases/node-lease.ts'
import { ENVIRONMENT, type JournalId, TOKENS } from '../../../pdp/shared/domain/journal.ts'
import { type Engine, Raise, type Write } from './raise.ts'
import { Process, TERM_MS, type World } from './world.ts'

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
    const row: Registered = { stamp: 0, interests: new Set(), seen: 0 }
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
    const { parts, found } = this.#renewal(renewal)
    this.statement(parts, (isAnswered) => {
      if (renewal.id !== this.lease.id) return
      this.#isRenewing = false
      if (!isAnswered) {
        this.after(2, () => this.renew())
        return
      }
      if (this.lease.renewed(renewal, found())) this.#isAgain = true
      this.#observer.renewed(this)
      if (this.lease.id === null) this.#register()
      else if (this.#isAgain) this.renew()
    })
  }

  #renewal(renewal: Renewal): { readonly parts: readonly (() => void)[]; found(): Registry | null } {
    const { database } = this.world
    const { REGISTRY } = this.#engine
    const { id, stamp, interests, reads, isDurable } = renewal
    const { life } = database
    let row: Registered | undefined
    let seen = 0
    let intents: ReadonlySet<number> = new Set()
    let registry: Registry | null = null
    let isDone = false
    const parts = {
      row: () => {
        if (!REGISTRY.mayRenew(database.locked.has(id))) return
        const found = database.tables.rows.get(id)
        if (!REGISTRY.takesEffect(found, renewal)) return
        row = found
        database.locked.add(id)
      },
      turn: () => {
        if (row !== undefined) seen = ++database.turn
      },
      intents: () => {
        intents = new Set([...database.raising].flatMap((raising) => [...raising.intents].map(bucketOf)))
      },
      positions: () => {
        if (row === undefined) return
        const positions = new Map([...database.tables.logs].filter(([log]) => reads.includes(log)))
        const { clockMs, tables } = database
        registry = { interests: row.interests, intents: new Set(), positions, clockMs, timeline: tables.timeline }
        this.#observer.renewing(this, 'read')
      },
      update: () => {
        if (row === undefined) return
        database.locked.delete(id)
        database.commit(isDurable, ({ rows }) => rows.set(id, { stamp, interests, seen }))
        isDone = true
        const isNew = [...interests].some((bucket) => row?.interests.has(bucket) === false)
        this.#observer.renewing(this, isNew ? 'registered' : 'renewed')
      },
    }
    const found = (): Registry | null => (isDone && registry !== null ? { ...registry, intents } : null)
    return { parts: REGISTRY.renewal.map((part) => () => database.life === life && parts[part]()), found }
  }

  write(write: Write): void {
    const { world } = this
    const begin = (): void => {
      const poke = (): void => {
        for (const node of this.#listeners())
          if (!world.chance(world.setup.deaf ?? 0.02)) node.at(world.nowMs + world.delay(), () => node.renew())
      }
      new Raise(write, { world, engine: this.#engine, poke, written: () => this.#observer.written() })
    }
    this.statement([begin], () => {})
  }

  #listeners = (): readonly Node[] =>
    this.#observer.nodes.filter((node) => node.isAlive && node.isListening && !node.isCut)
}
