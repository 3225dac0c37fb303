/** Measures how long the event loop was blocked, so that the PDP is not blamed for an answer that was read late. */

export type LocalLag = {
  /** How many milliseconds the event loop was blocked since `sinceMs` of `performance.now()`. */
  since(sinceMs: number): number
  /** True after two passes of the event loop in a row that took longer than `limitMs`. A single pause does not count. */
  isStarved(limitMs: number): boolean
  close(): void
}

const TICK_MS = 20
/** Smaller delays are normal for timers. */
const NOTICED_MS = 10
/** Bounds memory; older pauses are before every open deadline. */
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
      // A caller's timer may come before ours in a late pass, so the pause is not yet noted.
      const nowMs = performance.now()
      let total = nowMs - dueMs >= NOTICED_MS ? nowMs - Math.max(dueMs, sinceMs) : 0
      for (let at = pauses.length - 1; at >= 0; at -= 1) {
        const { endMs, lagMs } = pauses[at] ?? { endMs: 0, lagMs: 0 }
        if (endMs <= sinceMs) break
        total += Math.min(lagMs, endMs - sinceMs)
      }
      return total
    },
    isStarved(limitMs) {
      const [before, last] = pauses.slice(-2)
      if (before === undefined || last === undefined || performance.now() - last.endMs >= limitMs) return false
      const isNext = last.endMs - last.lagMs - before.endMs <= 2 * TICK_MS
      return isNext && before.lagMs >= limitMs && last.lagMs >= limitMs
    },
    close: () => clearInterval(timer),
  }
}
