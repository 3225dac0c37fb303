/**
 * Keeps the lease of a process that writes alone: begins, renews and ends it over the connections that there are. The database
 * holds back whoever else writes (migrations/0033-sole-lease.sql).
 */
import { randomUUID } from 'node:crypto'
import type { JournalId } from '../../../../shared/domain/journal.ts'
import { ADVISORY_LOCKS } from '../../advisory-locks.ts'
import type { Sql } from '../../directory.ts'
import type { LeasedVector } from '../../leases/leased-vector.ts'
import { SoleLease, type Writing } from '../../leases/sole-lease.ts'
import { readTimeline, TIMELINE } from './checkout.ts'
import { agree, JUMP_MS, type Renewed } from './clocks.ts'
import type { Connection } from './database.ts'
import { isDatabaseError } from './errors.ts'
import type { Fence } from './fence.ts'

/** `schema`: quoted, with a dot, or empty. A transaction that has the lock lets no lease begin before it ends. */
export const sharedLock = (schema = ''): string =>
  `pg_advisory_xact_lock_shared(${ADVISORY_LOCKS.soleLease}, '${schema}sole_lease'::regclass::oid::int)`
/** Selects the row if it is as `is` says. A row that a writer has locked counts as gone: the writer is taking the lease away. */
const where = (is: string): string =>
  `where ${is} and singleton in (select singleton from sole_lease where ${is} for update skip locked)`
/** A PDP counts for a minute after it was seen, as for the number of connections, and so does a process with a shared lease. */
const CONDITION = `
  (extract(epoch from clock_timestamp()) * 1000)::float8 as "clockMs", ${TIMELINE} as timeline,
  (select tgenabled = 'A' from pg_trigger where tgrelid = 'revision'::regclass and tgname = 'hold_back') as fenced,
  (select count(*) < 2 from (select from pdp_process where seen_at > now() - interval '1 minute' limit 2) p)
    and not exists (select from lease_holder where renewed_at > now() - interval '1 minute') as alone`
const TRY = `
  select pg_try_advisory_xact_lock(${ADVISORY_LOCKS.soleLease}, 'sole_lease'::regclass::oid::int) as free, ${CONDITION}`
// Sent after TRY has the lock, so that it sees what each raise before it has left.
const BEGIN = `
  update sole_lease set id = $1, renewed_at = clock_timestamp() ${where('(id is null or id = any($2))')} returning 1`
// It need not wait for the disk: a renewal that a crash loses does not matter.
const RENEW = `
  update sole_lease set renewed_at = clock_timestamp() ${where('id = $1')}
  returning set_config('synchronous_commit', 'off', true), ${CONDITION}`
const RELEASE = `update sole_lease set id = null ${where('id = any($1)')}`
// The row of a process that has not renewed it for 10 s. The process may still run, so OUTWAIT follows, as in a write.
const TAKE_AWAY = `
  update sole_lease set id = null
  ${where("id is not null and renewed_at < clock_timestamp() - interval '10 s'")}
  returning 1`
const OUTWAIT = 'select pg_sleep(0.05) from generate_series(1, 50)'
// Writers that are under way end first. Those that come meanwhile wait, but not for long.
const TURN_ON = 'set local lock_timeout = 50; alter table revision enable always trigger hold_back'
const UNDER = `select set_config('portcullis.under', $1, true), ${sharedLock()}`
const RAISES = /\b(?:update|into|from|join) revision\b/
/** Whether the statement may lock or raise a journal. One that raises it in another way is held back. */
export const mayRaise = (text: string): boolean => RAISES.test(text) && !text.includes("'#events'")

const STEP_MS = 500
const NEXT_TRY_MS = 5_000
/** How long no lease begins after one was ended: twice as long each time, until a lease has lasted longer than the pause. */
const PAUSE_MS = 60_000
const PAUSE_MS_MAX = 3_600_000
const NAMES_MAX = 10

type Condition = {
  readonly clockMs: number
  readonly timeline: string
  readonly fenced: boolean | null
  readonly alone: boolean
}

export class SoleHolder {
  readonly #fence: Fence
  readonly #clock: () => number
  readonly #wallClock: () => number
  readonly #lease: SoleLease
  #last: Renewed | null = null
  /** Ids of this process that the row may still have. */
  #names: readonly string[] = []
  #isReported = false
  #beganMs = 0
  #pauseMs = 0
  #nextTryMs = Number.NEGATIVE_INFINITY
  #sql: Sql | null = null
  #timer: NodeJS.Timeout | undefined
  #running: Promise<void> = Promise.resolve()
  #isEnded = false

  /**
   * `clock`: monotonic milliseconds, which go on while the process is stopped. `wallClock`: milliseconds of a clock that also counts
   * the time for which the machine was suspended.
   */
  constructor(of: { readonly fence: Fence; readonly clock: () => number; readonly wallClock: () => number }) {
    this.#fence = of.fence
    this.#clock = of.clock
    this.#wallClock = of.wallClock
    this.#lease = new SoleLease({ clock: of.clock })
  }

