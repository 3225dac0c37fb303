/** Bounds how many expensive checks run, and how many wait. */
import { FairQueue } from '../../shared/base/fair-queue.ts'
import type { KnownAddresses } from './known-addresses.ts'

/** Too many wait already: the caller should try again later. */
export class BusyError extends Error {
  override readonly name = 'BusyError'
}
/**
 * Runs `work` in its turn. Known addresses take turns; all unknown ones together count as one address, and take turns within it. If too
 * many wait, rejects with BusyError the newest of the address or group with the most.
 */
export type Semaphore = <T>(work: () => Promise<T>, address: string) => Promise<T>

export type Semaphores = { readonly [kind in 'decoys' | 'clients' | 'people']: Semaphore }

/** One queue per kind of work. The queues take turns, so that a full one leaves the others their third. */
export function createSemaphores(options: {
  readonly runningMax: number
  readonly waitingMax: number
  readonly known: Pick<KnownAddresses, 'has'>
}): Semaphores {
  const { runningMax, waitingMax, known } = options
  const queues: FairQueue<Waiter>[] = []
  let running = 0
  let turn = 0

  /** Lets the next waiting work begin, or frees the slot. */
  function leave(): void {
    for (let tries = 0; tries < queues.length; tries += 1) {
      turn = (turn + 1) % queues.length
      const next = queues[turn]?.next()
      if (next === undefined) continue
      next.enter()
      return
    }
    running -= 1
  }

  function createSemaphore(): Semaphore {
    const queue = new FairQueue<Waiter>()
    queues.push(queue)

    /** Adds a waiter. If too many wait, refuses the newest of those who have the most. */
    function join(address: string, waiter: Waiter): void {
      const own = { group: known.has(address) ? `address ${address}` : STRANGERS, name: address }
      queue.add(waiter, own)
      if (queue.size <= waitingMax) return
      const last = queue.longest('newest', own)
      if (last === undefined) return
      queue.remove(last.item, last.line)
      last.item.refuse(new BusyError('too many checks are waiting'))
    }

    return async (work, address) => {
      if (running < runningMax) running += 1
      else await new Promise<void>((enter, refuse) => join(address, { enter, refuse }))
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

/** The group of all addresses that are not known. */
const STRANGERS = ''
