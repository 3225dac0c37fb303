/** Limits how many tries each key has in a window of time. */

import { BoundedMap } from './bounded-map.ts'
export type Attempts = {
  /** Counts a try before it is made, so that simultaneous tries count, too. False: the key has no tries left for now. */
  take(key: string): boolean
  /** Gives a try back that was not made. */
  giveBack(key: string): void
}

/** Per process. When more than `keysMax` keys have tried, the one that began first is forgotten. */
export function createAttempts(options: {
  readonly clock: () => number
  readonly triesMax: number
  readonly windowMs: number
  readonly keysMax: number
}): Attempts {
  const { clock, triesMax, windowMs, keysMax } = options
  const windows = new BoundedMap<string, { startedAtMs: number; tries: number }>(keysMax)

  function current(key: string) {
    const window = windows.get(key)
    if (window !== undefined && clock() - window.startedAtMs < windowMs) return window
    const fresh = { startedAtMs: clock(), tries: 0 }
    windows.set(key, fresh)
    return fresh
  }

  return {
    take(key) {
      const window = current(key)
      if (window.tries >= triesMax) return false
      window.tries += 1
      return true
    },
    giveBack(key) {
      const window = windows.get(key)
      if (window === undefined) return
      window.tries -= 1
      // The empty window is deleted: keys with no tries could else fill the memory and push out other keys.
      if (window.tries <= 0) windows.delete(key)
    },
  }
}
