/**
 * Bounds the questions that are open at the PDP, so that each is answered before its deadline however busy this process is. Other
 * requests wait here, clients in turn. A request that waits too long, or the oldest when too many wait, is denied.
 */
import { FairQueue, type Line } from '../../pdp/shared/base/fair-queue.ts'
import { RequestError } from '../request/errors.ts'
import type { WaitLimits } from './places.ts'

/** `deny`: called also when the client has left. */
type Waiter = { readonly begin: () => void; readonly deny: () => void }
export type Waiting = { readonly turn: Promise<void>; readonly leave: () => void }

/** Shared by all exchanges of a process. */
export class Turns {
  #open = 0
  /** All clients are in one group, so they are equal. */
  readonly #queue = new FairQueue<Waiter>()

  get waitingCount(): number {
    return this.#queue.size
  }

  /** Null: at once. `turn` rejects with RequestError when the wait is too long. Call `end` after each turn. Throws RequestError. */
  begin(client: string, limits: WaitLimits & { readonly decisionsMax: number }): Waiting | null {
    if (this.#open < limits.decisionsMax && this.#queue.size === 0) {
      this.#open += 1
      return null
    }
    if (limits.waitingMax === 0) throw busy()
    const line = { group: '', name: client }
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    const timer = setTimeout(() => waiter.deny(), limits.waitingMs)
    const waiter: Waiter = {
      begin: () => {
        clearTimeout(timer)
        resolve()
      },
      deny: () => {
        clearTimeout(timer)
        this.#queue.remove(waiter, line)
        reject(busy())
      },
    }
    this.#add(waiter, line, limits.waitingMax)
    // A turn may be free though others wait: a reload may have raised the limit, or a waiter may have left.
    while (this.#open < limits.decisionsMax && this.#next()) this.#open += 1
    return { turn: promise, leave: waiter.deny }
  }

  end(): void {
    if (!this.#next()) this.#open -= 1
  }

  /** Lets the next waiting request begin. False: none waits. */
  #next(): boolean {
    const waiter = this.#queue.next()
    waiter?.begin()
    return waiter !== undefined
  }

  /**
   * When too many wait, the oldest request of the client with the most of them is denied, counting the newcomer: it has waited longest,
   * and would be answered last.
   */
  #add(waiter: Waiter, line: Line, waitingMax: number): void {
    const isFirst = !this.#queue.hasLine(line)
    this.#queue.add(waiter, line)
    if (this.#queue.size <= waitingMax) return
    this.#queue.longest('oldest', isFirst ? null : line)?.item.deny()
  }
}

const busy = (): RequestError => new RequestError('busy', 'Too many requests wait for their decision')
