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
/**
 * Runs `work` when its turn has come. Of those who wait, each address has its turn. Rejects with BusyError when too many
 * wait: of the address that has the most, the last who came.
 */
export type Semaphore = <T>(work: () => Promise<T>, address: string) => Promise<T>

export type Semaphores = { readonly [kind in 'decoys' | 'clients' | 'people']: Semaphore }

/** Each kind of work waits in a line of its own, and they take turns: one that is full keeps no other from its third. */
export function createSemaphores(options: { readonly runningMax: number; readonly waitingMax: number }): Semaphores {
  const lines: Line[] = []
  let running = 0
  let turn = 0

  /** The place goes to the next in line, or is free. */
  function leave(): void {
    for (let tries = 0; tries < lines.length; tries += 1) {
      turn = (turn + 1) % lines.length
      const next = lines[turn]?.next() ?? null
      if (next === null) continue
      next.enter()
      return
    }
    running -= 1
  }

  function createSemaphore(): Semaphore {
    const line = new Line(options.waitingMax)
    lines.push(line)
    return async (work, address) => {
      if (running < options.runningMax) running += 1
      else await new Promise<void>((enter, refuse) => line.join(address, { enter, refuse }))
      try {
        return await work()
      } finally {
        leave()
      }
    }
  }
  return { decoys: createSemaphore(), clients: createSemaphore(), people: createSemaphore() }
}

type Waiter = { readonly enter: () => void; readonly refuse: (reason: BusyError) => void }

class Line {
  readonly #waitingMax: number
  /** By address, in the order of their turns. None is empty. */
  readonly #waiting = new Map<string, Waiter[]>()
  #count = 0

  constructor(waitingMax: number) {
    this.#waitingMax = waitingMax
  }

  /** Refuses this one, or the last of an address that has more. */
  join(address: string, waiter: Waiter): void {
    const own = this.#waiting.get(address) ?? []
    own.push(waiter)
    this.#waiting.set(address, own)
    this.#count += 1
    if (this.#count > this.#waitingMax) this.#refuseOne(address)
  }

  /** Null: nobody waits. */
  next(): Waiter | null {
    for (const [address, waiters] of this.#waiting) {
      const first = waiters.shift() ?? null
      this.#count -= 1
      // Its next turn comes after those of all others.
      this.#waiting.delete(address)
      if (waiters.length > 0) this.#waiting.set(address, waiters)
      return first
    }
    return null
  }

  /** Of several addresses that have the most, that of the newcomer. */
  #refuseOne(newcomer: string): void {
    let most = newcomer
    const countOf = (address: string): number => this.#waiting.get(address)?.length ?? 0
    for (const address of this.#waiting.keys()) if (countOf(address) > countOf(most)) most = address
    const waiters = this.#waiting.get(most) ?? []
    const last = waiters.pop()
    if (waiters.length === 0) this.#waiting.delete(most)
    this.#count -= 1
    last?.refuse(new BusyError('too many checks are waiting'))
  }
}
