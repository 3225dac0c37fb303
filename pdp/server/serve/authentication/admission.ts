/** Admission under overload: organizations and their clients take turns, and a question that would be late is refused. */

import { FairQueue, type Line } from '../../../shared/base/fair-queue.ts'
import { withTimeout } from '../../../shared/base/with-timeout.ts'
import { PdpError } from '../../../shared/domain/errors.ts'
import { tenantOf } from '../../../shared/domain/names.ts'
import { RequestProblem } from '../http/status.ts'

/** The longest time from a question's arrival to its answer. */
export const DECISION_MS = 1_000
/**
 * How many questions are evaluated at once; one organization has at most three quarters of them. Measured beside a flood: with 1,024 the
 * p99 of other organizations was half of that with 2,048; with 512 some of their questions were refused.
 */
const OPEN_MAX = 1_024
/** How many questions of all organizations together may wait. */
const WAITING_MAX = 16_384
/** The longest wait of a question. If the queue has not been empty for this long, WAIT_MS_BUSY counts. */
const WAIT_MS = 500
const WAIT_MS_BUSY = 100
const SWEEP_MS = 25

export type Asker = { readonly organization: string | null; readonly client: string }
export type Admission = {
  /** Runs `work` in its turn. Throws RequestProblem `overloaded`, PdpError `store_unavailable` if too late, and what `work` throws. */
  run<T>(asker: Asker, work: () => Promise<T>): Promise<T>
  /** How many questions wait. */
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
  /** The tenant (`group`) and the client (`name`) of the question. */
  readonly line: Line
  readonly sinceMs: number
  readonly start: () => void
  readonly refuse: (error: Error) => void
}

export function createAdmission(options: AdmissionOptions): Admission {
  const { clock, openMax = OPEN_MAX, waitingMax = WAITING_MAX, deadlineMs = DECISION_MS } = options
  const shareMax = Math.max(1, Math.floor((openMax * 3) / 4))
  const open = new Map<string, number>()
  let openCount = 0
  let answeredMs = Number.NEGATIVE_INFINITY
  const queue = createWaitingQuestions({ clock, waitingMax, answeredMs: () => answeredMs })

  const openOf = (tenant: string): number => open.get(tenant) ?? 0
  const mayStart = (tenant: string): boolean => openCount < openMax && openOf(tenant) < shareMax

  function count(tenant: string, change: 1 | -1): void {
    openCount += change
    const left = openOf(tenant) + change
    if (left === 0) open.delete(tenant)
    else open.set(tenant, left)
  }

  function startNext(): void {
    const item = queue.next(mayStart)
    if (item === undefined) return
    count(item.line.group, 1)
    item.start()
  }

  return {
    get waitingCount() {
      return queue.count()
    },
    async run({ organization, client }, work) {
      const tenant = organization === null ? '' : tenantOf(organization)
      let leftMs = deadlineMs
      if (mayStart(tenant) && !queue.has(tenant)) count(tenant, 1)
      else {
        const sinceMs = clock()
        await queue.wait({ group: tenant, name: client })
        leftMs -= clock() - sinceMs
      }
      try {
        const result = await withTimeout(work(), leftMs, unanswered)
        answeredMs = clock()
        return result
      } finally {
        count(tenant, -1)
        startNext()
      }
    },
  }
}

/** Refuses the oldest question when too many wait, and each that waited too long. `answeredMs`: when a question was answered last. */
function createWaitingQuestions({
  clock,
  waitingMax,
  answeredMs,
}: {
  readonly clock: () => number
  readonly waitingMax: number
  readonly answeredMs: () => number
}) {
  /** Organizations take turns, and so do the clients of each. */
  const queue = new FairQueue<Waiting>()
  /** Waiting questions in order of arrival, since the oldest is refused first. */
  const waiting = new Set<Waiting>()
  let busySinceMs = 0
  let timer: NodeJS.Timeout | null = null

  function forget(item: Waiting): void {
    waiting.delete(item)
    if (waiting.size > 0 || timer === null) return
    clearInterval(timer)
    timer = null
  }

  function shed(item: Waiting): void {
    queue.remove(item, item.line)
    forget(item)
    // If no question at all gets an answer, the store is silent: then this is the cause, and not too many questions.
    const nowMs = clock()
    const waited = nowMs - item.sinceMs >= WAIT_MS_BUSY
    const stuck = waited && answeredMs() < item.sinceMs && nowMs - answeredMs() >= WAIT_MS
    item.refuse(stuck ? unanswered() : new RequestProblem('overloaded', 'too many questions wait already'))
  }

  function sweep(): void {
    const nowMs = clock()
    const waitMs = nowMs - busySinceMs > WAIT_MS ? WAIT_MS_BUSY : WAIT_MS
    for (const item of waiting) {
      if (nowMs - item.sinceMs < waitMs) return
      shed(item)
    }
  }

  return {
    count: () => waiting.size,
    has: (tenant: string) => queue.has(tenant),
    wait(line: Line): Promise<void> {
      if (waiting.size >= waitingMax) {
        // Refuses the client's oldest question, else its tenant's, else of all: a client's surplus displaces its own questions.
        const [oldestOfAll] = waiting
        const oldest = queue.oldest(line) ?? oldestOfAll
        if (oldest !== undefined) shed(oldest)
      }
      return new Promise((start, refuse) => {
        const item: Waiting = { line, sinceMs: clock(), start, refuse }
        if (waiting.size === 0) busySinceMs = item.sinceMs
        waiting.add(item)
        queue.add(item, line)
        timer ??= setInterval(sweep, SWEEP_MS)
      })
    },
    next(mayStart: (tenant: string) => boolean): Waiting | undefined {
      const item = queue.next(mayStart)
      if (item !== undefined) forget(item)
      return item
    },
  }
}

/** The error of whatever waited too long. */
export const unanswered = (): PdpError => new PdpError('store_unavailable', 'there was no answer in time')

/** Bounds the slow or expensive requests that are open at once: per client, and twice as many per tenant. */
export type Places = {
  /** Takes a place. The returned function releases it. Throws RequestProblem `overloaded`. */
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
