/**
 * The lease of a primary whose commits wait for a standby: its answers count for a while after each heartbeat that it committed. A
 * former primary has no standby and commits none, so its answers no longer count when the first write of a newer primary is made.
 */
import { PdpError } from '../../../../shared/domain/errors.ts'
import type { Server } from './fence.ts'

/** How long after a heartbeat was sent answers count. */
export const LEASE_MS = 2_000
/** How long the first write on a timeline waits, until every lease of an earlier one has ended, even if clocks run 2 % apart. */
export const SETTLED_MS = 2_050
const BEAT_EVERY_MS = 500
/** The pause after a heartbeat that failed. */
const RETRY_MS = 100

/** `sinceMs`: a time at which the connection was open. */
export type Opened = Server & { readonly sinceMs: number }

export type Lease = {
  /** Throws PdpError `store_unavailable` unless a heartbeat sent after the connection was opened covers this moment. */
  assertCovered(server: Opened): void
  /** Waits until `assertCovered` would pass. Throws PdpError `store_unavailable` after `waitMs`. */
  cover(server: Opened, waitMs: number): Promise<void>
  /** Waits until no process can still answer from a server that this timeline has overtaken. */
  settle(timeline: number): Promise<void>
  end(): void
}

type LeaseOptions = {
  /** Commits a heartbeat, at the standby too, and returns the timeline that it was committed on. */
  readonly beat: () => Promise<number>
  /** Monotonic milliseconds, which must also count while the machine is suspended. */
  readonly clock: () => number
  readonly later: (run: () => void, ms: number) => void
}

export function createLease({ beat, clock, later }: LeaseOptions): Lease {
  let held: { readonly timeline: number; readonly sentMs: number } | null = null
  /** When this process first met each timeline, which was after its promotion. */
  const knownMs = new Map<number, number>()
  const waiting = new Set<() => void>()

  function note(timeline: number): number {
    const known = knownMs.get(timeline) ?? clock()
    knownMs.set(timeline, known)
    return known
  }

  // A heartbeat from before the connection was opened may have been committed before the server restarted.
  const isCovered = ({ timeline, sinceMs }: Opened): boolean =>
    held !== null && held.timeline === timeline && held.sentMs >= sinceMs && clock() < held.sentMs + LEASE_MS

  const beats = startBeating({
    later,
    isWanted: () => waiting.size > 0,
    async beat() {
      const sentMs = clock()
      const timeline = await beat()
      note(timeline)
      held = { timeline, sentMs }
      for (const settle of [...waiting]) settle()
    },
  })

  return {
    assertCovered(server) {
      if (!isCovered(server)) throw unconfirmed()
    },
    cover(server, waitMs) {
      note(server.timeline)
      if (isCovered(server)) return Promise.resolve()
      return new Promise((resolve, reject) => {
        const settle = (): void => {
          if (isCovered(server) && waiting.delete(settle)) resolve()
        }
        waiting.add(settle)
        beats.now()
        later(() => {
          if (waiting.delete(settle)) reject(unconfirmed())
        }, waitMs)
      })
    },
    async settle(timeline) {
      const leftMs = note(timeline) + SETTLED_MS - clock()
      if (leftMs > 0) await new Promise<void>((resolve) => later(resolve, leftMs))
    },
    end: beats.end,
  }
}

/** Sends one heartbeat after the other, without a pause while a caller waits for one. */
function startBeating(of: Pick<LeaseOptions, 'later'> & { beat(): Promise<void>; isWanted(): boolean }) {
  let isBeating = false
  let isEnded = false
  /** Raised by each heartbeat, so that a timer that was set before it does nothing. */
  let turn = 0

  async function now(): Promise<void> {
    if (isBeating || isEnded) return
    isBeating = true
    const isGood = await of.beat().then(
      () => true,
      () => false,
    )
    isBeating = false
    const mine = ++turn
    const inMs = !isGood ? RETRY_MS : of.isWanted() ? 0 : BEAT_EVERY_MS
    of.later(() => mine === turn && void now(), inMs)
  }
  void now()
  return {
    now: () => void now(),
    end() {
      isEnded = true
    },
  }
}

const unconfirmed = (): PdpError =>
  new PdpError('store_unavailable', 'the database has not committed a heartbeat at its standby within two seconds')
