/**
 * Keeps the lease of one of several processes: registers and renews it on a connection of its own, which also hears of the others'
 * writes. The database makes every writer wait for it (migrations/0034-shared-lease.sql).
 */
import { randomUUID } from 'node:crypto'
import type pg from 'pg'
import { withTimeout } from '../../../../shared/base/with-timeout.ts'
import { PdpError } from '../../../../shared/domain/errors.ts'
import type { JournalId } from '../../../../shared/domain/journal.ts'
import type { LeasedVector } from '../../leases/leased-vector.ts'
import { BUCKETS, NodeLease, type Registry } from '../../leases/node-lease.ts'
import { readTimeline } from './checkout.ts'
import { agree, JUMP_MS, type Renewed } from './clocks.ts'
import type { Connection } from './database.ts'
import { isDatabaseError } from './errors.ts'
import type { Fence } from './fence.ts'
import type { Opened } from './kept.ts'

const CHANNEL = 'portcullis_lease'
const FENCED = 'select lease_fence() is not null as fenced'
// Writers that are under way end first, so that each later one notes its intent. Before the first time nobody holds a lease.
const TURN_ON = `
  begin;
  set local lock_timeout = 50;
  alter table revision enable always trigger note_intent;
  alter table revision enable always trigger await_leases;
  update lease_settled set timeline = lease_timeline() where timeline is null;
  commit`
const REGISTER = `
  with former as (delete from lease_holder where id = any($2))
  insert into lease_holder (id, interests, seen) values ($1, decode(repeat('00', ${BUCKETS / 8}), 'hex'), nextval('lease_turn'))`
const RENEW = 'select renew_lease($1, $2, $3, $4, $5, $6) as answer'
const RELEASE = 'delete from lease_holder where id = any($1)'
const TELL = `select pg_notify('${CHANNEL}', $1)`
const RAISED = /\b(?:update|into) revision\b/

const STEP_MS = 500
const ANSWER_MS = 1_000
const PAUSE_MS = 60_000
/** Other transactions had the table. */
const LOCKED = '55P03'
const RETRY_MS = 2_000
const STRUCK_TWICE_MS = 600_000
const IDLE_MS = 60_000
/** So many renewals in a row that take longer than a step end the lease. */
const SLOW_MAX = 3
/** More renewals than these between two steps are caused by writes: then a lease costs more than it saves. */
const BUSY_MAX = 50
const NAMES_MAX = 10

type Answer = {
  readonly interests: string
  readonly intents: readonly number[]
  readonly positions: readonly (readonly [JournalId, number, string, number, string])[]
  readonly clockMs: number
  readonly timeline: string
  readonly fence: string | null
}
type Kept = { readonly open: () => Promise<Opened>; readonly drop: () => Promise<void> }
type Options = {
  readonly fence: Fence
  /** A connection of its own, which begins with `listen`. */
  readonly keep: (listen: (opened: Opened) => Promise<void>) => Kept
  readonly clock: () => number
  readonly wallClock: () => number
}

export class SharedHolder {
  readonly #of: Options
  readonly #kept: Kept
  readonly #lease: NodeLease
  #last: (Renewed & { readonly triggers: string | null }) | null = null
  /** Ids of this process that may still have a row. */
  #names: readonly string[] = []
  #isReported = false
  #nextTryMs = Number.NEGATIVE_INFINITY
  #struckMs = Number.NEGATIVE_INFINITY
  #idleMs: number
  #slowCount = 0
  #renewals = 0
  #timer: NodeJS.Timeout | undefined
  #running: Promise<void> | null = null
  #isAgain = false
  #tells = false
  #isEnded = false

  /**
   * `clock`: monotonic milliseconds, which go on while the process is stopped. `wallClock`: milliseconds of a clock that also counts
   * the time for which the machine was suspended.
   */
  constructor(of: Options) {
    this.#of = of
    this.#kept = of.keep((opened) => this.#listen(opened))
    this.#lease = new NodeLease({ clock: of.clock })
    this.#idleMs = of.clock() + IDLE_MS
  }

