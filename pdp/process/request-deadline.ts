/** Measures how long a request waits for its answer, from its complete arrival. */
import type { IncomingMessage } from 'node:http'

/** Calls `act` once `timeoutMs` have passed since the request arrived with its body. The returned function ends the wait. */
export function onceLate(req: IncomingMessage, timeoutMs: number, act: () => void): () => void {
  const timer = setTimeout(look, timeoutMs)
  let isOver = false
  const again = (): void => {
    if (!isOver) timer.refresh()
  }
  function look(): void {
    // Whoever is still sending has a limit of its own.
    if (!req.complete && req.readableFlowing === true) again()
    // A busy process may have the answer, and not have read it yet.
    else setImmediate(() => setImmediate(finish))
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
