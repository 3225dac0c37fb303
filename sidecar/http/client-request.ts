/** A client's request and its response, independent of the HTTP version. */
import type { IncomingMessage } from 'node:http'
import { type Duplex, Readable } from 'node:stream'
import { plainAddress } from '../../pdp/shared/process/listen.ts'

export type ClientRequest = {
  readonly version: '1.0' | '1.1' | '2'
  readonly method: string
  /** The request target as the client sent it. */
  readonly target: string
  /** Header fields, names and values alternating, as they arrived. HTTP/2 pseudo-header fields are not among them. */
  readonly raw: readonly string[]
  /** The reason why the message is malformed although the parser accepted it (RFC 9113 section 8.1.1); null: it is well-formed. */
  readonly fault: string | null
  /** True when no body follows the header section. Always false in HTTP/1.1, where framing fields say so. */
  readonly bodiless: boolean
  readonly body: Readable
  readonly complete: () => boolean
  /** The trailers, names and values alternating; complete only after the end of the body. */
  readonly trailers: () => readonly string[]
  readonly peerAddress: () => string
  readonly localPort: () => number
  readonly connection: () => ClientConnection
  readonly scheme: 'http' | 'https'
  /** True when the client can get no answer any more. */
  readonly gone: () => boolean
}

/** The part of `ServerResponse` from `node:http` that is used. */
export type ClientAnswer = {
  readonly headersSent: boolean
  readonly destroyed: boolean
  readonly writableFinished: boolean
  /** Bytes that wait to be sent to the client. */
  readonly writableLength: number
  writeContinue(): void
  /** Sends an informational response before the final head. `fields`: names and values alternating. Throws for invalid fields. */
  writeInformation(status: number, fields: string[]): void
  writeHead(status: number, fields: string[]): unknown
  flushHeaders(): void
  /** Sends a chunk; false: the client reads too slowly, so wait for `drain`. */
  write(chunk: Buffer): boolean
  addTrailers(trailers: [string, string][]): void
  end(body?: string): unknown
  /** Ends the answer with `body`, in which each character is one byte. */
  end(body: string, encoding: 'latin1'): unknown
  destroy(): unknown
  /** `on` rather than `once`: it is cheaper, and a stream closes only once. */
  on(event: 'close', listener: () => void): unknown
  once(event: 'close' | 'drain', listener: () => void): unknown
  off(event: 'close' | 'drain', listener: () => void): unknown
}

/** The connection of a WebSocket handshake. */
export type Upgrade = {
  readonly socket: Duplex
  /** Bytes that the client sent after its handshake. */
  readonly head: Buffer
  /** Detaches the HTTP response from the connection. */
  readonly release: () => void
}

/** A request for evaluation only, which came from no client. */
export const syntheticRequest = (head: Pick<ClientRequest, 'method' | 'target' | 'raw'>): ClientRequest => ({
  ...head,
  version: '1.1',
  fault: null,
  bodiless: false,
  body: Readable.from([]),
  complete: () => true,
  trailers: () => [],
  peerAddress: () => '',
  localPort: () => 0,
  connection: () => Readable.from([]),
  scheme: 'http',
  gone: () => false,
})

const VERSIONS = new Set(['1.0', '1.1'])

export const http1Request = (req: IncomingMessage): ClientRequest => ({
  version: req.httpVersion === '1.0' ? '1.0' : '1.1',
  method: req.method ?? '',
  target: req.url ?? '',
  raw: req.rawHeaders,
  // Node's parser accepts other versions too, and treats them as 1.1, so they are refused here.
  fault: VERSIONS.has(req.httpVersion) ? null : 'The HTTP version must be 1.1 or 1.0',
  bodiless: false,
  body: req,
  complete: () => req.complete,
  trailers: () => req.rawTrailers,
  peerAddress: () => plainAddress(req.socket.remoteAddress),
  localPort: () => req.socket.localPort ?? 0,
  connection: () => req.socket,
  scheme: 'encrypted' in req.socket ? 'https' : 'http',
  gone: () => req.socket.destroyed || req.socket.writableEnded,
})

/** The connection on which a client sends its requests. */
export type ClientConnection = { once(event: 'close', listener: () => void): unknown; readonly destroyed: boolean }
