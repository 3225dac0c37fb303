/** Takes the requests of an HTTP/1.1 connection one by one, although its parser may have read several (RFC 9112 section 9.3.2). */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'

export type Turn = {
  readonly req: IncomingMessage
  readonly res: ServerResponse
  readonly begin: () => void
  /** What follows on the connection is not read as a request. */
  readonly isLast: boolean
}

/** Of one connection. */
export class Turns {
  readonly #connection: Duplex
  readonly #waiting: Turn[] = []
  #current: Turn | null = null
  #closed = false
  #end: (() => void) | null = null

  constructor(connection: Duplex) {
    this.#connection = connection
  }

  /** Null: nothing is under way. */
  get current(): Turn | null {
    return this.#current
  }

  /** No request is taken any more. */
  get closed(): boolean {
    return this.#closed
  }

  /** Begins it now or when those before it are answered. False: `waitingMax` wait already. */
  take(turn: Turn, waitingMax: number): boolean {
    if (this.#closed) return true
    this.#closed = turn.isLast
    if (this.#current === null) this.#begin(turn)
    else if (this.#waiting.length >= waitingMax) return false
    else this.#waiting.push(turn)
    return true
  }

  /** What comes cannot be read. `end` is called when all that was read is answered. */
  endWith(end: () => void): void {
    if (this.#closed) return
    this.#closed = true
    this.#end = end
    if (this.#current === null) end()
  }

  #begin(turn: Turn): void {
    this.#current = turn
    turn.res.once('close', () => this.#next())
    turn.begin()
  }

  #next(): void {
    this.#current = null
    const { destroyed, writable } = this.#connection
    // An answer may have ended the connection.
    if (destroyed || !writable) return
    const turn = this.#waiting.shift()
    // Of a message that broke off, nothing is forwarded.
    if (turn !== undefined && (this.#end === null || turn.req.complete)) this.#begin(turn)
    else this.#end?.()
  }
}
