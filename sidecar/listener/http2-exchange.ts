/** Presents one HTTP/2 stream as a client request and its response (RFC 9113 section 8). */
import { METHODS } from 'node:http'
import { constants, type OutgoingHttpHeaders, type ServerHttp2Stream } from 'node:http2'
import type { ClientAnswer, ClientConnection, ClientRequest } from '../http/client-request.ts'
import { firstValue, pairsOf } from '../http/fields.ts'
import { http2Fields, http2Lists } from '../http/http2-fields.ts'

/** The connection to which a stream belongs. */
export type Http2Peer = {
  readonly connection: ClientConnection
  readonly scheme: 'http' | 'https'
  readonly address: string
  readonly localPort: number
}

export function http2Request(options: {
  readonly stream: ServerHttp2Stream
  /** Names and values alternating, pseudo-header fields first. */
  readonly raw: readonly string[]
  /** True when the request has no body and no trailers. */
  readonly ends: boolean
  /** The number of fields that the client sent; null: unknown. */
  readonly fieldCount: () => number | null
  readonly peer: Http2Peer
}): ClientRequest {
  const { stream, raw, ends, fieldCount, peer } = options
  const { scheme } = peer
  const { pseudo, fields } = splitFields(raw)
  const sentCount = fieldCount()
  let trailers: readonly string[] = []
  stream.on('trailers', (_headers, _flags, rawTrailers: string[]) => {
    // Ill-formed trailers are rejected like ill-formed headers, but the response may have begun, so the stream is reset.
    if (fieldCount() === rawTrailers.length / 2) trailers = rawTrailers
    else stream.close(constants.NGHTTP2_PROTOCOL_ERROR)
  })
  return {
    version: '2',
    method: pseudo.get(':method') ?? '',
    target: pseudo.get(':path') ?? '',
    raw: fields,
    fault: sentCount === raw.length / 2 ? faultOf(pseudo, { fields, scheme }) : 'A header field is malformed',
    bodiless: ends,
    body: stream,
    // A stream that was reset also ends, but its message is not complete.
    complete: () => stream.readableEnded && !stream.aborted && stream.rstCode === constants.NGHTTP2_NO_ERROR,
    trailers: () => trailers,
    peerAddress: () => peer.address,
    localPort: () => peer.localPort,
    connection: () => peer.connection,
    scheme,
    gone: () => stream.destroyed || stream.closed,
  }
}

/** Sets a missing Host field from the authority, and joins split Cookie fields (sections 8.3.1 and 8.2.3). */
function splitFields(raw: readonly string[]): { pseudo: Map<string, string>; fields: string[] } {
  const pseudo = new Map<string, string>()
  const fields: string[] = []
  let cookieAt = -1
  for (let at = 0; at + 1 < raw.length; at += 2) {
    const [name = '', value = ''] = [raw[at], raw[at + 1]]
    if (name.startsWith(':')) pseudo.set(name, value)
    else if (name === 'cookie' && cookieAt >= 0) fields[cookieAt] += `; ${value}`
    else {
      if (name === 'cookie') cookieAt = fields.length + 1
      fields.push(name, value)
    }
  }
  const authority = pseudo.get(':authority')
  if (authority !== undefined && firstValue(fields, 'host') === null) fields.unshift('host', authority)
  return { pseudo, fields }
}

const KNOWN_METHODS = new Set(METHODS)
/** Fields that section 8.2.2 forbids. The library also rejects them, but we do not depend on it. */
const CONNECTION_FIELDS = new Set(['connection', 'proxy-connection', 'keep-alive', 'transfer-encoding', 'upgrade'])

function faultOf(
  pseudo: ReadonlyMap<string, string>,
  { fields, scheme }: { readonly fields: readonly string[]; readonly scheme: string },
): string | null {
  const method = pseudo.get(':method') ?? ''
  // The HTTP/1.1 parser has the same rule: some servers read `post` as POST.
  if (!KNOWN_METHODS.has(method)) return 'The method is unknown'
  // The pipeline denies CONNECT, which has neither scheme nor path.
  if (method === 'CONNECT') return null
  if (pseudo.get(':scheme') !== scheme) return 'The scheme differs from that of the connection'
  if (!pseudo.get(':path')?.startsWith('/')) return 'The path must start with a slash'
  const authority = pseudo.get(':authority')?.toLowerCase()
  if (authority !== undefined && authority !== firstValue(fields, 'host')?.toLowerCase())
    return 'The authority and the Host field name different hosts'
  for (let at = 0; at < fields.length; at += 2) {
    const name = fields[at] ?? ''
    if (CONNECTION_FIELDS.has(name) || (name === 'te' && fields[at + 1]?.toLowerCase() !== 'trailers'))
      return 'Connection-specific fields are not allowed in HTTP/2'
  }
  return null
}

