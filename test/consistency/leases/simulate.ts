/**
 * One schedule of leases: three processes that answer from memory and write, on a database that crashes and fails over. Judged by
 * the strictest rule: whatever a running process may answer from memory, at any moment, is the database's content at that moment.
 */
import { ENVIRONMENT, type JournalId, TOKENS } from '../../../pdp/shared/domain/journal.ts'
import { LOGS, type Value } from './database.ts'
import { judge } from './judge.ts'
import { Node, type Observer, type Phase } from './node.ts'
import type { Engine, Write } from './raise.ts'
import { type Setup, TERM_MS, World } from './world.ts'

export type Outcome = {
  readonly wrong: string | null
  /** Judged answers, those of them from memory, and writes that took effect. */
  readonly asked: number
  readonly leased: number
  readonly written: number
}

const END_MS = 1_200
const NODES = 3
const ORGANIZATIONS = ['o0', 'o1'] as const

class Schedule implements Observer {
  readonly #world: World
  readonly nodes: readonly Node[]
  readonly #counts = { asked: 0, leased: 0, written: 0 }
  #wrong: string | null = null
  #token = 0

  constructor(seed: number, engine: Engine, setup: Setup) {
    this.#world = new World(seed, setup)
    this.nodes = Array.from({ length: NODES }, () => new Node(this.#world, engine, this))
  }

  run(): Outcome {
    const world = this.#world
    for (const node of this.nodes) world.agenda.add(world.between(0, 5), () => node.start())
    this.#plan(world.setup)
    while (world.nowMs < END_MS && this.#wrong === null) if (!world.agenda.step()) break
    return { wrong: this.#wrong, ...this.#counts }
  }

  #plan({
    writes = 25,
    pause = 0.5,
    crash = 0.3,
    cut = 0.1,
    restart = 0,
    failover = 0,
    losesWrites = false,
  }: Setup): void {
    const world = this.#world
    const { database } = world
    const often = (meanMs: number, share: number, run: () => void): void => {
      if (share > 0) world.every(meanMs, END_MS, () => world.chance(share) && run())
    }
    const longMs = (): number => (world.chance(0.5) ? world.between(1, 40) : world.between(TERM_MS / 2, 2.5 * TERM_MS))
    often(10, 1, () => this.#judge(world.pick(this.nodes)))
    often(writes, 1, () => this.#write(world.pick(this.nodes), this.#randomWrite()))
    often(120, pause, () => world.pick(this.nodes).pause(longMs()))
    often(250, cut, () => this.#cut(world.pick(this.nodes), world.between(TERM_MS / 4, 2.5 * TERM_MS)))
    often(200, crash, () => this.#crashNode(world.pick(this.nodes)))
    often(300, restart, () => this.#crashDatabase({ isFailover: false, losesWrites: false }))
    let lossMs = Number.NEGATIVE_INFINITY
    often(400, failover, () => {
      const loses = losesWrites && world.nowMs > lossMs + 3 * TERM_MS
      if (loses && !database.isDown) lossMs = world.nowMs
      this.#crashDatabase({ isFailover: true, losesWrites: loses })
    })
  }

  #write(node: Node, write: Write): void {
    if (node.isAlive) node.at(this.#world.nowMs, () => node.write(write))
  }

  #randomWrite(): Write {
    const world = this.#world
    const roll = world.random()
    const value: Value = { on: world.chance(0.5) }
    if (roll < 0.15) return { logs: [world.pick(['o0', 'o1']), 'p', TOKENS], key: 'all', value }
    if (roll < 0.7) return { logs: [world.pick(['o0', 'o0', 'o1', 'p'])], key: world.pick(['k0', 'k1']), value }
    if (roll < 0.8) return { logs: [ENVIRONMENT], key: 'o0', value: value.on ? { on: true, parent: 'p' } : value }
    if (roll < 0.88) return { logs: [ENVIRONMENT], key: 'off', value }
    return { logs: [TOKENS], key: `t${this.#token++}`, value: { on: true } }
  }

  #cut(node: Node, ms: number): void {
    node.cutUntilMs = this.#world.nowMs + ms
  }

  #crashNode(node: Node): void {
    if (!node.isAlive) return
    node.crash()
    this.#world.agenda.add(this.#world.nowMs + this.#world.between(1, TERM_MS), () => node.start())
  }

  #crashDatabase(how: { readonly isFailover: boolean; readonly losesWrites: boolean }): void {
    const { database, agenda } = this.#world
    if (database.isDown) return
    database.crash(how)
    for (const node of this.nodes) node.isListening = false
    agenda.add(this.#world.nowMs + this.#world.between(1, 40), () => {
      database.isDown = false
    })
    this.#judgeAll()
  }

  written(): void {
    this.#counts.written++
    this.#judgeAll()
  }

  renewed(node: Node): void {
    this.#judge(node)
  }

  renewing(node: Node, phase: Phase): void {
    const world = this.#world
    const { ambush = 0, ambushDisk = 0, ambushStamp = 0 } = world.setup
    if (phase !== 'read' && world.chance(phase === 'registered' ? ambushDisk : ambushStamp)) {
      world.agenda.add(world.nowMs + world.between(0, 3), () =>
        this.#crashDatabase({ isFailover: false, losesWrites: false }),
      )
      this.#ambush(node, world.between(3, 60))
    } else if (phase === 'read' && world.chance(ambush)) this.#ambush(node, world.between(0, 4))
  }

  #ambush(node: Node, inMs: number): void {
    const world = this.#world
    if (node.isCut || world.nowMs < 50) return
    // A process that is only cut off asks as soon as its next renewal is under way; one that is paused sends none.
    world.agenda.add(world.nowMs + 1.5, () => {
      if (world.chance(0.5)) node.pause(world.between(0.97, world.chance(0.5) ? 1.03 : 1.3) * TERM_MS)
      else this.#cut(node, (world.chance(0.5) ? world.between(0.5, 0.75) : 2) * TERM_MS)
    })
    const write: Write = { logs: [world.pick(['o0', 'o0', 'p', 'o1'])], key: 'k0', value: { on: world.chance(0.5) } }
    const writer = world.pick(this.nodes.filter((other) => other !== node))
    world.agenda.add(world.nowMs + inMs, () => this.#write(writer, write))
  }

  #judgeAll(): void {
    for (const node of this.nodes) this.#judge(node)
  }

  #judge(node: Node): void {
    if (!node.isRunning) return
    for (const log of LOGS) this.#judgeScope(node, [log])
    for (const organization of ORGANIZATIONS) {
      // A tree that has moved on shows in the environment's own position.
      const place = this.#world.database.log(ENVIRONMENT).content.get(organization)?.parent
      this.#judgeScope(node, [ENVIRONMENT, TOKENS, organization, ...(place === undefined ? [] : [place])])
    }
  }

  #judgeScope(node: Node, scope: readonly JournalId[]): void {
    this.#counts.asked++
    const said = node.lease.vector(scope)
    if (said === null) return
    this.#counts.leased++
    const wrong = judge(said, scope, this.#world)
    if (wrong !== null) this.#wrong ??= `process ${this.nodes.indexOf(node)} ${wrong}`
  }
}

export const simulateLeases = (seed: number, engine: Engine, setup: Setup): Outcome =>
  new Schedule(seed, engine, setup).run()
