/** The upstream over HTTP/2: with ALPN over TLS, with prior knowledge in plain text (RFC 9113 section 3). */
import { type ClientHttp2Session, type ClientHttp2Stream, connect, constants } from 'node:http2'
import { connect as openSocket, type Socket } from 'node:net'
import type { Readable } from 'node:stream'
import { type ConnectionOptions, connect as openTls } from 'node:tls'
import type { Dispatcher } from 'undici'
import { urlHost, urlPort } from '../../pdp/shared/process/listen.ts'
import { FIELD_OPTIONS, http2Fields, http2Lists } from '../http/http2-fields.ts'
import {
  Controller,
  headersTimeout,
  RefusedError,
  serverNameOf,
  type Upstream,
  type UpstreamOptions,
  type UpstreamRequest,
} from './upstream.ts'

type Connection = { readonly session: ClientHttp2Session; streams: number; streamsMax: number }

const END_STREAM = 0x1
/** Streams per connection, unless the upstream allows fewer. A lost connection loses at most this many requests. */
const STREAMS_MAX = 100
/** Memory for the bodies of these streams in megabytes; beyond it the library refuses streams. */
const SESSION_MB_MAX = 32
/** The time between two PINGs on a busy connection. An upstream that does not answer one within `PROBE_ANSWER_MS` is dead. */
const PROBE_EVERY_MS = 15_000
const PROBE_ANSWER_MS = 10_000

export function createHttp2Upstream(options: UpstreamOptions): Upstream {
  const { origin, connectionsMax, headersTimeoutMs, headerBytesMax } = options
  const { protocol } = new URL(origin)
  const connections = new Set<Connection>()

  function openConnection(): Connection {
    const session = connect(origin, {
      createConnection: () => dial(options),
      ...FIELD_OPTIONS,
      maxSessionMemory: SESSION_MB_MAX,
      settings: { enablePush: false, maxHeaderListSize: headerBytesMax },
    })
    const connection: Connection = { session, streams: 0, streamsMax: STREAMS_MAX }
    connections.add(connection)
    const leave = (): void => void connections.delete(connection)
    session.on('remoteSettings', ({ maxConcurrentStreams: wanted = STREAMS_MAX }) => {
      connection.streamsMax = Math.min(STREAMS_MAX, wanted)
    })
    session.on('goaway', leave)
    session.on('close', leave)
    // The error is not handled here: each stream emits it too, and ends its own request.
    session.on('error', leave)
    probe(session, () => connection.streams > 0)
    return connection
  }

  /** The connection for a request. When all are full, the request waits on the one with the fewest streams. */
  function pickConnection(): Connection {
    let fewest: Connection | null = null
    for (const connection of connections) {
      if (connection.session.closed || connection.session.destroyed) continue
      if (connection.streams < connection.streamsMax) return connection
      if (fewest === null || connection.streams < fewest.streams) fewest = connection
    }
    return fewest !== null && connections.size >= connectionsMax ? fewest : openConnection()
  }

  return {
    version: '2',
    headersTimeoutMs,
    upgrade: null,
    send(request, handler) {
      const connection = pickConnection()
      const { method, path, body, announced } = request
      const { authority, fields } = splitHost(request.headers)
      const pseudo = [':method', method, ':scheme', protocol.slice(0, -1), ':authority', authority, ':path', path]
      // gRPC servers require `te: trailers`; the trailers of responses are forwarded.
      const aborting = new AbortController()
      const trailer = announced.length > 0 ? ['trailer', announced.join(', ')] : []
      const stream = connection.session.request([...pseudo, ...fields, 'te', 'trailers', ...trailer], {
        endStream: body === null,
        waitForTrailers: announced.length > 0,
        signal: aborting.signal,
      })
      connection.streams += 1
      stream.once('close', () => {
        connection.streams -= 1
      })
      const timeoutMs = request.headersTimeoutMs ?? (request.patient ? null : headersTimeoutMs)
      carry({ stream, aborting, request, handler, headersTimeoutMs: timeoutMs })
    },
    close() {
      for (const { session } of connections) session.destroy()
    },
  }
}

function dial(options: UpstreamOptions): Socket {
  const { origin, socketPath, tls, connectMs } = options
  const url = new URL(origin)
  const peer = socketPath === null ? { host: urlHost(url), port: urlPort(url) } : { path: socketPath }
  const isTls = url.protocol === 'https:'
  const secure: ConnectionOptions = { ...tls, ALPNProtocols: ['h2'], servername: serverNameOf(options) }
  const socket = isTls ? openTls({ ...peer, ...secure }) : openSocket(peer)
  const late = (): void => {
    socket.destroy(
      Object.assign(new Error('the upstream did not accept a connection in time'), { code: 'UND_ERR_CONNECT_TIMEOUT' }),
    )
  }
  const timer = setTimeout(late, connectMs)
  socket.once(isTls ? 'secureConnect' : 'connect', () => {
    clearTimeout(timer)
    if ('alpnProtocol' in socket && socket.alpnProtocol !== 'h2')
      socket.destroy(new Error('the upstream does not support HTTP/2'))
  })
  socket.once('close', () => clearTimeout(timer))
  return socket.setNoDelay(true)
}

