/** Limits a wait by time, without a false timeout when this process was too busy to read the result. */
import type { IncomingMessage } from 'node:http'

/**
 * Settles as `work` does, or rejects with `late()` after `timeoutMs`. Before that, sockets are read once more: a busy process may have left
 * an answer unread that came in time.
 */
export function withTimeout<T>(work: Promise<T>, timeoutMs: number, late: () => Error): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => afterReading(() => reject(late())), Math.max(0, timeoutMs))
    work.then(
      (value) => {
        clearTimeout(timer)
        resolve(value)
      },
      (error: unknown) => {
        clearTimeout(timer)
        reject(error)
      },
    )
  })
}

/** Calls `act` when `timeoutMs` have passed since the whole request arrived. The returned function ends the wait. */
export function onceLate(req: IncomingMessage, timeoutMs: number, act: () => void): () => void {
  const timer = setTimeout(expire, timeoutMs)
  let isOver = false
  const again = (): void => {
    if (!isOver) timer.refresh()
  }
  function expire(): void {
    // A body that still arrives has its own time limit, so the wait begins anew. An iterator reads a body that does not flow.
    const isRead = req.readableFlowing === true || req.listenerCount('readable') > 0
    if (!req.complete && isRead) again()
    else afterReading(finish)
  }
  function finish(): void {
    if (isOver) return
    end()
    act()
  }
  function end(): void {
    isOver = true
    clearTimeout(timer)
    req.off('end', again)
  }
  req.once('end', again)
  return end
}

/** Waits two turns of the event loop: the first reads sockets, the second settles the resulting promises. */
function afterReading(run: () => void): void {
  setImmediate(() => setImmediate(run))
}
