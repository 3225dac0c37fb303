/**
 * Bounds the questions that are open at the PDP, so that each is answered before its deadline even when this process is busy. Other
 * requests wait here, and the clients take turns. A request that waits too long, or the oldest when too many wait, is denied.
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
  /** All clients are in one group, so that they take turns equally. */
  readonly #queue = new FairQueue<Waiter>()

  get waitingCount(): number {
    return this.#queue.size
  }

  /**
   * Begins a question to the PDP. Null: at once; else `turn` waits, and may reject with RequestError. Throws RequestError. Call `end` after
   * it.
   */
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
    // Questions may already be allowed although requests wait: a reload has raised the limit, or a waiting client has left.
    while (this.#open < limits.decisionsMax && this.#next()) this.#open += 1
    return { turn: promise, leave: waiter.deny }
  }

  end(): void {
    if (!this.#next()) this.#open -= 1
  }

  /** Lets the next waiting request ask the PDP. False: no request waits. */
  #next(): boolean {
    const waiter = this.#queue.next()
    waiter?.begin()
    return waiter !== undefined
  }

  /**
   * When too many requests wait, this denies one of the client that has the most: its oldest, which has waited longest. The new request
   * counts.
   */
  #add(waiter: Waiter, line: Line, waitingMax: number): void {
    const isFirst = !this.#queue.hasLine(line)
    this.#queue.add(waiter, line)
    if (this.#queue.size <= waitingMax) return
    this.#queue.longest('oldest', isFirst ? null : line)?.item.deny()
  }
}

const busy = (): RequestError => new RequestError('busy', 'Too many requests wait for their decision')