/** `bodiless`: true for HEAD, whose response has no body. */
export const http2Answer = (stream: ServerHttp2Stream, { bodiless }: { readonly bodiless: boolean }): ClientAnswer =>
  new Http2Answer(stream, bodiless)

class Http2Answer implements ClientAnswer {
  readonly #stream: ServerHttp2Stream
  readonly #bodiless: boolean
  #trailers: OutgoingHttpHeaders = {}
  #ended = false
  #head: string[] | null = null

  constructor(stream: ServerHttp2Stream, bodiless: boolean) {
    this.#stream = stream
    this.#bodiless = bodiless
    stream.on('wantTrailers', () => this.#sendTrailers())
  }

  get headersSent(): boolean {
    return this.#head !== null
  }

  get destroyed(): boolean {
    return this.#stream.destroyed
  }

  get writableFinished(): boolean {
    // A reset stream also counts as finished, so `#ended` is needed, too.
    return this.#ended && this.#stream.writableFinished
  }

  get writableLength(): number {
    return this.#stream.writableLength
  }

  writeContinue(): void {
    this.writeInformation(CONTINUE, [])
  }

  writeInformation(status: number, fields: string[]): void {
    const stream = this.#stream
    if (stream.destroyed || stream.closed) return
    stream.additionalHeaders({ ...http2Lists(pairsOf(fields)), ':status': status })
  }

  writeHead(status: number, fields: string[]): void {
    this.#head = [':status', String(status), ...http2Fields(fields)]
    queueMicrotask(() => this.#sendHead(this.#bodiless))
  }

  flushHeaders(): void {
    // `writeHead` already sends the head in a microtask, so there is nothing left to flush.
  }

  write(chunk: Buffer): boolean {
    this.#sendHead(this.#bodiless)
    return this.#stream.destroyed || this.#bodiless || this.#stream.write(chunk)
  }

  addTrailers(list: [string, string][]): void {
    this.#trailers = http2Lists(list)
  }

  end(body?: string, encoding: 'latin1' | 'utf8' = 'utf8'): void {
    this.#ended = true
    const isEmpty = this.#bodiless || body === undefined || body === ''
    this.#sendHead(isEmpty && Object.keys(this.#trailers).length === 0)
    if (isEmpty) this.#stream.end()
    else this.#stream.end(body, encoding)
  }

  destroy(): void {
    // `close` would first end the body normally, and only then reset the stream.
    this.#stream.destroy(new Error('the response was aborted'))
  }

  on(event: 'close', listener: () => void): void {
    this.#stream.on(event, listener)
  }

  once(event: 'close' | 'drain', listener: () => void): void {
    this.#stream.once(event, listener)
  }

  off(event: 'close' | 'drain', listener: () => void): void {
    this.#stream.off(event, listener)
  }

  /** Sends the head. An empty response is one frame with END_STREAM, which gRPC clients need. */
  #sendHead(endStream: boolean): void {
    const stream = this.#stream
    if (this.#head === null || stream.headersSent || stream.destroyed || stream.closed) return
    try {
      stream.respond(this.#head, { endStream, waitForTrailers: !endStream })
      if (endStream) setImmediate(() => this.#releaseStream())
    } catch (err) {
      // The upstream's header fields are not valid in HTTP/2.
      stream.destroy(err instanceof Error ? err : new Error(String(err)))
    }
  }

  #sendTrailers(): void {
    // An aborted response gets no trailers.
    if (!this.#ended) return
    try {
      // Empty trailers end the stream with an empty DATA frame.
      this.#stream.sendTrailers(this.#trailers)
      // The library sends the trailers in an earlier setImmediate callback, so they are out when this one runs.
      setImmediate(() => this.#releaseStream())
    } catch {
      // The trailers are not valid, or the stream has ended.
      this.#stream.close(constants.NGHTTP2_INTERNAL_ERROR)
    }
  }

  /** Ends the stream after a complete response, so that the client stops sending the request (RFC 9113 section 8.1). */
  #releaseStream(): void {
    const stream = this.#stream
    if (stream.destroyed) return
    if (stream.state.remoteClose === 0) stream.close(constants.NGHTTP2_NO_ERROR)
    // Bytes that have arrived must be read, or the stream never closes.
    stream.resume()
  }
}

const CONTINUE = 100
