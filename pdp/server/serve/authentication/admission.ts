/** Admission under overload: organizations and their clients take turns, and a question that would be late is refused. */

import { withTimeout } from '../../../shared/base/with-timeout.ts'
import { PdpError } from '../../../shared/domain/errors.ts'
import { tenantOf } from '../../../shared/domain/names.ts'
import { RequestProblem } from '../http/status.ts'

/** From the arrival of a question to its answer. */
export const DECISION_MS = 1_000
/**
 * Questions that are evaluated at once. One organization has at most three quarters of them. Beside a flood, others' p99 was half
 * of what it is with 2,048; with 512 some of theirs were refused.
 */
const OPEN_MAX = 1_024
/** Questions that may wait, of all organizations together. */
const WAITING_MAX = 16_384
/** How long a question waits at most. The second value applies after the queue was never empty for that long. */
const WAIT_MS = 500
const WAIT_MS_BUSY = 100
const SWEEP_MS = 25

export type Asker = { readonly organization: string | null; readonly client: string }
export type Admission = {
  /** Throws RequestProblem `overloaded`, PdpError `store_unavailable` if there is no answer in time, and what `work` throws. */
  run<T>(asker: Asker, work: () => Promise<T>): Promise<T>
  /** Questions that wait for their turn. */
  readonly waitingCount: number
}
export type AdmissionOptions = {
  /** Monotonic milliseconds. */
  readonly clock: () => number
  readonly openMax?: number
  readonly waitingMax?: number
  readonly deadlineMs?: number
}
type Waiting = {
  readonly share: Share
  readonly client: string
  readonly sinceMs: number
  readonly start: () => void
  readonly refuse: (error: Error) => void
}
/** The waiting questions of one tenant. */
type Share = { readonly key: string; open: number; readonly byClient: Map<string, Set<Waiting>> }

export function createAdmission(options: AdmissionOptions): Admission {
  const { clock, openMax = OPEN_MAX, waitingMax = WAITING_MAX, deadlineMs = DECISION_MS } = options
  const shareMax = Math.max(1, Math.floor((openMax * 3) / 4))
  const shares = new Map<string, Share>()
  /** Organizations with a waiting question, in the order of their turns. */
  const line = new Set<Share>()
  /** All waiting questions, in the order of arrival: the oldest is shed first. */
  const waiting = new Set<Waiting>()
  let openCount = 0
  let busySinceMs = 0
  let answeredMs = Number.NEGATIVE_INFINITY
  let timer: NodeJS.Timeout | null = null

  function shareOf({ organization }: Asker): Share {
    const key = organization === null ? '' : tenantOf(organization)
    const share = shares.get(key) ?? { key, open: 0, byClient: new Map() }
    shares.set(key, share)
    return share
  }

  const mayStart = (share: Share): boolean => openCount < openMax && share.open < shareMax

  function wait(share: Share, client: string): Promise<void> {
    if (waiting.size >= waitingMax) {
      // Of the client, else of its tenant, else of all: too many questions displace their own kind.
      const [ofTenant = waiting] = share.byClient.values()
      const [oldest] = share.byClient.get(client) ?? ofTenant
      if (oldest !== undefined) shed(oldest)
      // The share is forgotten when that was its last one; a second share of a tenant would be a second turn.
      shares.set(share.key, share)
    }
    return new Promise((resolve, reject) => {
      const item: Waiting = { share, client, sinceMs: clock(), start: resolve, refuse: reject }
      if (waiting.size === 0) busySinceMs = item.sinceMs
      waiting.add(item)
      const own = share.byClient.get(client) ?? new Set()
      share.byClient.set(client, own.add(item))
      line.add(share)
      timer ??= setInterval(sweep, SWEEP_MS)
    })
  }

  function leave(item: Waiting): void {
    const own = item.share.byClient.get(item.client)
    own?.delete(item)
    if (own?.size === 0) item.share.byClient.delete(item.client)
    if (item.share.byClient.size === 0) line.delete(item.share)
    waiting.delete(item)
    if (waiting.size > 0 || timer === null) return
    clearInterval(timer)
    timer = null
  }

  function shed(item: Waiting): void {
    leave(item)
    // If nothing is answered at all, the cause is a store that does not answer, not too many questions.
    const nowMs = clock()
    const waited = nowMs - item.sinceMs >= WAIT_MS_BUSY
    const stuck = waited && answeredMs < item.sinceMs && nowMs - answeredMs >= WAIT_MS
    item.refuse(stuck ? unanswered() : new RequestProblem('overloaded', 'too many questions wait already'))
    forget(item.share)
  }

  function sweep(): void {
    const nowMs = clock()
    const waitMs = nowMs - busySinceMs > WAIT_MS ? WAIT_MS_BUSY : WAIT_MS
    for (const item of waiting) {
      if (nowMs - item.sinceMs < waitMs) return
      shed(item)
    }
  }

  /** Organizations take turns, and so do the clients of each: after a turn, they go to the end of the line. */
  function startNext(): void {
    for (const share of line) {
      const [turn] = share.byClient
      if (turn === undefined || !mayStart(share)) continue
      const [client, own] = turn
      const [item] = own
      if (item === undefined) continue
      leave(item)
      if (line.delete(share)) line.add(share)
      if (share.byClient.delete(client)) share.byClient.set(client, own)
      openCount += 1
      share.open += 1
      item.start()
      return
    }
  }

  function forget(share: Share): void {
    if (share.open === 0 && share.byClient.size === 0) shares.delete(share.key)
  }

  function end(share: Share): void {
    openCount -= 1
    share.open -= 1
    startNext()
    forget(share)
  }

  return {
    get waitingCount() {
      return waiting.size
    },
    async run(asker, work) {
      const share = shareOf(asker)
      let leftMs = deadlineMs
      if (mayStart(share) && share.byClient.size === 0) {
        openCount += 1
        share.open += 1
      } else {
        const sinceMs = clock()
        await wait(share, asker.client)
        leftMs -= clock() - sinceMs
      }
      try {
        const result = await withTimeout(work(), leftMs, unanswered)
        answeredMs = clock()
        return result
      } finally {
        end(share)
      }
    },
  }
}

/** The error of whatever waited too long. */
export const unanswered = (): PdpError => new PdpError('store_unavailable', 'there was no answer in time')

/** Limits how many slow or expensive requests are open at once: of one client, and twice as many of all clients of one tenant. */
export type Places = {
  /** Throws RequestProblem `overloaded`. The returned function releases the place. */
  take(caller: Asker): () => void
}

export function createPlaces(countMax: number): Places {
  const taken = new Map<string, number>()
  const countOf = (name: string): number => taken.get(name) ?? 0
  return {
    take({ client, organization }) {
      const own = { name: `client ${client}`, countMax, whose: 'this client already has' }
      const tenant =
        organization === null
          ? []
          : [
              {
                name: `tenant ${tenantOf(organization)}`,
                countMax: 2 * countMax,
                whose: 'the clients of this organization already have',
              },
            ]
      const shares = [own, ...tenant]
      for (const { name, countMax: most, whose } of shares)
        if (countOf(name) >= most) throw new RequestProblem('overloaded', `${whose} ${most} open requests`)
      for (const { name } of shares) taken.set(name, countOf(name) + 1)
      return () => {
        for (const { name } of shares)
          if (countOf(name) === 1) taken.delete(name)
          else taken.set(name, countOf(name) - 1)
      }
    },
  }
}
