/** The data port: strict parsing with a problem document for each rejection, and a graceful shutdown. */
import { createServer, type IncomingMessage, type Server, type ServerOptions, ServerResponse } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { TLSSocket, Server as TlsServer } from 'node:tls'
import { clientOf, parseAddress } from '../../pdp/shared/base/addresses.ts'
import type { ProblemCode } from '../../pdp/shared/base/problems.ts'
import { RequestQueue, Rests } from '../../pdp/shared/process/http/request-queue.ts'
import { type ListenAddress, listenOn } from '../../pdp/shared/process/listen.ts'
import { dropsAuthority, type Pem, secureOptions } from '../config/certificates.ts'
import { type ClientAnswer, type ClientRequest, http1Request, type Upgrade } from '../http/client-request.ts'
import { mayTake } from '../http/share.ts'
import type { SidecarLimits } from '../route-file/default-limits.ts'
import { inTurns } from './arrivals.ts'
import { createHttp2Server, type Http2Server } from './http2-server.ts'
import { detectProtocol } from './protocol-detection.ts'
import { expectProxyHeaders } from './proxy-header.ts'
import { watchRequestLines } from './request-lines.ts'

export type Listener = {
  /** Throws StartError when it cannot listen on the address. */
  listen(address: ListenAddress): Promise<ListenAddress>
  /** Listens on a unix socket. Rejects with the system's error. */
  listenAt(path: string): Promise<void>
  /** The limits apply to new connections. */
  setLimits(limits: SidecarLimits): void
  /**
   * Uses another certificate for new connections. Throws when it is not usable. Returns how many open connections it has ended: all of them
   * if client certificates of a removed authority may be among them, else none.
   */
  replaceCertificate(certificate: Pem): number
  /** Closes each connection with its next response. New connections and requests are still accepted until `close`. */
  withdraw(): void
  /** Accepts no more connections, and waits at most `drainMs` for open requests; then `onLate` may end the rest in order. */
  close(options: { readonly drainMs: number; readonly onLate: () => void }): Promise<void>
}
export type ListenerOptions = {
  readonly limits: SidecarLimits
  /** The certificate of the data port; null: plain text. */
  readonly certificate: Pem | null
  /** `expectsContinue`: the client waits for 100 (Continue) before it sends its body. */
  readonly onRequest: (client: ClientRequest, res: ClientAnswer, expectsContinue: boolean) => void
  /** True for a WebSocket handshake on a route that accepts WebSockets; other upgrades become ordinary requests. */
  readonly mayUpgrade: (req: IncomingMessage) => boolean
  readonly onUpgrade: (client: ClientRequest, res: ClientAnswer, upgrade: Upgrade) => void
  /** Called for input that never became a request. With `answers`, it writes the response to the connection, which then closes. */
  readonly onRejected: (connection: Duplex, rejection: Rejection) => void
  /** True for addresses of trusted proxies, which have no limit of connections because they serve many clients. */
  readonly isProxy: (address: string) => boolean
  /** True for peers that begin each connection with a header of the PROXY protocol. */
  readonly namesClient: (address: string) => boolean
  /** Called for a connection that was closed unread because `connections_max` was reached. */
  readonly onDropped: () => void
}
export type Rejection = {
  readonly code: ProblemCode
  /** The reason for the log; the client does not see it. */
  readonly reason: string
  /** The peer's address; empty after the peer has left. */
  readonly address: string
  /** The origin of the page that has sent the input, if its bytes tell. */
  readonly origin: string | null
  /** True while a response can still be sent. */
  readonly answers: boolean
}

const CHECK_MS = 1_000
/** The idle time in milliseconds after which TCP keepalive probes the peer. */
const PROBE_AFTER_MS = 30_000
/** How many milliseconds a rejected client has to read the response and to close its side. */
const LINGER_MS = 1_000
const IDLE_CHECK_MS = 100

export function createListener(options: ListenerOptions): Listener {
  return new DataPort({ ...options, onRequest: inTurns(options.onRequest) })
}

class DataPort implements Listener {
  readonly #options: ListenerOptions
  #limits: SidecarLimits
  #certificate: Pem | null
  readonly #rests: Rests
  readonly #queues = new WeakMap<Duplex, RequestQueue>()
  readonly #lines = new WeakMap<Duplex, ReturnType<typeof watchRequestLines>>()
  readonly #server: Server
  readonly #http2: Http2Server
  readonly #detection: { close(): void }
  readonly #headers: { close(): void }
  readonly #sockets: ReadonlySet<Socket>

