/**
 * The streams to all PDP addresses, and which of them get questions: those that time out get one question a second until
 * one is answered. It chooses among addresses, so it is no `pdp/shared/base/circuit-breaker.ts`. It never fails open.
 */
import { createLocalLag, type LocalLag } from './local-lag.ts'
import { PdpStream, type PdpStreamOptions } from './stream.ts'

export type PoolOptions = Pick<PdpStreamOptions, 'credentials' | 'random' | 'clock' | 'share'> &
  Partial<Pick<PdpStreamOptions, 'authorize' | 'connectMs'>> & {
    /** The addresses of PDPs, each as `host:port`. */
    readonly addresses: readonly string[]
    /** `wasOpen`: false when another attempt to connect failed. */
    readonly onConnectionChange?: (change: {
      readonly address: string
      readonly open: boolean
      readonly reason: string
      readonly wasOpen: boolean
    }) => void
    /** The `Date` field of the answer to a stream that began at `startedMs`. */
    readonly onDate?: (address: string, date: string, startedMs: number) => void
  }
export type Choice =
  | { readonly kind: 'stream'; readonly stream: PdpStream }
  /** No stream is open, but one may open soon. */
  | { readonly kind: 'wait' }
  /** Every address is known to be down; waiting would only queue requests. */
  | { readonly kind: 'none' }

export type PdpPool = {
  readonly count: number
  readonly lag: LocalLag
  /** Chooses an open stream other than `except`. */
  choose(except: PdpStream | null): Choice
  /** Notes a slow answer: for a short time, other streams are preferred. */
  markSlow(stream: PdpStream): void
  /** Notes that the PDP cannot decide: for a longer time, other streams are preferred. */
  markUnable(stream: PdpStream): void
  /** Notes a good answer. */
  markHealthy(stream: PdpStream): void
  /** Notes that no answer came before the deadline. */
  markFailed(stream: PdpStream): void
  /** Since when no address answers; null while one does. */
  silentSinceMs(): number | null
  /** True while no stream was open yet and a first attempt to connect is under way. */
  isConnecting(): boolean
  /** True after any stream has opened. */
  hasConnected(): boolean
  /** Functions that the next opened stream calls, each once. */
  readonly waiting: Set<() => void>
  close(): void
}
/** True for errors that another address may not have: this PDP lost its database, or is shutting down. */
export const isAddressError = (code: string): boolean => code === 'store_unavailable' || code === 'draining'

/** An address of a PDP: its stream, and how well it has answered lately. */
type Address = {
  readonly stream: PdpStream
  readonly health: { failures: number; brokenUntilMs: number; slowUntilMs: number; closedAtMs: number }
}

const CONNECT_MS = 3_000
const SLOW_MS = 1_000
const UNABLE_MS = 2_000
/** Consecutive timeouts after which an address gets only one question per BREAK_MS. */
const FAILURES_MAX = 5
const BREAK_MS = 1_000
/** How long questions wait for a new stream after one ended. */
const RECONNECT_WAIT_MS = 1_000

export function createPdpPool(options: PoolOptions): PdpPool {
  const { addresses, clock } = options
  const waiting = new Set<() => void>()
  const lag = createLocalLag()
  let silentSinceMs: number | null = clock()
  let wasOpen = false
  const pool = addresses.map((address) => openAddress(address, options, { onOpen, onClosed: noteSilence }))
  const healthOf = (stream: PdpStream) => pool.find((address) => address.stream === stream)?.health
  let turn = 0

  function onOpen(): void {
    silentSinceMs = null
    wasOpen = true
    const attempts = [...waiting]
    waiting.clear()
    for (const attempt of attempts) attempt()
  }
  function noteSilence(): void {
    if (!pool.some(({ stream, health }) => stream.isOpen() && health.failures < FAILURES_MAX)) silentSinceMs ??= clock()
  }

  return {
    count: pool.length,
    lag,
    waiting,
    choose(except) {
      turn = (turn + 1) % pool.length
      return chooseAmong(pool, { first: turn, except, nowMs: clock() })
    },
    silentSinceMs: () => silentSinceMs,
    isConnecting: () => !wasOpen && pool.some(({ stream }) => stream.isNew()),
    hasConnected: () => wasOpen,
    markSlow: (stream) => void Object.assign(healthOf(stream) ?? {}, { slowUntilMs: clock() + SLOW_MS }),
    markUnable: (stream) =>
      void Object.assign(healthOf(stream) ?? {}, { failures: 0, brokenUntilMs: 0, slowUntilMs: clock() + UNABLE_MS }),
    markHealthy(stream) {
      Object.assign(healthOf(stream) ?? {}, { failures: 0, brokenUntilMs: 0, slowUntilMs: 0 })
      silentSinceMs = null
    },
    markFailed(stream) {
      const health = healthOf(stream)
      if (health === undefined) return
      health.failures += 1
      if (health.failures >= FAILURES_MAX) health.brokenUntilMs = clock() + BREAK_MS
      noteSilence()
    },
    close() {
      lag.close()
      for (const { stream } of pool) stream.close()
    },
  }
}

function openAddress(
  address: string,
  { credentials, authorize = null, random, clock, connectMs = CONNECT_MS, share = null, ...options }: PoolOptions,
  { onOpen, onClosed }: { readonly onOpen: () => void; readonly onClosed: () => void },
): Address {
  const { onConnectionChange, onDate } = options
  const health = { failures: 0, brokenUntilMs: 0, slowUntilMs: 0, closedAtMs: clock() }
  const stream = new PdpStream({
    address,
    credentials,
    authorize,
    random,
    clock,
    connectMs,
    share,
    onDate: (date, startedMs) => onDate?.(address, date, startedMs),
    onOpen() {
      onConnectionChange?.({ address, open: true, reason: 'connected', wasOpen: false })
      Object.assign(health, { failures: 0, brokenUntilMs: 0 })
      onOpen()
    },
    onClosed(reason, hadOpened) {
      if (hadOpened) health.closedAtMs = clock()
      onConnectionChange?.({ address, open: false, reason, wasOpen: hadOpened })
      onClosed()
    },
  })
  return { stream, health }
}

/** The next that answers well, from `first` on; else the next that may answer. */
function chooseAmong(
  pool: readonly Address[],
  { first, except, nowMs }: { readonly first: number; readonly except: PdpStream | null; readonly nowMs: number },
): Choice {
  let second: Address | null = null
  let mayOpen = false
  for (let at = 0; at < pool.length; at += 1) {
    const address = pool[(first + at) % pool.length]
    if (address === undefined) continue
    const { stream, health } = address
    if (!stream.isOpen()) mayOpen ||= nowMs - health.closedAtMs < RECONNECT_WAIT_MS
    else if (stream === except) continue
    else if (health.failures < FAILURES_MAX && health.slowUntilMs <= nowMs) return { kind: 'stream', stream }
    else if (health.failures < FAILURES_MAX || health.brokenUntilMs <= nowMs) second ??= address
  }
  if (second === null) {
    // A restarting PDP may be back before the backoff ends, so the next attempt is made now.
    if (mayOpen) for (const { stream } of pool) stream.hurry()
    return { kind: mayOpen ? 'wait' : 'none' }
  }
  // This question tries whether the address answers again; others wait for the result.
  if (second.health.failures >= FAILURES_MAX) second.health.brokenUntilMs = nowMs + BREAK_MS
  return { kind: 'stream', stream: second.stream }
}
