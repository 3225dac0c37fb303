/** The interface to the upstream, independent of its HTTP version. */
import { isIP } from 'node:net'
import type { Readable } from 'node:stream'
import type { Dispatcher } from 'undici'
import { urlHost } from '../../pdp/shared/process/listen.ts'
import type { ClientConnection } from '../http/client-request.ts'

export type UpstreamRequest = {
  readonly method: string
  readonly path: string
  /** Names and values alternating, including Host. The only framing field is Content-Length, when it is known. */
  readonly headers: string[]
  readonly body: Readable | Buffer | null
  /** Names of the trailers that may follow the body. */
  readonly announced: readonly string[]
  /** The trailers. Called when the body has ended. */
  readonly trailers: () => readonly [string, string][]
  /** True: no timeout for the header section of the response, unless the route has one. */
  readonly patient: boolean
  /** The longest wait for the answer's head on this route, in milliseconds; null: the upstream's own limit. */
  readonly headersTimeoutMs: number | null
  readonly sender: Sender
}
/** Identifies the client, for upstream connections that are not shared between clients. */
export type Sender = {
  readonly connection: ClientConnection
  /** The client's address and subject: a proxy may send requests of several clients on one connection. */
  readonly name: string
}

export type Upstream = {
  /** The HTTP version to the upstream. gRPC needs 2. */
  readonly version: '1.1' | '2'
  /** Longest silence before the header section of a response, in milliseconds. */
  readonly headersTimeoutMs: number
  /** Sends the request and calls the handler as undici does. Throws only if nothing was sent. */
  send(request: UpstreamRequest, handler: Dispatcher.DispatchHandler): void
  /** Like `send`, for a WebSocket handshake. Null: this HTTP version does not support it. */
  readonly upgrade: ((request: UpstreamRequest, handler: Dispatcher.DispatchHandler) => void) | null
  close(): void
}
export type UpstreamOptions = {
  readonly origin: string
  /** The unix socket to connect to, instead of the host and port of `origin`; null: there is no socket. */
  readonly socketPath: string | null
  /** The name that the certificate must be for; null: the host of `origin`. */
  readonly serverName: string | null
  /** TLS options for https. */
  readonly tls: object
  readonly connectionsMax: number
  readonly connectMs: number
  readonly headersTimeoutMs: number
  readonly headerBytesMax: number
  /** How many WebSocket handshakes may be open. */
  readonly handshakesMax: number
  readonly perClient: boolean
  readonly reuseAfterBody: boolean
}

/** The name for SNI and the certificate. By default libraries would use the Host field, which the client controls. */
export function serverNameOf({ origin, serverName }: Pick<UpstreamOptions, 'origin' | 'serverName'>): string {
  const host = urlHost(new URL(origin))
  return serverName ?? (isIP(host) === 0 ? host : '')
}

/** The controller that undici's handlers get for a request that another library sends. */
export class Controller implements Dispatcher.DispatchController {
  rawHeaders: string[] = []
  rawTrailers: string[] = []
  /** The stream of the response; null until it exists. */
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

/** The upstream has not processed the request, so any request may be repeated (RFC 9113 section 8.7). */
export class RefusedError extends Error {
  override readonly name = 'RefusedError'
}

/** The error for a late head, with the code of undici's timeout, which distinguishes it from a failed connection. */
export const headersTimeout = (): Error =>
  Object.assign(new Error('the upstream did not answer in time'), { code: 'UND_ERR_HEADERS_TIMEOUT' })