  constructor(options: ListenerOptions) {
    const { limits, certificate, mayUpgrade, isProxy } = options
    this.#options = options
    this.#limits = limits
    this.#certificate = certificate
    this.#rests = new Rests(() => this.#limits.keepAliveMs)
    const server = createHttpServer(certificate, {
      ...httpOptions(limits),
      // The answer to a pipelined upgrade would overtake the answers to the requests before it, so it is no upgrade.
      shouldUpgradeCallback: (req) =>
        this.#queueOf(req.socket).current === null &&
        this.#lines.get(req.socket)?.formOf(req) === 'good' &&
        mayUpgrade(req),
    })
    this.#server = server
    // Node would silently drop fields beyond this limit. The pipeline rejects them instead, and `maxHeaderSize` limits the bytes.
    server.maxHeadersCount = 0
    server.maxConnections = limits.connectionsMax
    this.#serve(server)
    this.#http2 = createHttp2Server({
      limits,
      onRequest: options.onRequest,
      onFlood: (socket) => this.#drop(socket, 'a flood of HTTP/2 frames', 'request_invalid'),
      isProxy,
    })
    this.#detection = detectProtocol(server, {
      timeoutMs: () => this.#limits.headersTimeoutMs,
      onHttp1: (connection, serve) => this.#begin(connection, serve),
      onHttp2: this.#http2.accept,
      onLate: (connection) => this.#reject(connection, 'request_timeout', 'no complete request arrived in time'),
    })
    this.#sockets = openSockets(server, {
      mayOpen: (client, { own, used }) =>
        (own < this.#limits.clientConnectionsMax && mayTake(own, { used, max: this.#limits.connectionsMax })) ||
        isProxy(client),
      onFull: (socket, reason) => this.#drop(socket, reason),
    })
    this.#headers = expectProxyHeaders(server, {
      isNeeded: (address = '') => options.namesClient(parseAddress(address) ?? address),
      timeoutMs: () => this.#limits.headersTimeoutMs,
      onBad: (socket) => this.#drop(socket, 'no header of the PROXY protocol', 'request_invalid'),
    })
  }

  listen(address: ListenAddress): Promise<ListenAddress> {
    return listenOn(this.#server, 'The sidecar', address)
  }

  listenAt(path: string): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#server.once('error', reject)
      this.#server.listen(path, () => {
        this.#server.off('error', reject)
        resolve()
      })
    })
  }

  setLimits(next: SidecarLimits): void {
    this.#limits = next
    this.#server.headersTimeout = next.headersTimeoutMs
    this.#server.keepAliveTimeout = next.keepAliveMs
    this.#server.maxConnections = next.connectionsMax
    // Node reads this property again for each new connection; its types lack it.
    Object.assign(this.#server, { maxHeaderSize: next.headerBytesMax })
    this.#http2.setLimits(next)
  }

  replaceCertificate(next: Pem): number {
    if (this.#server instanceof TlsServer) this.#server.setSecureContext(secureOptions(next))
    const ended = dropsAuthority(this.#certificate, next) ? [...this.#sockets] : []
    for (const socket of ended) socket.destroy()
    this.#certificate = next
    return ended.length
  }

  withdraw(): void {
    this.#http2.withdraw()
  }

  async close(ending: Parameters<Listener['close']>[0]): Promise<void> {
    this.#headers.close()
    this.#detection.close()
    if (!this.#server.listening) return
    this.#rests.hurry(LINGER_MS)
    this.#http2.drain()
    await drain(this.#server, this.#sockets, ending)
  }

  #serve(server: Server): void {
    server.on('request', (req, res) => this.#accept(req, res, false))
    server.on('checkContinue', (req, res) => this.#accept(req, res, true))
    server.on('checkExpectation', (req, res) => this.#accept(req, res, false))
    server.on('upgrade', (req, socket, head) => {
      this.#lines.get(socket)?.close()
      const res = answerOver(req, socket)
      socket.on('error', () => socket.destroy())
      const upgrade = { socket, head, release: () => release(res, socket) }
      this.#options.onUpgrade(http1Request(req), res, upgrade)
    })
    server.on('drop', this.#options.onDropped)
    server.on('connect', (_req, connection) =>
      this.#queueOf(connection).endWith(() => this.#reject(connection, 'method_unsupported', 'CONNECT')),
    )
    server.on('clientError', (err, connection) => this.#onClientError(err, connection))
  }

  #queueOf(connection: Duplex): RequestQueue {
    const queue = this.#queues.get(connection) ?? new RequestQueue(connection, this.#rests)
    this.#queues.set(connection, queue)
    return queue
  }

  /** Lets the HTTP/1.1 server begin to read this connection. */
  #begin(connection: Socket, serve: () => void): void {
    const lines = watchRequestLines(connection, serve, {
      headBytesMax: () => this.#limits.headerBytesMax,
      onTooLong: (long) =>
        this.#queueOf(long).endWith(() => this.#reject(long, 'headers_too_large', 'the header section is too long')),
    })
    this.#lines.set(connection, lines)
  }

  #accept(req: IncomingMessage, res: ServerResponse, expectsContinue: boolean): void {
    const form = this.#lines.get(req.socket)?.formOf(req) ?? 'unknown'
    if (form !== 'good') {
      this.#queueOf(req.socket).endWith(() => this.#refuse(req.socket, form))
      return
    }
    // When an upgrade is not performed, the parser loses the bytes after it, so this request must be the last one.
    const isLast = req.headers.upgrade !== undefined
    if (isLast) res.shouldKeepAlive = false
    if (req.httpVersionMinor === 0) resetWhenCut(res, req.socket)
    const begin = (): void => this.#options.onRequest(http1Request(req), res, expectsContinue)
    if (this.#queueOf(req.socket).take({ req, res, begin, isLast }, this.#limits.pipelinedMax)) return
    this.#drop(req.socket, 'the client exceeded pipelined_max')
  }

  #onClientError(err: NodeJS.ErrnoException, connection: Duplex): void {
    const code = problemOf(err)
    const queue = this.#queueOf(connection)
    const reason = reasonOf(err)
    if (code === null) connection.destroy()
    // Complete requests before the malformed one are answered first.
    else if (queue.current === null || queue.current.req.complete)
      queue.endWith(() => this.#reject(connection, code, reason))
    else if (queue.current.res.headersSent) this.#drop(connection, reason, code)
    else this.#reject(connection, code, reason)
  }

  #report(connection: Duplex, rejection: Pick<Rejection, 'code' | 'reason' | 'answers'>): void {
    const origin = this.#lines.get(connection)?.originOfHead() ?? null
    this.#options.onRejected(connection, { ...rejection, address: addressOf(connection), origin })
  }

  #reject(connection: Duplex, code: ProblemCode, reason: string): void {
    endSoon(connection)
    this.#report(connection, { code, reason, answers: true })
  }

  #refuse(connection: Duplex, form: 'bad' | 'unknown'): void {
    if (form === 'bad') return void this.#reject(connection, 'request_invalid', 'the request line is malformed')
    // The connection ends without an answer, so that the client repeats the request on another one.
    endSoon(connection)
    const reason = 'the request follows a chunked body without a pause'
    this.#report(connection, { code: 'request_invalid', reason, answers: false })
    connection.end()
  }

  #drop(connection: Duplex, reason: string, code: ProblemCode = 'busy'): void {
    this.#report(connection, { code, reason, answers: false })
    connection.destroy()
  }
}

const httpOptions = (limits: SidecarLimits): ServerOptions => ({
  maxHeaderSize: limits.headerBytesMax,
  headersTimeout: limits.headersTimeoutMs,
  // The duration of a body is not limited. Idle time, minimum rate and `bodyReadMs` limit it instead.
  requestTimeout: 0,
  keepAliveTimeout: limits.keepAliveMs,
  connectionsCheckingInterval: CHECK_MS,
  insecureHTTPParser: false,
  // The pipeline checks the Host field, and answers with a problem document.
  requireHostHeader: false,
  // TCP keep-alive finds clients that have vanished while nothing is written to them.
  keepAlive: true,
  keepAliveInitialDelay: PROBE_AFTER_MS,
})

function createHttpServer(certificate: Pem | null, options: ServerOptions): Server {
  if (certificate === null) return createServer(options)
  const { headersTimeout: handshakeTimeout } = options
  return createTlsServer({
    ...options,
    ...secureOptions(certificate),
    ALPNProtocols: ['h2', 'http/1.1'],
    // Node would wait 120 s for a handshake, so silent connections would use up connections_max.
    ...(handshakeTimeout !== undefined && { handshakeTimeout }),
  })
}

/** A response for an upgrade, at which Node detaches the connection, so that the pipeline can answer it like any other. */
function answerOver(req: IncomingMessage, socket: Duplex): ServerResponse {
  const res = new ServerResponse(req)
  res.shouldKeepAlive = false
  res.assignSocket(req.socket)
  res.once('finish', () => {
    res.detachSocket(req.socket)
    endSoon(socket)
    socket.end()
  })
  return res
}

/** Detaches the response from a connection that has left HTTP. */
function release(res: ServerResponse, socket: Duplex): void {
  res.removeAllListeners('close')
  if (res.socket !== null) res.detachSocket(res.socket)
  socket.removeAllListeners('error')
}

/** Ignores further errors of a closing connection, and closes it within `LINGER_MS`. */
function endSoon(connection: Duplex): void {
  const timer = setTimeout(() => connection.destroy(), LINGER_MS)
  connection.on('error', () => connection.destroy())
  connection.once('close', () => clearTimeout(timer))
  // Unread bytes would make the system reset the connection, and the client could lose the response.
  connection.resume()
}

/** The problem code for a parser's error; null: the client has left. */
function problemOf(err: NodeJS.ErrnoException): ProblemCode | null {
  if (err.code === 'ECONNRESET' || err.code === 'EPIPE') return null
  if (err.code === 'HPE_HEADER_OVERFLOW') return 'headers_too_large'
  if (err.code === 'ERR_HTTP_REQUEST_TIMEOUT') return 'request_timeout'
  return 'request_invalid'
}

/** The parser's error code or name, which never contains client data. */
const reasonOf = (err: NodeJS.ErrnoException): string => err.code ?? err.name

async function drain(
  server: Server,
  sockets: ReadonlySet<Socket>,
  { drainMs, onLate }: Parameters<Listener['close']>[0],
): Promise<void> {
  const closed = new Promise<void>((resolve) => server.close(() => resolve()))
  server.closeIdleConnections()
  // A response that began before the shutdown has no `Connection: close`, so its connection becomes idle later.
  const idle = setInterval(() => server.closeIdleConnections(), IDLE_CHECK_MS)
  let timer = setTimeout(() => {
    onLate()
    timer = setTimeout(() => {
      for (const socket of sockets) socket.destroy()
    }, LINGER_MS)
  }, drainMs)
  await closed
  clearTimeout(timer)
  clearInterval(idle)
}

/** All open sockets, also those before protocol detection and after an upgrade. */
function openSockets(
  server: Server,
  options: {
    /** `own`: how many connections the client has already. `used`: how many all clients have. */
    readonly mayOpen: (address: string, open: { readonly own: number; readonly used: number }) => boolean
    readonly onFull: (socket: Socket, reason: string) => void
  },
): ReadonlySet<Socket> {
  const { mayOpen, onFull } = options
  const sockets = new Set<Socket>()
  const counts = new Map<string, number>()
  server.on('connection', (socket: Socket) => {
    const address = addressOf(socket)
    const client = clientOf(address)
    const own = counts.get(client) ?? 0
    const isAllowed = mayOpen(address, { own, used: sockets.size })
    counts.set(client, own + 1)
    sockets.add(socket)
    socket.once('close', () => {
      sockets.delete(socket)
      const left = (counts.get(client) ?? 0) - 1
      if (left > 0) counts.set(client, left)
      else counts.delete(client)
    })
    if (!isAllowed) onFull(socket, 'the client exceeded client_connections_max, or its part of connections_max')
  })
  return sockets
}

/** The peer's address; empty after the peer has left. */
function addressOf(connection: Duplex): string {
  const address = 'remoteAddress' in connection ? connection.remoteAddress : null
  return typeof address === 'string' ? (parseAddress(address) ?? address) : ''
}

/** Shows a client of HTTP/1.0 that its response was cut off: a normal end of the connection would end the response, so it is reset. */
function resetWhenCut(res: ServerResponse, connection: Socket): void {
  const destroy = res.destroy.bind(res)
  res.destroy = (err) => {
    // Over TLS no reset is needed: the client notices the missing `close_notify`.
    if (res.headersSent && !(connection instanceof TLSSocket)) connection.resetAndDestroy()
    return destroy(err)
  }
}