  async #listen({ client }: Opened): Promise<void> {
    client.on('notification', ({ payload }: pg.Notification) => {
      if (payload !== this.#lease.id) this.#soon()
    })
    await answered(client.query(`listen ${CHANNEL}`))
  }

  /** The positions from memory, for that many questions; null: ask. */
  vector(logs: readonly JournalId[], questions: number): LeasedVector | null {
    const last = this.#last
    const vector = this.#lease.vector(logs)
    if (vector === null) for (const log of logs) this.#lease.want(log)
    const { fence } = this.#of
    if (vector === null || last === null || last.timeline !== fence.latest) return null
    if (Math.abs(this.#apartMs() - last.apartMs) > JUMP_MS) return null // the machine was suspended
    fence.report({ kind: 'leased', questions })
    return vector
  }

  reading = (): null => null
  read = (): void => undefined
  giveUp = (): void => this.#lease.giveUp()
  /** A transaction of this process waits for this process too, so it has to name nothing. */
  surrender = (): undefined => undefined
  /** A journal was raised: the processes that are interested shall see it before the commit waits for them. */
  raised = (): void => this.#soon(true)

  async ownWrite<T>(
    connection: Connection,
    work: (connection: Connection, committing: () => void) => Promise<T>,
  ): Promise<T> {
    let hasRaised = false
    const query: Connection['query'] = async <Row extends object>(text: string, values?: readonly unknown[]) => {
      const rows = await connection.query<Row>(text, values)
      if (RAISED.test(text) && !text.includes("'#events'")) {
        hasRaised = true
        this.raised()
      }
      return rows
    }
    try {
      return await work({ ...connection, query }, () => undefined)
    } finally {
      if (hasRaised) this.raised() // its intent is over
    }
  }

  keep(): void {
    const turn = (): void => {
      if (this.#isEnded) return
      if (this.#renewals > BUSY_MAX) this.#end('writes come too fast', PAUSE_MS)
      this.#renewals = 0
      this.#soon()
      this.#timer = setTimeout(turn, STEP_MS).unref()
    }
    turn()
  }

  async end(): Promise<void> {
    this.#isEnded = true
    clearTimeout(this.#timer)
    this.#lease.giveUp()
    await this.#running
    await this.#release().catch(() => undefined)
    await this.#kept.drop()
  }

  #apartMs = (): number => this.#of.wallClock() - this.#of.clock()

  /** One statement at a time; whoever comes meanwhile is served by the next. */
  #soon(tells = false): void {
    this.#tells ||= tells
    if (this.#running !== null) {
      this.#isAgain = true
      return
    }
    this.#running = this.#steps().finally(() => {
      this.#running = null
    })
  }

  async #steps(): Promise<void> {
    do {
      this.#isAgain = false
      const tells = this.#tells
      this.#tells = false
      await this.#step(tells).catch(async (err: unknown) => {
        this.#isAgain = false
        if (isDatabaseError(err)) this.#end(`PostgreSQL: ${err.message}`, err.code === LOCKED ? RETRY_MS : PAUSE_MS)
        await this.#kept.drop().catch(() => undefined)
      })
    } while (this.#isAgain && !this.#isEnded)
  }

