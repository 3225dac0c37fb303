/** Work after an answer, such as sending mail. The answer does not wait for it, and does not show that there is any. */
import type { Log } from '../../../shared/process/log.ts'

const RUNNING_MAX = 4
const WAITING_MAX = 500
const CLOSE_MS = 10_000

export type Deliveries = {
  /** Adds work. Never throws. If too much waits, the newest is dropped and logged. */
  later(work: () => Promise<void>): void
  /** Resolves when no work is left. */
  idle(): Promise<void>
  /** Takes no new work, and gives running work a short time to end. */
  close(): Promise<void>
}

/** Keeps work in this process only. When the process ends, unsent mails are lost, and people ask again. */
export function createDeliveries({ log }: { readonly log: Log }): Deliveries {
  const waiting: (() => Promise<void>)[] = []
  const watchers = new Set<() => void>()
  let running = 0
  let isClosed = false

  async function run(work: () => Promise<void>): Promise<void> {
    try {
      await work()
    } catch (err) {
      log.error({ event: 'mail_failed', err })
    }
    running -= 1
    startNext()
    if (running > 0) return
    for (const done of watchers) done()
    watchers.clear()
  }

  function startNext(): void {
    const next = running < RUNNING_MAX ? waiting.shift() : undefined
    if (next === undefined) return
    running += 1
    void run(next)
  }

  function idle(): Promise<void> {
    return running === 0 && waiting.length === 0
      ? Promise.resolve()
      : new Promise((resolve) => void watchers.add(resolve))
  }

  return {
    later(work) {
      if (isClosed || waiting.length >= WAITING_MAX) {
        log.error({ event: 'mail_dropped', waiting: waiting.length })
        return
      }
      waiting.push(work)
      startNext()
    },
    idle,
    async close() {
      isClosed = true
      let timer: NodeJS.Timeout | undefined
      const late = new Promise<void>((resolve) => {
        timer = setTimeout(resolve, CLOSE_MS)
      })
      await Promise.race([idle(), late])
      clearTimeout(timer)
    },
  }
}
