/** Takes the requests of an HTTP/1.1 connection one by one, although its parser may have read several (RFC 9112 section 9.3.2). */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'

export type QueuedRequest = {
  readonly req: IncomingMessage
  readonly res: ServerResponse
  readonly begin: () => void
  /** What follows on the connection is not read as a request. */
  readonly isLast: boolean
}

/** Of one connection. */
export class RequestQueue {
  readonly #connection: Duplex
  readonly #waiting: QueuedRequest[] = []
  #current: QueuedRequest | null = null
  #closed = false
  #end: (() => void) | null = null

  constructor(connection: Duplex) {
    this.#connection = connection
  }

  /** Null: nothing is under way. */
  get current(): QueuedRequest | null {
    return this.#current
  }

  /** No request is taken any more. */
  get closed(): boolean {
    return this.#closed
  }

  /** Begins it now or when those before it are answered. False: `waitingMax` wait already. */
  take(request: QueuedRequest, waitingMax: number): boolean {
    if (this.#closed) return true
    this.#closed = request.isLast
    if (this.#current === null) this.#begin(request)
    else if (this.#waiting.length >= waitingMax) return false
    else this.#waiting.push(request)
    return true
  }

  /** What comes cannot be read. `end` is called when all that was read is answered. */
  endWith(end: () => void): void {
    if (this.#closed) return
    this.#closed = true
    this.#end = end
    if (this.#current === null) end()
  }

  #begin(request: QueuedRequest): void {
    this.#current = request
    request.res.once('close', () => this.#next())
    request.begin()
  }

  #next(): void {
    this.#current = null
    const { destroyed, writable } = this.#connection
    // An answer may have ended the connection.
    if (destroyed || !writable) return
    const request = this.#waiting.shift()
    // Of a message that broke off, nothing is forwarded.
    if (request !== undefined && (this.#end === null || request.req.complete)) this.#begin(request)
    else this.#end?.()
  }
}
