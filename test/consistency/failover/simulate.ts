/**
 * One schedule of a failover: simulated servers and connections below the real pools' code, its fence and its lease. A primary is
 * overtaken and goes on; some processes are led to the new one, early or late or never, and keep the connections that they have.
 */
import type pg from 'pg'
import type { Hosts } from '../../../pdp/engine/store/postgres/connection/hosts.ts'
import { xorshift } from '../simulate.ts'

/** The code under test, so that a mutated copy of it can take its place. */
export type Engine = {
  readonly databaseOver: typeof import('../../../pdp/engine/store/postgres/connection/connection.ts').databaseOver
  readonly createFence: typeof import('../../../pdp/engine/store/postgres/connection/fence.ts').createFence
  readonly createLease: typeof import('../../../pdp/engine/store/postgres/connection/lease.ts').createLease
}
export type Outcome = { readonly wrong: readonly string[]; readonly answered: number; readonly written: number }

const PROCESSES = 3
const PROMOTED_MS = 3_000
const END_MS = 9_000
const STEP_MS = 25

/** It holds numbers, the greatest of which is read. `isCutOff`: commits wait for a standby that is gone. */
class Server {
  readonly timeline: number
  readonly values: Set<number>
  isCutOff = false
  constructor(timeline: number, values: Iterable<number>) {
    this.timeline = timeline
    this.values = new Set(values)
  }
  get latest(): number {
    return Math.max(0, ...this.values)
  }
}

const ONE: Hosts = { urls: ['one'], url: () => 'one', prefer: () => undefined, leave: () => undefined }
type Statement = string | { readonly text: string }

class Run {
  readonly #random: () => number
  readonly #engine: Engine
  readonly #synchronous: boolean
  readonly #wrong: string[] = []
  #current = new Server(1, [])
  #acknowledged = 0
  #written = 0
  #answered = 0

  constructor(seed: number, engine: Engine, synchronous: boolean) {
    this.#random = xorshift(seed)
    this.#engine = engine
    this.#synchronous = synchronous
  }

  /** `advance` lets so many milliseconds pass. */
  async whole(advance: (ms: number) => Promise<unknown>): Promise<Outcome> {
    const former = this.#current
    const ends = Array.from({ length: PROCESSES }, (_, i) => this.#startProcess(former, i))
    for (let nowMs = 0; nowMs < END_MS; nowMs += STEP_MS) {
      if (nowMs === PROMOTED_MS) {
        this.#current = new Server(2, former.values)
        former.isCutOff = this.#synchronous
      }
      await advance(STEP_MS)
    }
    for (const end of ends) end()
    await advance(10_000)
    return { wrong: this.#wrong, answered: this.#answered, written: this.#written }
  }

  #between = (low: number, high: number): number => low + this.#random() * (high - low)

  #startProcess(former: Server, index: number): () => void {
    let hasMet = false
    let isOver = false
    const ledMs = PROMOTED_MS + (index === 0 ? 0 : index === 1 ? this.#between(0, 3_000) : Number.POSITIVE_INFINITY)
    const address = (): Server => (performance.now() - startMs < ledMs ? former : this.#current)
    const startMs = performance.now()
    const fence = this.#engine.createFence((event) => {
      if (event.kind === 'primary' && event.timeline === 2) hasMet = true
    })
    const later = (run: () => void, ms: number): unknown => setTimeout(run, ms)
    const beat = (): Promise<number> => this.#beat(address())
    const lease = this.#synchronous ? this.#engine.createLease({ beat, clock: () => performance.now(), later }) : null
    const pools = { reads: this.#pool(address), transactions: this.#pool(address) }
    const database = this.#engine.databaseOver(pools, { fence, lease, hosts: ONE })
    const isBound = (): boolean => this.#synchronous || hasMet

    const read = async (): Promise<void> => {
      const [least, bound] = [this.#acknowledged, isBound()]
      const found = await database.prepared('vector', 'read', [], ([row], told) => {
        told(Number(row?.[1]))
        return Number(row?.[0])
      })
      this.#answered++
      if (bound && found < least) this.#wrong.push(`process ${index} read ${found} after ${least} was acknowledged`)
    }
    const write = async (): Promise<void> => {
      const value = ++this.#written
      const bound = isBound()
      await database.transaction((sql) => sql.query(`put ${value}`))
      if (bound && !this.#current.values.has(value))
        this.#wrong.push(`process ${index} wrote ${value} to the former primary`)
      if (this.#current.values.has(value)) this.#acknowledged = Math.max(this.#acknowledged, value)
    }
    const loop = (act: () => Promise<void>, restMs: number): void => {
      if (isOver) return
      act()
        .catch(() => undefined)
        .then(() => setTimeout(() => loop(act, restMs), this.#between(1, restMs)))
    }
    loop(read, 60)
    loop(read, 60)
    loop(write, 300)
    return () => {
      isOver = true
      lease?.end()
    }
  }

  /** The way back may take longer than a lease. */
  async #beat(server: Server): Promise<number> {
    await this.#pass(20)
    if (server.isCutOff) return new Promise((_, reject) => setTimeout(reject, 1_000))
    await this.#pass(this.#random() < 0.2 ? 3_000 : 20)
    return server.timeline
  }

  #pass = (msMax: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, this.#between(0, msMax)))

  #pool(address: () => Server): pg.Pool {
    const idle: pg.PoolClient[] = []
    const connect = async (): Promise<pg.PoolClient> => {
      await this.#pass(3)
      // A new connection beside those that are idle, as when several are in use at once.
      const [kept] = this.#random() < 0.7 ? idle.splice(Math.floor(this.#random() * idle.length), 1) : []
      return kept ?? this.#client(address(), (client) => idle.push(client))
    }
    return { connect } as unknown as pg.Pool
  }

  #client(server: Server, keep: (client: pg.PoolClient) => void): pg.PoolClient {
    let pending: number | null = null
    const run = (text: string): Promise<readonly unknown[]> | readonly unknown[] => {
      if (text.includes('inet_server_addr'))
        return [{ address: `server-${server.timeline}`, timeline: `0000000${server.timeline}`, kept: true }]
      if (text === 'read') return [[server.latest, server.timeline]]
      if (text.startsWith('put ')) pending = Number(text.slice(4))
      if (text !== 'commit' || pending === null) return []
      if (server.isCutOff) return new Promise(() => undefined)
      server.values.add(pending)
      pending = null
      return []
    }
    const client = {
      on: () => client,
      off: () => client,
      query: async (statement: Statement) => {
        await this.#pass(this.#random() < 0.05 ? 900 : 10)
        const rows = await run(typeof statement === 'string' ? statement : statement.text)
        await this.#pass(this.#random() < 0.05 ? 900 : 10)
        return { rows }
      },
      release: (broken?: Error | boolean) => {
        if (broken === undefined || broken === false) keep(client as unknown as pg.PoolClient)
      },
    }
    return client as unknown as pg.PoolClient
  }
}

/** `synchronous`: with the lease, so that no process may be wrong; without it, none that has met the new primary. */
export function simulateFailover(
  seed: number,
  of: { readonly engine: Engine; readonly synchronous: boolean; readonly advance: (ms: number) => Promise<unknown> },
): Promise<Outcome> {
  return new Run(seed, of.engine, of.synchronous).whole(of.advance)
}
