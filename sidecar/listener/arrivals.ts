/**
 * Begins at most so many requests of a client in one turn of the event loop, in which all that is ready is read. Whoever has
 * hundreds of connections would else keep every other client waiting until each of their requests is judged.
 */
import { clientOf } from '../../pdp/shared/base/addresses.ts'
import { FairQueue } from '../../pdp/shared/base/fair-queue.ts'
import type { ClientAnswer, ClientRequest } from '../http/client-request.ts'

/** Requests that begin at once. So many keep the sidecar busy, and a client with no more connections is not slowed. */
const AT_ONCE_MAX = 32
/** Waiting requests that begin in a later turn. With 8 in place of 16, other clients waited 0.8 as long, and 0.7 as many were served. */
const LATER_MAX = 16

type OnRequest = (client: ClientRequest, res: ClientAnswer, expectsContinue: boolean) => void

/** The same, called in turns. */
export function inTurns(onRequest: OnRequest): OnRequest {
  const arrivals = new Arrivals()
  return (client, res, expectsContinue) =>
    arrivals.add(client.peerAddress(), res, () => onRequest(client, res, expectsContinue))
}

export class Arrivals {
  /** Requests of this turn, by client. */
  readonly #begun = new Map<string, number>()
  /** As many as there are connections and streams at most. Each client is a group. */
  readonly #waiting = new FairQueue<() => void>()
  #scheduled = false

  /** Calls `begin` now or in a later turn; never, if the client leaves before. `address`: that of the connection. */
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

  /** Clients in turn. */
  #turn(): void {
    this.#scheduled = false
    this.#begun.clear()
    for (let left = LATER_MAX; left > 0; left -= 1) this.#waiting.next()?.()
    if (this.#waiting.size > 0) this.#schedule()
  }
}
