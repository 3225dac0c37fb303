/** A client's request and the answer to it as the pipeline sees them, in whichever version of HTTP they travel. */
import type { IncomingMessage } from 'node:http'
import { type Duplex, Readable } from 'node:stream'
import { plainAddress } from '../../pdp/process/listen.ts'

export type ClientRequest = {
  readonly version: '1.0' | '1.1' | '2'
  readonly method: string
  /** As it was sent. */
  readonly target: string
  /** Names and values in turn, as they arrived. HTTP/2 pseudo-header fields are not among them. */
  readonly raw: readonly string[]
  /** What makes the message malformed although the parser let it pass (RFC 9113 section 8.1.1); null: nothing. */
  readonly fault: string | null
  /** Nothing follows the header section. HTTP/1.1 says so by its framing fields instead. */
  readonly bodiless: boolean
  readonly body: Readable
  readonly complete: () => boolean
  /** Names and values in turn, once the body has ended. */
  readonly trailers: () => readonly string[]
  readonly peerAddress: () => string
  /** Of the connection, at our end. */
  readonly localPort: () => number
  readonly connection: () => ClientConnection
  readonly scheme: 'http' | 'https'
  /** True when no answer can be sent any more. */
  readonly gone: () => boolean
}

/** What `node:http` calls a ServerResponse, as far as it is used here. */
export type ClientAnswer = {
  readonly headersSent: boolean
  readonly destroyed: boolean
  readonly writableFinished: boolean
  /** Bytes that the client has not taken. */
  readonly writableLength: number
  writeContinue(): void
  /** `fields`: names and values in turn. */
  writeHead(status: number, fields: string[]): unknown
  flushHeaders(): void
  /** False when the client is slower; `drain` says when it wants more. */
  write(chunk: Buffer): boolean
  addTrailers(trailers: [string, string][]): void
  end(body?: string): unknown
  /** Each character is a byte. */
  end(body: string, encoding: 'latin1'): unknown
  destroy(): unknown
  once(event: 'close' | 'drain', listener: () => void): unknown
  off(event: 'close' | 'drain', listener: () => void): unknown
}

/** What arrived with a WebSocket handshake. */
export type Upgrade = {
  readonly socket: Duplex
  /** What the client sent behind its handshake. */
  readonly head: Buffer
  /** The answer lets go of the connection, which is no longer HTTP. */
  readonly release: () => void
}

/** A request that no client has sent, to be judged only. */
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
  // The parser takes others, too, and reads them as 1.1.
  fault: VERSIONS.has(req.httpVersion) ? null : 'The version is neither HTTP/1.1 nor HTTP/1.0',
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

/** Over which a client sends its requests. */
export type ClientConnection = { once(event: 'close', listener: () => void): unknown; readonly destroyed: boolean }
