/**
 * Bounds the questions that are open at the PDP, so that each is answered before its deadline however much this process has
 * to do. The others wait before it, clients in turn. Who waits too long, or longest when too many wait, is denied.
 */
import { RequestError } from '../request/errors.ts'
import type { WaitLimits } from './places.ts'

export type TurnLimits = WaitLimits & { readonly decisionsMax: number }
/** `deny`: also when the client has left. */
type Waiter = { readonly client: string; readonly begin: () => void; readonly deny: () => void }
export type Waiting = { readonly turn: Promise<void>; readonly leave: () => void }

/** Shared by all exchanges of a process. */
export class Turns {
  #open = 0
  #waitingCount = 0
  /** The clients whose turn comes next are first. No queue is empty; its oldest waiter is first. */
  readonly #queues = new Map<string, Set<Waiter>>()

  get waitingCount(): number {
    return this.#waitingCount
  }

  /** Null: at once. `turn` rejects with RequestError when it does not come in time. Call `end` after it. Throws RequestError. */
  begin(client: string, limits: TurnLimits): Waiting | null {
    if (this.#open < limits.decisionsMax && this.#waitingCount === 0) {
      this.#open += 1
      return null
    }
    if (limits.waitingMax === 0) throw busy()
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    const timer = setTimeout(() => waiter.deny(), limits.waitingMs)
    const waiter: Waiter = {
      client,
      begin: () => {
        clearTimeout(timer)
        resolve()
      },
      deny: () => {
        clearTimeout(timer)
        this.#remove(waiter)
        reject(busy())
      },
    }
    if (this.#waitingCount >= limits.waitingMax) this.#oldestOfMost(client).deny()
    this.#add(waiter)
    // A raised limit, or one who left.
    while (this.#open < limits.decisionsMax && this.#next()) this.#open += 1
    return { turn: promise, leave: waiter.deny }
  }

  end(): void {
    if (!this.#next()) this.#open -= 1
  }

  /** Lets the oldest waiter of the next client begin. False: nobody waits. */
  #next(): boolean {
    for (const [client, queue] of this.#queues) {
      const [waiter] = queue
      if (waiter === undefined) continue
      this.#remove(waiter)
      if (queue.size > 0) {
        this.#queues.delete(client)
        this.#queues.set(client, queue)
      }
      waiter.begin()
      return true
    }
    return false
  }

  #add(waiter: Waiter): void {
    const queue = this.#queues.get(waiter.client) ?? new Set()
    this.#queues.set(waiter.client, queue.add(waiter))
    this.#waitingCount += 1
  }

  #remove(waiter: Waiter): void {
    const queue = this.#queues.get(waiter.client)
    if (queue === undefined || !queue.delete(waiter)) return
    this.#waitingCount -= 1
    if (queue.size === 0) this.#queues.delete(waiter.client)
  }

  /** Of the client with the most waiters, counting the newcomer: it has waited the longest, and would be answered the latest. */
  #oldestOfMost(newcomer: string): Waiter {
    let most = this.#queues.get(newcomer)
    let count = most === undefined ? 0 : most.size + 1
    for (const queue of this.#queues.values()) {
      if (queue.size <= count) continue
      most = queue
      count = queue.size
    }
    const [oldest] = most ?? []
    if (oldest === undefined) throw busy()
    return oldest
  }
}

const busy = (): RequestError => new RequestError('busy', 'Too many requests wait for their decision')
