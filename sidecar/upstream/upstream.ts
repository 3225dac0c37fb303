/** How a permitted request reaches the service behind, in whichever version of HTTP that speaks. */
import type { Readable } from 'node:stream'
import type { Dispatcher } from 'undici'
import type { ClientConnection } from '../http/client.ts'

export type UpstreamRequest = {
  readonly method: string
  readonly path: string
  /** Names and values in turn, Host among them; of the framing only Content-Length, when it is known. */
  readonly headers: string[]
  readonly body: Readable | Buffer | null
  /** Names of the trailers that may follow. */
  readonly announced: readonly string[]
  /** Asked once the body has ended. */
  readonly trailers: () => readonly [string, string][]
  /** The header section of the answer may take as long as the client waits. */
  readonly patient: boolean
  readonly sender: Sender
}
/** Whose request it is, as far as connections to the upstream may be of one client alone. */
export type Sender = {
  /** Whoever else uses it is known by it. */
  readonly connection: ClientConnection
  /** Of address and subject, since a proxy brings several over one connection. */
  readonly name: string
}

export type Upstream = {
  /** Calls of gRPC are possible in HTTP/2 alone. */
  readonly version: '1.1' | '2'
  /** Calls the handler as undici does. Throws only when nothing was sent. */
  send(request: UpstreamRequest, handler: Dispatcher.DispatchHandler): void
  /** As `send`, for a connection that becomes a WebSocket. Null: this version of HTTP makes none. */
  readonly upgrade: ((request: UpstreamRequest, handler: Dispatcher.DispatchHandler) => void) | null
  close(): void
}
export type UpstreamOptions = {
  readonly origin: string
  /** For https. */
  readonly tls: object
  readonly connectionsMax: number
  readonly connectMs: number
  readonly headersTimeoutMs: number
  readonly headerBytesMax: number
  /** WebSocket connections that are being opened. */
  readonly handshakesMax: number
  readonly perClient: boolean
  readonly reuseAfterBody: boolean
}

/** What undici's handlers are told of an exchange that another library carries. */
export class Controller implements Dispatcher.DispatchController {
  rawHeaders: string[] = []
  rawTrailers: string[] = []
  /** Where the answer comes from, once it does. */
  source: Readable | null = null
  readonly #abort: (reason: Error) => void
  #paused = false
  #reason: Error | null = null

  constructor(abort: (reason: Error) => void) {
    this.#abort = abort
  }

  get aborted(): boolean {
    return this.#reason !== null
  }

  get paused(): boolean {
    return this.#paused
  }

  get reason(): Error | null {
    return this.#reason
  }

  abort(reason: Error): void {
    this.#reason ??= reason
    this.#abort(reason)
  }

  pause(): void {
    this.#paused = true
    this.source?.pause()
  }

  resume(): void {
    this.#paused = false
    this.source?.resume()
  }
}

/** The upstream said that it did nothing with the request, so that any may be sent again (RFC 9113 section 8.7). */
export class RefusedError extends Error {
  override readonly name = 'RefusedError'
}

/** The code tells it apart from a connection that failed, as undici's does. */
export const headersTimeout = (): Error =>
  Object.assign(new Error('no answer in time'), { code: 'UND_ERR_HEADERS_TIMEOUT' })