  /** The positions from memory, for that many questions; null: ask. */
  vector(logs: readonly JournalId[], questions: number): LeasedVector | null {
    const last = this.#last
    const vector = this.#lease.vector(logs)
    if (vector === null || last === null || last.timeline !== this.#fence.latest) return null
    if (Math.abs(this.#apartMs() - last.apartMs) > JUMP_MS) return null // the machine was suspended
    this.#fence.report({ kind: 'leased', questions })
    return vector
  }

  reading: SoleLease['reading'] = () => this.#lease.reading()
  read: SoleLease['read'] = (reading, logs) => this.#lease.read(reading, logs)
  giveUp: SoleLease['giveUp'] = () => this.#lease.giveUp()
  raised = (): void => undefined

  /** Gives the lease up, and returns its id: a transaction that names it is not held back, whenever it ends. */
  surrender(): string | null {
    const { under, ended } = this.#lease.writing()
    ended(false)
    return under
  }

  /** Runs a transaction of this process. `committing` is called when its commit is sent: from then on it may happen even if no answer comes. */
  async ownWrite<T>(
    connection: Connection,
    work: (connection: Connection, committing: () => void) => Promise<T>,
  ): Promise<T> {
    let writing: Writing | null = null
    let isKnown = true
    const query: Connection['query'] = async (text, values) => {
      if (writing === null && mayRaise(text)) {
        writing = this.#lease.writing()
        if (writing.under !== null) await connection.query(UNDER, [writing.under])
      }
      return connection.query(text, values)
    }
    const ended = (): void => writing?.ended(isKnown)
    try {
      const result = await work({ ...connection, query }, () => {
        isKnown = false
      })
      isKnown = true
      return result
    } finally {
      ended()
    }
  }

  keep(sql: Sql): void {
    this.#sql = sql
    const turn = async (): Promise<void> => {
      await this.#step(sql).catch((err: unknown) => {
        if (isDatabaseError(err)) this.#end(`PostgreSQL: ${err.message}`)
      })
      if (this.#isEnded) return
      this.#timer = setTimeout(() => {
        this.#running = turn()
      }, STEP_MS).unref()
    }
    this.#running = turn()
  }

  async end(): Promise<void> {
    this.#isEnded = true
    clearTimeout(this.#timer)
    await this.#running
    this.#lease.giveUp()
    await this.#release().catch(() => undefined)
  }

  #apartMs(): number {
    return this.#wallClock() - this.#clock()
  }

  async #step(sql: Sql): Promise<void> {
    const { id } = this.#lease
    if (id !== null) await this.#renew(sql, id)
    else if (this.#clock() >= this.#nextTryMs) await this.#begin(sql)
    else await this.#release()
  }

  async #release(): Promise<void> {
    if (this.#names.length === 0) return
    await this.#sql?.query(RELEASE, [this.#names])
    this.#names = []
  }

  async #begin(sql: Sql): Promise<void> {
    const renewal = this.#lease.renewal(randomUUID())
    const apartMs = this.#apartMs()
    this.#nextTryMs = renewal.sentMs + NEXT_TRY_MS
    this.#names = [...this.#names.slice(1 - NAMES_MAX), renewal.id]
    const { found, isBegun } = await sql.transaction(async (tx) => {
      const [found] = await tx.query<Condition & { readonly free: boolean }>(TRY)
      const mayBegin = found?.free === true && found.fenced === true && found.alone
      return { found, isBegun: mayBegin && (await tx.query(BEGIN, [renewal.id, this.#names])).length > 0 }
    })
    if (found === undefined) return
    if (isBegun) {
      const { sentMs } = renewal
      this.#last = { ...found, timeline: readTimeline(found.timeline), sentMs, gotMs: this.#clock(), apartMs }
      this.#lease.begun(renewal, this.#last)
      this.#names = [renewal.id]
      this.#nextTryMs = Number.NEGATIVE_INFINITY
      if (!this.#isReported) this.#beganMs = sentMs
      this.#report(null)
      return
    }
    if (found.fenced !== true) await sql.transaction((tx) => tx.query(TURN_ON))
    else if (found.free && found.alone) {
      const isGone = await sql.transaction(async (tx) => {
        const taken = await tx.query(TAKE_AWAY)
        if (taken.length > 0) await tx.query(OUTWAIT)
        return taken.length > 0
      })
      if (!isGone) return
    } else if (found.free) return
    this.#nextTryMs = Number.NEGATIVE_INFINITY
  }

  async #renew(sql: Sql, id: string): Promise<void> {
    const last = this.#last
    const renewal = this.#lease.renewal(id)
    const apartMs = this.#apartMs()
    const [found] = await sql.query<Condition>(RENEW, [id])
    if (this.#lease.id !== id) return
    if (found === undefined) this.#end('another process has written')
    else if (found.fenced !== true) this.#end('the trigger hold_back of the table revision is off')
    else if (!found.alone) this.#end('another PDP uses the database')
    else {
      const { sentMs } = renewal
      const next = { ...found, timeline: readTimeline(found.timeline), sentMs, gotMs: this.#clock(), apartMs }
      if (last !== null && !agree(last, next)) this.#end('a clock was set, or the machine was stopped')
      else {
        this.#last = next
        this.#lease.renewed(renewal, next)
      }
    }
  }

  #end(reason: string): void {
    this.#lease.giveUp()
    const nowMs = this.#clock()
    const hasLasted = nowMs - this.#beganMs > this.#pauseMs
    this.#pauseMs = hasLasted ? PAUSE_MS : Math.min(2 * this.#pauseMs, PAUSE_MS_MAX)
    this.#nextTryMs = nowMs + this.#pauseMs
    this.#report(reason)
  }

  #report(ended: string | null): void {
    if (ended === null && this.#isReported) return
    this.#isReported = ended === null
    this.#fence.report({ kind: 'lease', ended })
  }
}
