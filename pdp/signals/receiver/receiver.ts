/** Receives security events of other issuers: one process at a time serves each stream, and every process takes pushes. */
import { randomUUID } from 'node:crypto'
import type { Queries, Sql } from '../../engine/store/directory.ts'
import type { MasterKeys } from '../../shared/base/encryption.ts'
import type { Log } from '../../shared/process/log.ts'
import type { Fetch } from '../../shared/token/remote-keys.ts'
import { createEntryBudget, type EntryBudget } from './entry-budget.ts'
import { createIntake, type IntakeOutcome } from './intake.ts'
import { createPushHandler, type PushHandler, RECEIVER_PATH } from './push.ts'
import { type Reception, startReception, transmitterOf, versionOf } from './reception.ts'
import { createSetKeys } from './set-keys.ts'
import { alignRows, hasStreams, leaseStreams, type ReceivedStream, releaseStreams, streamStates } from './streams.ts'
import type { TransmitterFetch } from './transmitter.ts'
import { createVerificationStates } from './verification-state.ts'
import { SEEN_KEPT_MS } from './verify-set.ts'

const TICK_MS = 2_000
/** How long a lease lasts: if its holder does not renew it, another process takes the stream over. */
const LEASE_MS = 15_000
const VERIFY_EVERY_MS = 60_000
const FORGET_EVERY_MS = 600_000

export type ReceiverDeps = {
  /** Our own issuer: transmitters push to a URL below it. */
  readonly issuer: string
  readonly sql: Sql
  readonly masterKeys: MasterKeys
  readonly fetch: TransmitterFetch & Fetch
  readonly clock: () => number
  readonly log: Log
  readonly onOutcome: (issuer: string, outcome: IntakeOutcome) => void
  /** Default: for 100,000 entries of each issuer. */
  readonly budget?: EntryBudget
  readonly tickMs?: number
  readonly leaseMs?: number
  readonly verifyEveryMs?: number
}
export type Receiver = {
  readonly push: PushHandler
  states(): ReturnType<typeof streamStates>
  close(): Promise<void>
}

export function startReceiver(deps: ReceiverDeps): Receiver {
  const { sql, masterKeys, fetch, clock, log, tickMs = TICK_MS, leaseMs = LEASE_MS, onOutcome } = deps
  const holder = randomUUID()
  const states = createVerificationStates(masterKeys)
  const intake = createIntake({
    sql,
    clock,
    log,
    onOutcome,
    states,
    budget: deps.budget ?? createEntryBudget(),
    keysOf: createSetKeys({ fetch, clock, log }),
  })
  const receptions = new Map<string, Reception>()
  const receptionDeps = {
    sql,
    masterKeys,
    fetch,
    clock,
    log,
    intake,
    states,
    pushUrlOf: (id: string) => `${deps.issuer}${RECEIVER_PATH}${id}`,
    verifyEveryMs: deps.verifyEveryMs ?? VERIFY_EVERY_MS,
  }
  let isClosing = false
  let forgotAtMs = Number.NEGATIVE_INFINITY
  let ticking: Promise<void> | null = null

  async function tick(): Promise<void> {
    try {
      if (receptions.size === 0 && !(await hasStreams(sql))) return
      await alignRows(sql, masterKeys)
      const leased = await leaseStreams(sql, holder, leaseMs)
      await align(leased)
      if (clock() - forgotAtMs > FORGET_EVERY_MS) {
        forgotAtMs = clock()
        await forget(sql)
      }
    } catch (err) {
      // Without the database no lease can be renewed, so all streams stop here until it answers.
      log.warn({ event: 'signals_unattended', err })
      await stopAll()
    }
  }

  async function align(leased: readonly ReceivedStream[]): Promise<void> {
    const wanted = new Map(leased.map((stream) => [stream.issuer, stream]))
    for (const [issuer, reception] of [...receptions]) {
      const stream = wanted.get(issuer)
      if (stream !== undefined && versionOf(stream) === reception.version) continue
      receptions.delete(issuer)
      await reception.stop()
      const isLeft =
        stream === undefined ? !(await isRegistered(sql, issuer)) : transmitterOf(stream) !== reception.transmitter
      // The deletion is not awaited, since the transmitter may no longer exist.
      if (isLeft) void reception.abandon()
    }
    for (const [issuer, stream] of wanted) {
      if (isClosing || receptions.has(issuer)) continue
      receptions.set(issuer, startReception(stream, receptionDeps))
    }
  }

  async function stopAll(): Promise<void> {
    const stopping = [...receptions.values()].map((reception) => reception.stop())
    receptions.clear()
    await Promise.all(stopping)
  }

  const run = (): void => {
    ticking ??= tick().finally(() => {
      ticking = null
    })
  }
  run()
  const timer = setInterval(run, tickMs)
  timer.unref()

  return {
    push: createPushHandler({ sql, masterKeys, intake, log }),
    states: () => streamStates(sql),
    async close() {
      isClosing = true
      clearInterval(timer)
      await ticking
      await stopAll()
      await releaseStreams(sql, holder).catch(() => undefined)
    },
  }
}

async function isRegistered(sql: Queries, issuer: string): Promise<boolean> {
  const rows = await sql.query("select 1 from trusted_issuer where issuer = $1 and document ? 'ssf'", [issuer])
  return rows.length > 0
}

async function forget(sql: Queries): Promise<void> {
  await sql.query(`delete from received_set where received_at < now() - make_interval(secs => $1)`, [
    SEEN_KEPT_MS / 1_000,
  ])
}
