/**
 * Serves pipelined requests of an HTTP/1.1 connection one by one (RFC 9112 section 9.3.2). Node itself begins all that came in one piece at
 * once: it does not wait for their answers, nor let other connections in between.
 */
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import type { Duplex } from 'node:stream'

export type QueuedRequest = {
  readonly req: IncomingMessage
  readonly res: ServerResponse
  readonly begin: () => void
  /** True: no request is read after this one. */
  readonly isLast: boolean
}

/** The waiting requests of one connection. */
export class RequestQueue {
  readonly #connection: Duplex
  readonly #rests: Rests
  readonly #waiting: QueuedRequest[] = []
  #current: QueuedRequest | null = null
  #closed = false
  #end: (() => void) | null = null

  constructor(connection: Duplex, rests: Rests) {
    this.#connection = connection
    this.#rests = rests
    // Node calls it after an answer with `Connection: close`.
    if (connection instanceof Socket) connection.destroySoon = () => this.#endConnection(connection)
  }

  /** The open request; null: none is open. */
  get current(): QueuedRequest | null {
    return this.#current
  }

  /** True when no more requests are accepted. */
  get closed(): boolean {
    return this.#closed
  }

  /** Begins the request after all earlier ones are answered. False: `waitingMax` requests wait already; returned once. */
  take(request: QueuedRequest, waitingMax: number): boolean {
    if (this.#closed) return true
    const isOneTooMany = this.#current !== null && this.#waiting.length >= waitingMax
    this.#closed = request.isLast || isOneTooMany
    if (isOneTooMany) return false
    if (this.#current === null) this.#begin(request)
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
      if (!request.req.complete && !this.#connection.destroyed) this.#rests.drop(request.req, this.#connection)
      // Without setImmediate, immediate answers would follow each other within one pass of the event loop.
      if (this.#waiting.length > 0) setImmediate(() => this.#next())
      else this.#next()
    })
    request.begin()
  }

  /** Ends a connection after its body is read: a connection closed with unread bytes is reset, and the client could lose its answer. */
  #endConnection(connection: Socket): void {
    const endNow = (): void => Socket.prototype.destroySoon.call(connection)
    if (this.#current === null || this.#current.req.complete) endNow()
    else {
      this.#closed = true
      this.#current.req.once('end', endNow)
      connection.end()
    }
  }

  #next(): void {
    this.#current = null
    const { destroyed, writable } = this.#connection
    // A response may have closed the connection: then no request follows.
    if (destroyed || !writable) return
    const request = this.#waiting.shift()
    // An incomplete message is not forwarded.
    if (request !== undefined && (this.#end === null || request.req.complete)) this.#begin(request)
    else this.#end?.()
  }
}

/** Reads and drops, for a limited time, bodies whose requests are already answered. */
export class Rests {
  readonly #connections = new Set<Duplex>()
  #ms: () => number

  constructor(ms: () => number) {
    this.#ms = ms
  }

  /** Drops the rest of a body. Its time is limited, because the request no longer counts for any bound. */
  drop(req: IncomingMessage, connection: Duplex): void {
    const late = setTimeout(() => connection.destroy(), this.#ms())
    this.#connections.add(connection)
    const stop = (): void => {
      clearTimeout(late)
      this.#connections.delete(connection)
    }
    connection.once('close', stop)
    req.once('end', () => {
      stop()
      connection.off('close', stop)
    })
    req.resume()
  }

  /** Shortens the time for these and all later clients. */
  hurry(ms: number): void {
    this.#ms = () => ms
    const connections = [...this.#connections]
    setTimeout(() => {
      for (const connection of connections) if (this.#connections.has(connection)) connection.destroy()
    }, ms).unref()
  }
}

/** How many requests may wait on a connection of `serveInTurns`. Real clients pipeline only a few. */
const WAITING_MAX = 100
/** Time for a client to send the rest of a body that was answered already. */
const REST_MS = 30_000

/** Serves each connection of a server in this way; call it when the server has its listeners. Returns the queue of a connection. */
export function serveInTurns(server: Server): (connection: Duplex) => RequestQueue {
  const rests = new Rests(() => REST_MS)
  const queues = new WeakMap<Duplex, RequestQueue>()
  const queueOf = (connection: Duplex): RequestQueue => {
    const queue = queues.get(connection) ?? new RequestQueue(connection, rests)
    queues.set(connection, queue)
    return queue
  }
  const listeners = server.listeners('request')
  server.removeAllListeners('request')
  server.on('request', (req, res) => {
    const begin = (): void => {
      for (const listener of listeners) Reflect.apply(listener, server, [req, res])
    }
    if (!queueOf(req.socket).take({ req, res, begin, isLast: false }, WAITING_MAX)) req.socket.destroy()
  })
  return queueOf
}
