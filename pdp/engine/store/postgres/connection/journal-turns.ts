/** A bounded queue for each name: one runs at a time, in order of arrival. */
import { PdpError } from '../../../../shared/domain/errors.ts'

export type JournalTurns = {
  /**
   * Waits for the turn of each name, in this order, on which all callers must agree. `work` gets the time at which the wait
   * began (performance.now()). Throws PdpError `overloaded` without a turn, and what `work` throws.
   */
  take<T>(names: readonly string[], work: (sinceMs: number) => Promise<T>): Promise<T>
}
/** Inside a transaction that has its turns already. */
export const NO_JOURNAL_TURNS: JournalTurns = { take: (_, work) => work(performance.now()) }
type Waiting = { readonly start: () => void; readonly timer: NodeJS.Timeout }

/** `waitMsMax`: for all names of a caller together; `waitingMax`: of one name. */
export function createJournalTurns(options: { readonly waitMsMax: number; readonly waitingMax: number }): JournalTurns {
  const { waitMsMax, waitingMax } = options
  /** By name: the turn is taken, and these callers wait for it. */
  const queues = new Map<string, Set<Waiting>>()

  function turnOf(name: string, endMs: number): Promise<void> {
    const queue = queues.get(name)
    if (queue === undefined) {
      queues.set(name, new Set())
      return Promise.resolve()
    }
    if (queue.size >= waitingMax) return Promise.reject(overloaded())
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        queue.delete(waiting)
        reject(overloaded())
      }, endMs - performance.now())
      const waiting: Waiting = { start: resolve, timer }
      queue.add(waiting)
    })
  }

  function pass(name: string): void {
    const queue = queues.get(name)
    const [next] = queue ?? []
    if (next === undefined) {
      queues.delete(name)
      return
    }
    queue?.delete(next)
    clearTimeout(next.timer)
    next.start()
  }

  return {
    async take(names, work) {
      const sinceMs = performance.now()
      const taken: string[] = []
      try {
        for (const name of names) {
          await turnOf(name, sinceMs + waitMsMax)
          taken.push(name)
        }
        return await work(sinceMs)
      } finally {
        for (const name of taken) pass(name)
      }
    },
  }
}

const overloaded = (): PdpError => new PdpError('overloaded', 'too many writes to this log are waiting')