  async #step(tells: boolean): Promise<void> {
    const { clock } = this.#of
    if (this.#isEnded) return
    const opened = await this.#kept.open()
    if (this.#lease.id !== null) {
      await this.#renew(opened, tells)
      return
    }
    if (tells) await answered(opened.client.query(TELL, ['']))
    if (clock() >= this.#nextTryMs) await this.#register(opened)
    else await this.#release()
  }

  async #release(): Promise<void> {
    if (this.#names.length === 0) return
    const { client } = await this.#kept.open()
    await answered(client.query(RELEASE, [this.#names]))
    this.#names = []
  }

  async #register({ client }: Opened): Promise<void> {
    const id = randomUUID()
    const { rows } = await answered(client.query<{ readonly fenced: boolean }>(FENCED))
    if (rows[0]?.fenced !== true) await answered(client.query(TURN_ON))
    this.#names = [...this.#names.slice(1 - NAMES_MAX), id]
    await answered(client.query(REGISTER, [id, this.#names]))
    this.#names = [id]
    this.#last = null
    this.#slowCount = 0
    this.#lease.registered(id)
    this.#isAgain = true
  }

  async #renew({ client, server }: Opened, tells: boolean): Promise<void> {
    const { fence, clock } = this.#of
    if (clock() >= this.#idleMs) {
      this.#idleMs = clock() + IDLE_MS
      this.#lease.leaveIdle()
    }
    this.#renewals++
    const apartMs = this.#apartMs()
    const renewal = this.#lease.renewal()
    const { id, sentMs, stamp, interests, reads, isDurable } = renewal
    const values = [id, stamp, bitsOf(interests), reads, isDurable, tells]
    const { rows } = await answered(client.query<{ readonly answer: Answer | null }>(RENEW, values))
    const answer = rows[0]?.answer ?? null
    if (this.#lease.id !== id) return
    if (answer === null) {
      this.#struck()
      return
    }
    const timeline = readTimeline(answer.timeline)
    fence.pass({ ...server, timeline })
    const next = { clockMs: answer.clockMs, timeline, sentMs, gotMs: clock(), apartMs, triggers: answer.fence }
    this.#slowCount = next.gotMs - sentMs > STEP_MS ? this.#slowCount + 1 : 0
    const last = this.#last
    const wereOn = next.triggers !== null && (last === null || next.triggers === last.triggers)
    if (!wereOn) this.#end('the triggers of the table revision are off, or were')
    else if (last !== null && !agree(last, next)) this.#end('a clock was set, or the machine was stopped')
    else if (this.#slowCount >= SLOW_MAX) this.#end('renewals take too long')
    else {
      this.#last = next
      if (this.#lease.renewed(renewal, registryOf(answer, timeline))) this.#isAgain = true
      this.#report(null)
    }
  }

  /** A writer waited for this process in vain. */
  #struck(): void {
    const nowMs = this.#of.clock()
    const isAgain = nowMs < this.#struckMs + STRUCK_TWICE_MS
    this.#struckMs = nowMs
    this.#end('a writer waited in vain for this process', isAgain ? PAUSE_MS : 0)
  }

  #end(reason: string, pauseMs = PAUSE_MS): void {
    this.#lease.giveUp()
    this.#nextTryMs = this.#of.clock() + pauseMs
    this.#report(reason)
  }

  #report(ended: string | null): void {
    if (ended === null && this.#isReported) return
    this.#isReported = ended === null
    this.#of.fence.report({ kind: 'lease', ended })
  }
}

const late = (): PdpError => new PdpError('store_unavailable', 'the database did not answer in time')
const answered = <T>(answer: Promise<T>): Promise<T> => withTimeout(answer, ANSWER_MS, late)

function bitsOf(buckets: ReadonlySet<number>): Buffer {
  const bits = Buffer.alloc(BUCKETS / 8)
  for (const bucket of buckets) bits[bucket >> 3] = (bits[bucket >> 3] ?? 0) | (1 << (bucket & 7))
  return bits
}

function registryOf({ interests, intents, positions, clockMs }: Answer, timeline: number): Registry {
  const bits = Buffer.from(interests, 'hex')
  const has = (bucket: number): boolean => ((bits[bucket >> 3] ?? 0) & (1 << (bucket & 7))) !== 0
  return {
    interests: new Set(Array.from({ length: BUCKETS }, (_, bucket) => bucket).filter(has)),
    intents: new Set(intents),
    positions: new Map(
      positions.map(([log, revision, writeId, entitlementVersion, entitlementWriteId]) => [
        log,
        { revision, writeId, entitlementVersion, entitlementWriteId },
      ]),
    ),
    clockMs,
    timeline,
  }
}