function probe(session: ClientHttp2Session, isBusy: () => boolean): void {
  const timer = setInterval(() => {
    if (!isBusy() || session.destroyed) return
    const late = setTimeout(() => session.destroy(new Error('the upstream did not answer a PING')), PROBE_ANSWER_MS)
    session.ping(() => clearTimeout(late))
  }, PROBE_EVERY_MS).unref()
  session.once('close', () => clearInterval(timer))
}

/** The fields without Host, which becomes the authority (section 8.3.1). */
function splitHost(headers: readonly string[]): { authority: string; fields: string[] } {
  const fields = http2Fields(headers)
  const at = fields.findIndex((name, index) => index % 2 === 0 && name === 'host')
  const [, authority = ''] = at < 0 ? [] : fields.splice(at, 2)
  return { authority, fields }
}

function carry(options: {
  readonly stream: ClientHttp2Stream
  /** Resets the stream. `stream.close` would first end the body normally, so that a partial body would look complete. */
  readonly aborting: AbortController
  readonly request: UpstreamRequest
  readonly handler: Dispatcher.DispatchHandler
  readonly headersTimeoutMs: number | null
}): void {
  const { stream, aborting, request, handler, headersTimeoutMs } = options
  const { body, trailers } = request
  const controller = new Controller((reason) => finish(reason))
  controller.source = stream
  const late = headersTimeoutMs === null ? undefined : setTimeout(() => finish(headersTimeout()), headersTimeoutMs)
  let over = false
  /** True once END_STREAM has arrived: the response is then complete (RFC 9113 section 8.1), whatever happens to the stream. */
  let isWhole = false
  // The library also ends a stream that was reset without an error, but only after it has closed the stream.
  const push = stream.push
  stream.push = (part) => {
    if (part === null && !stream.closed) isWhole = true
    return push.call(stream, part)
  }

  /** `failure`: null when the response is complete. */
  function finish(failure: Error | null): void {
    if (over) return
    over = true
    clearTimeout(late)
    // Aborts also after a complete response, since nobody needs the rest of the request.
    if (failure !== null || !stream.writableEnded) aborting.abort()
    if (body !== null && !Buffer.isBuffer(body)) body.destroy()
    if (failure === null) handler.onResponseEnd?.(controller, {})
    else if (!controller.aborted) handler.onResponseError?.(controller, failure)
  }

  handler.onRequestStart?.(controller, null)
  stream.on('headers', (headers, _flags, raw: string[]) => {
    if (over) return
    controller.rawHeaders = withoutPseudo(raw)
    handler.onResponseStart?.(controller, headers[':status'] ?? 0, {}, '')
  })
  stream.on('response', (headers, flags, raw: string[]) => {
    clearTimeout(late)
    controller.rawHeaders = withoutPseudo(raw)
    handler.onResponseStart?.(controller, headers[':status'] ?? 0, {}, '')
    // Finishing now gives the client a single frame, too.
    if (flags & END_STREAM) finish(null)
  })
  stream.on('data', (chunk) => {
    if (!over) handler.onResponseData?.(controller, chunk)
  })
  stream.on('trailers', (_trailers, _flags, raw: string[]) => {
    controller.rawTrailers = raw
  })
  stream.on('end', () => finish(isWhole ? null : new Error('the upstream reset the response')))
  stream.on('error', (err) => finish(causeOf(err, stream)))
  stream.on('close', () => finish(new Error('the upstream ended the exchange')))
  stream.on('wantTrailers', () => {
    try {
      stream.sendTrailers(http2Lists(trailers()))
    } catch (err) {
      finish(err instanceof Error ? err : new Error(String(err)))
    }
  })
  if (body === null) return
  // An upload may take long; the timeout starts after its last part.
  if (!Buffer.isBuffer(body)) body.on('data', () => void (over || late?.refresh()))
  sendBody(body, stream, finish)
}

const withoutPseudo = (raw: readonly string[]): string[] => raw.filter((_, at) => !raw[at - (at % 2)]?.startsWith(':'))

function sendBody(body: Readable | Buffer, stream: ClientHttp2Stream, fail: (err: Error) => void): void {
  if (Buffer.isBuffer(body)) return void stream.end(body)
  body.on('error', fail)
  body.on('data', (chunk) => void (stream.write(chunk) || body.pause()))
  body.on('end', () => stream.end())
  stream.on('drain', () => body.resume())
}

/** The reason for which a stream failed. The library cancels the streams of a broken connection, with the reason as cause. */
function causeOf(err: Error, stream: ClientHttp2Stream): Error {
  if (stream.rstCode === constants.NGHTTP2_REFUSED_STREAM) return new RefusedError('the upstream refused the request')
  return err.cause instanceof Error ? err.cause : err
}
