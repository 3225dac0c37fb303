/** A bounded queue for each name: its callers run in order of arrival, one at a time, or beside each other. */
import { PdpError } from '../../../../shared/domain/errors.ts'

/** `beside`: the turn of a caller who lets others of its kind run at the same time. */
export type Turn = string | { readonly beside: string }
export type JournalTurns = {
  /**
   * Waits for the caller's turn at each name, in the given order, which must be the same for all callers. `work` gets the time at
   * which the wait began (performance.now()). Throws PdpError `overloaded` when a wait is too long, and what `work` throws.
   */
  take<T>(turns: readonly Turn[], work: (sinceMs: number) => Promise<T>): Promise<T>
}
/** No queue, for writes inside a transaction that has its turns already. */
export const NO_JOURNAL_TURNS: JournalTurns = { take: (_, work) => work(performance.now()) }
type Waiting = { readonly start: () => void; readonly timer: NodeJS.Timeout; readonly alone: boolean }
/** `running`: how many callers have their turn; `alone`: they are one, who lets nobody run beside it. */
type Queue = { running: number; alone: boolean; readonly waiting: Set<Waiting> }

/** `waitMsMax`: the longest wait of a caller for all its names together; `waitingMax`: the most callers that wait for one name. */
export function createJournalTurns(options: { readonly waitMsMax: number; readonly waitingMax: number }): JournalTurns {
  const { waitMsMax, waitingMax } = options
  /** A name is here as long as a caller has its turn. */
  const queues = new Map<string, Queue>()

  function turnOf(turn: Turn, endMs: number): Promise<void> {
    const [name, alone] = [nameOf(turn), typeof turn === 'string']
    const queue = queues.get(name)
    if (queue === undefined) {
      queues.set(name, { running: 1, alone, waiting: new Set() })
      return Promise.resolve()
    }
    const { waiting } = queue
    if (!alone && !queue.alone && waiting.size === 0) {
      queue.running++
      return Promise.resolve()
    }
    if (waiting.size >= waitingMax) return Promise.reject(overloaded())
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        waiting.delete(self)
        startNext(queue)
        reject(overloaded())
      }, endMs - performance.now())
      const self: Waiting = { start: resolve, timer, alone }
      waiting.add(self)
    })
  }

  /** Starts those who may run now: one alone, or all who may run beside each other until one who must be alone. */
  function startNext(queue: Queue): void {
    for (const next of queue.waiting) {
      if (queue.running > 0 && (next.alone || queue.alone)) return
      queue.waiting.delete(next)
      clearTimeout(next.timer)
      queue.running++
      queue.alone = next.alone
      next.start()
    }
  }

  function pass(name: string): void {
    const queue = queues.get(name)
    if (queue === undefined) return
    queue.running--
    startNext(queue)
    if (queue.running === 0) queues.delete(name)
  }

  return {
    async take(turns, work) {
      const sinceMs = performance.now()
      const taken: string[] = []
      try {
        for (const turn of turns) {
          await turnOf(turn, sinceMs + waitMsMax)
          taken.push(nameOf(turn))
        }
        return await work(sinceMs)
      } finally {
        for (const name of taken) pass(name)
      }
    },
  }
}

const nameOf = (turn: Turn): string => (typeof turn === 'string' ? turn : turn.beside)

const overloaded = (): PdpError => new PdpError('overloaded', 'too many writes to this log are waiting')
