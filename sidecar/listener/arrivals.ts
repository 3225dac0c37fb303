/**
 * Begins only some requests of one client in each turn, which is one pass of the event loop over everything that is ready. Without this
 * bound, a client with hundreds of connections would keep all others waiting until each of its requests is decided.
 */
import { clientOf } from '../../pdp/shared/base/addresses.ts'
import { FairQueue } from '../../pdp/shared/base/fair-queue.ts'
import type { ClientAnswer, ClientRequest } from '../http/client-request.ts'

/** How many requests of one client begin at once: enough to keep the sidecar busy, and to not slow a client that has fewer connections. */
const AT_ONCE_MAX = 32
/** How many waiting requests begin in each later turn. With 8, other clients waited 0.8 as long, but 0.7 as many requests were served. */
const LATER_MAX = 16

/** `onRequest`, called in turns as described above. */
export function inTurns(
  onRequest: (client: ClientRequest, res: ClientAnswer, expectsContinue: boolean) => void,
): (client: ClientRequest, res: ClientAnswer, expectsContinue: boolean) => void {
  const arrivals = new Arrivals()
  return (client, res, expectsContinue) =>
    arrivals.add(client.peerAddress(), res, () => onRequest(client, res, expectsContinue))
}

export class Arrivals {
  /** How many requests of each client have begun in this turn. */
  readonly #begun = new Map<string, number>()
  /** Waiting requests, grouped by client. The number of connections and streams bounds them. */
  readonly #waiting = new FairQueue<() => void>()
  #scheduled = false

  /** Calls `begin` in this or a later turn, unless the client leaves before. `address`: the connection's address. */
  add(address: string, closing: { readonly destroyed: boolean }, begin: () => void): void {
    const client = clientOf(address)
    const count = (this.#begun.get(client) ?? 0) + 1
    this.#begun.set(client, count)
    this.#schedule()
    if (count <= AT_ONCE_MAX && !this.#waiting.has(client)) {
      begin()
      return
    }
    const later = (): void => {
      if (!closing.destroyed) begin()
    }
    this.#waiting.add(later, { group: client, name: '' })
  }

  #schedule(): void {
    if (this.#scheduled) return
    this.#scheduled = true
    setImmediate(() => this.#turn())
  }

  /** Begins some of the waiting requests; clients alternate. */
  #turn(): void {
    this.#scheduled = false
    this.#begun.clear()
    for (let left = LATER_MAX; left > 0; left -= 1) this.#waiting.next()?.()
    if (this.#waiting.size > 0) this.#schedule()
  }
}
