/** Bounds on guessing: tries per key in a window of time, and expensive checks at once. */

export type Attempts = {
  /** Counts a try before it is made, so that many at once are counted too. False: the key has no tries left for now. */
  take(key: string): boolean
  /** The try was not made after all. */
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
  const windows = new Map<string, { startedAtMs: number; tries: number }>()

  function current(key: string) {
    const window = windows.get(key)
    if (window !== undefined && clock() - window.startedAtMs < windowMs) return window
    windows.delete(key) // a key that starts anew goes to the end of the order
    const [oldest] = windows.keys()
    if (windows.size >= keysMax && oldest !== undefined) windows.delete(oldest)
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
      // Else whoever is refused as busy could fill the memory with keys, and begin anew with those of others.
      if (window.tries <= 0) windows.delete(key)
    },
  }
}

/** Nothing more can wait: the caller should try again later. */
export class BusyError extends Error {
  override readonly name = 'BusyError'
}
/** Runs `work` when its turn has come. Rejects with BusyError when too many wait already. */
export type Semaphore = <T>(work: () => Promise<T>) => Promise<T>

export type Semaphores = { readonly [kind in 'decoys' | 'clients' | 'people']: Semaphore }

/** Each kind of work waits in a line of its own, and they take turns: one that is full keeps no other from its third. */
export function createSemaphores(options: { readonly runningMax: number; readonly waitingMax: number }): Semaphores {
  const lines: (() => void)[][] = []
  let running = 0
  let turn = 0

  /** The place goes to the next in line, or is free. */
  function leave(): void {
    for (let tries = 0; tries < lines.length; tries += 1) {
      turn = (turn + 1) % lines.length
      const next = lines[turn]?.shift()
      if (next === undefined) continue
      next()
      return
    }
    running -= 1
  }

  function createSemaphore(): Semaphore {
    const waiting: (() => void)[] = []
    lines.push(waiting)
    return async (work) => {
      if (running >= options.runningMax) {
        if (waiting.length >= options.waitingMax) throw new BusyError('too many checks are waiting')
        await new Promise<void>((enter) => waiting.push(enter))
      } else {
        running += 1
      }
      try {
        return await work()
      } finally {
        leave()
      }
    }
  }
  return { decoys: createSemaphore(), clients: createSemaphore(), people: createSemaphore() }
}
