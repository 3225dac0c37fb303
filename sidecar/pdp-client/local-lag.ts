/** How long this process itself kept others waiting: an answer that nobody had time to read is not late. */

export type LocalLag = {
  /** Milliseconds since `sinceMs`, by `performance.now()`, in which the event loop was at something else. */
  since(sinceMs: number): number
  close(): void
}

const TICK_MS = 20
/** Less than this is what timers differ by. */
const NOTICED_MS = 10
/** What is older than any deadline is forgotten. */
const PAUSES_MAX = 256

export function createLocalLag(): LocalLag {
  const pauses: { readonly endMs: number; readonly lagMs: number }[] = []
  let dueMs = performance.now() + TICK_MS
  const timer = setInterval(note, TICK_MS).unref()

  function note(): void {
    const nowMs = performance.now()
    if (nowMs - dueMs >= NOTICED_MS) {
      pauses.push({ endMs: nowMs, lagMs: nowMs - dueMs })
      if (pauses.length > PAUSES_MAX) pauses.shift()
    }
    dueMs = nowMs + TICK_MS
  }

  return {
    since(sinceMs) {
      // A timer that is late in the same turn may be called before the one here.
      const nowMs = performance.now()
      let total = nowMs - dueMs >= NOTICED_MS ? nowMs - Math.max(dueMs, sinceMs) : 0
      for (let at = pauses.length - 1; at >= 0; at -= 1) {
        const { endMs, lagMs } = pauses[at] ?? { endMs: 0, lagMs: 0 }
        if (endMs <= sinceMs) break
        total += Math.min(lagMs, endMs - sinceMs)
      }
      return total
    },
    close: () => clearInterval(timer),
  }
}
