/** A bounded queue for each name: its callers run one at a time, in order of arrival. */
import { PdpError } from '../../../../shared/domain/errors.ts'

export type JournalTurns = {
  /**
   * Waits for the caller's turn at each name, in the given order, which must be the same for all callers. `work` gets the time at
   * which the wait began (performance.now()). Throws PdpError `overloaded` when a wait is too long, and what `work` throws.
   */
  take<T>(names: readonly string[], work: (sinceMs: number) => Promise<T>): Promise<T>
}
/** No queue, for writes inside a transaction that has its turns already. */
export const NO_JOURNAL_TURNS: JournalTurns = { take: (_, work) => work(performance.now()) }
type Waiting = { readonly start: () => void; readonly timer: NodeJS.Timeout }

/** `waitMsMax`: the longest wait of a caller for all its names together; `waitingMax`: the most callers that wait for one name. */
export function createJournalTurns(options: { readonly waitMsMax: number; readonly waitingMax: number }): JournalTurns {
  const { waitMsMax, waitingMax } = options
  /** The callers that wait, by name. A name is here as long as a caller has its turn. */
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
