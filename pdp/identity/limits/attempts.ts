/** Bounds how many expensive checks run and wait at once. */
import type { KnownAddresses } from './known-addresses.ts'

/** Nothing more can wait: the caller should try again later. */
export class BusyError extends Error {
  override readonly name = 'BusyError'
}
/**
 * Runs `work` when its turn has come. Of those who wait, each known address has its turn, and all others together have one,
 * among which each address has its own. Rejects with BusyError when too many wait: the last who came from where most wait.
 */
export type Semaphore = <T>(work: () => Promise<T>, address: string) => Promise<T>

export type Semaphores = { readonly [kind in 'decoys' | 'clients' | 'people']: Semaphore }

/** Each kind of work waits in a line of its own, and they take turns: one that is full keeps no other from its third. */
export function createSemaphores(options: {
  readonly runningMax: number
  readonly waitingMax: number
  readonly known: Pick<KnownAddresses, 'has'>
}): Semaphores {
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
    const line = new Line(options)
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

/** Of one address, or of all strangers by address, in the order of their turns. No list is empty. */
type Group = Map<string, Waiter[]>
const STRANGERS = ''

class Line {
  readonly #waitingMax: number
  readonly #known: Pick<KnownAddresses, 'has'>
  /** In the order of their turns. No group is empty. */
  readonly #groups = new Map<string, Group>()
  #count = 0

  constructor(options: { readonly waitingMax: number; readonly known: Pick<KnownAddresses, 'has'> }) {
    this.#waitingMax = options.waitingMax
    this.#known = options.known
  }

  /** Refuses this one, or the last of those that have more. */
  join(address: string, waiter: Waiter): void {
    const name = this.#known.has(address) ? `address ${address}` : STRANGERS
    const group = this.#groups.get(name) ?? new Map<string, Waiter[]>()
    this.#groups.set(name, group)
    const own = group.get(address) ?? []
    group.set(address, own)
    own.push(waiter)
    this.#count += 1
    if (this.#count > this.#waitingMax) this.#refuseOne(name, address)
  }

  /** Null: nobody waits. */
  next(): Waiter | null {
    for (const [name, group] of this.#groups) {
      for (const [address, waiters] of group) {
        const first = waiters.shift() ?? null
        this.#count -= 1
        // The next turn of either comes after those of all others.
        group.delete(address)
        if (waiters.length > 0) group.set(address, waiters)
        this.#groups.delete(name)
        if (group.size > 0) this.#groups.set(name, group)
        return first
      }
    }
    return null
  }

  /** Of several that have the most, the newcomer's. */
  #refuseOne(newcomerGroup: string, newcomer: string): void {
    const name = largest(this.#groups, newcomerGroup, countOf)
    const group = this.#groups.get(name) ?? new Map<string, Waiter[]>()
    const address = largest(group, newcomer, (waiters) => waiters.length)
    const waiters = group.get(address) ?? []
    const last = waiters.pop()
    if (waiters.length === 0) group.delete(address)
    if (group.size === 0) this.#groups.delete(name)
    this.#count -= 1
    last?.refuse(new BusyError('too many checks are waiting'))
  }
}

const countOf = (group: Group): number => group.values().reduce((count, waiters) => count + waiters.length, 0)

/** Of several that are equal the preferred one, else the last. */
function largest<T>(all: ReadonlyMap<string, T>, preferred: string, sizeOf: (one: T) => number): string {
  const own = all.get(preferred)
  let most = preferred
  let size = own === undefined ? 0 : sizeOf(own)
  for (const [name, one] of all) {
    if (most === preferred && own !== undefined ? sizeOf(one) <= size : sizeOf(one) < size) continue
    most = name
    size = sizeOf(one)
  }
  return most
}
