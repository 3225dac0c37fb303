/** Serves the pipelined requests of an HTTP/1.1 connection one at a time (RFC 9112 section 9.3.2). */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import type { Duplex } from 'node:stream'

export type QueuedRequest = {
  readonly req: IncomingMessage
  readonly res: ServerResponse
  readonly begin: () => void
  /** No request is read after this one. */
  readonly isLast: boolean
}

/** The queue of one connection. */
export class RequestQueue {
  readonly #connection: Duplex
  readonly #restMs: () => number
  readonly #waiting: QueuedRequest[] = []
  #current: QueuedRequest | null = null
  #closed = false
  #end: (() => void) | null = null

  /** `restMs`: for what is left of a body after the answer. */
  constructor(connection: Duplex, restMs: () => number) {
    this.#connection = connection
    this.#restMs = restMs
    // Node calls it after an answer with `Connection: close`.
    if (connection instanceof Socket) connection.destroySoon = () => this.#endConnection(connection)
  }

  /** Null: no request is open. */
  get current(): QueuedRequest | null {
    return this.#current
  }

  /** True when no more requests are accepted. */
  get closed(): boolean {
    return this.#closed
  }

  /** Begins the request when all earlier ones are answered. False: `waitingMax` requests wait already. */
  take(request: QueuedRequest, waitingMax: number): boolean {
    if (this.#closed) return true
    this.#closed = request.isLast
    if (this.#current === null) this.#begin(request)
    else if (this.#waiting.length >= waitingMax) return false
    else this.#waiting.push(request)
    return true
  }

  /** The next bytes are malformed. `end` is called when all earlier requests are answered. */
  endWith(end: () => void): void {
    if (this.#closed) return
    this.#closed = true
    this.#end = end
    if (this.#current === null) end()
  }

  #begin(request: QueuedRequest): void {
    this.#current = request
    request.res.on('close', () => {
      if (!request.req.complete && !this.#connection.destroyed) this.#dropRest(request.req)
      this.#next()
    })
    request.begin()
  }

  /** A system that closes a connection with unread bytes resets it, so a client that is still sending could lose the answer. */
  #endConnection(connection: Socket): void {
    const endNow = (): void => Socket.prototype.destroySoon.call(connection)
    if (this.#current === null || this.#current.req.complete) endNow()
    else {
      this.#closed = true
      this.#current.req.once('end', endNow)
      connection.end()
    }
  }

  /** No place of a request is held any more, so a client could send on for ever. */
  #dropRest(req: IncomingMessage): void {
    const late = setTimeout(() => this.#connection.destroy(), this.#restMs())
    const stop = (): void => clearTimeout(late)
    this.#connection.once('close', stop)
    req.once('end', () => {
      stop()
      this.#connection.off('close', stop)
    })
    req.resume()
  }

  #next(): void {
    this.#current = null
    const { destroyed, writable } = this.#connection
    // A response may have closed the connection.
    if (destroyed || !writable) return
    const request = this.#waiting.shift()
    // An incomplete message is not forwarded.
    if (request !== undefined && (this.#end === null || request.req.complete)) this.#begin(request)
    else this.#end?.()
  }
}
