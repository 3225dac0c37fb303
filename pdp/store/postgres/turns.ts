/** A bounded queue for each name: one runs at a time, in order of arrival. */
import { PdpError } from '../../domain/errors.ts'

export type Turns = {
  /** Throws PdpError `overloaded` without a turn, and what `work` throws. */
  take<T>(name: string, work: () => Promise<T>): Promise<T>
}
type Waiting = { readonly start: () => void; readonly timer: NodeJS.Timeout }

/** `waitingMax`: of one name. */
export function createTurns(options: { readonly waitMsMax: number; readonly waitingMax: number }): Turns {
  const { waitMsMax, waitingMax } = options
  /** Names that somebody has the turn of, with those who wait for it. */
  const queues = new Map<string, Set<Waiting>>()

  function turnOf(name: string): Promise<void> {
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
      }, waitMsMax)
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
    async take(name, work) {
      await turnOf(name)
      try {
        return await work()
      } finally {
        pass(name)
      }
    },
  }
}

const overloaded = (): PdpError => new PdpError('overloaded', 'too many writes to this log are waiting')
