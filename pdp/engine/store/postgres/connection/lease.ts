/**
 * The lease of a primary whose commits wait for a standby: it can be believed for a while after a heartbeat that it committed. A
 * primary without its standby commits none, so it is silent before the first write of a newer one can be seen.
 */
import { PdpError } from '../../../../shared/domain/errors.ts'
import type { Server } from './fence.ts'

/** Answers count until so long after the heartbeat was sent. */
export const LEASE_MS = 2_000
/** The first write on a timeline waits so long: every lease of an earlier one is over then, by clocks that differ by a fiftieth. */
export const SETTLED_MS = 2_050
const BEAT_EVERY_MS = 500
/** Between two heartbeats of which the first failed. */
const RETRY_MS = 100

/** `sinceMs`: when the connection was known to be open. */
export type Opened = Server & { readonly sinceMs: number }

export type Lease = {
  /** Throws PdpError `store_unavailable` unless the server was the primary at a moment after the connection was opened, and now. */
  assertCovered(server: Opened): void
  /** Waits until it is covered. Throws PdpError `store_unavailable` after `waitMs`. */
  cover(server: Opened, waitMs: number): Promise<void>
  /** Waits until no process answers from a server that this timeline has overtaken. */
  settle(timeline: number): Promise<void>
  end(): void
}

type LeaseOptions = {
  /** Commits a heartbeat, at the standby too, and returns the timeline that it was committed on. */
  readonly beat: () => Promise<number>
  /** Monotonic milliseconds, which go on while the machine is stopped. */
  readonly clock: () => number
  readonly later: (run: () => void, ms: number) => void
}

export function createLease({ beat, clock, later }: LeaseOptions): Lease {
  let held: { readonly timeline: number; readonly sentMs: number } | null = null
  /** By timeline: when this process first knew of it, which was after the promotion. */
  const knownMs = new Map<number, number>()
  const waiting = new Set<() => void>()

  function note(timeline: number): number {
    const known = knownMs.get(timeline) ?? clock()
    knownMs.set(timeline, known)
    return known
  }

  // A heartbeat that was sent before the connection was opened may be of a former life of the server.
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

/** One heartbeat after the other, without a pause while somebody waits for one. */
function startBeating(of: Pick<LeaseOptions, 'later'> & { beat(): Promise<void>; isWanted(): boolean }) {
  let isBeating = false
  let isEnded = false
  /** One that was planned for an earlier turn does not come. */
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
