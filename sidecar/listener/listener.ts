/** The data port: strict parsers whose every refusal is a problem document, and an end that loses no request. */
import { createServer, type IncomingMessage, type Server, type ServerOptions, ServerResponse } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { Server as TlsServer } from 'node:tls'
import { type ListenAddress, listenOn } from '../../pdp/process/listen.ts'
import type { ProblemCode } from '../../pdp/process/problems.ts'
import { type Pem, secureOptions } from '../config/certificates.ts'
import { type ClientAnswer, type ClientRequest, http1Request, type Upgrade } from '../http/client.ts'
import { clientOf, parseAddress } from '../request/addresses.ts'
import type { SidecarLimits } from '../route-file/default-limits.ts'
import { createHttp2Server } from './http2-server.ts'
import { detectProtocol } from './protocol-detection.ts'
import { RequestQueue } from './request-queue.ts'

export type Listener = {
  /** Throws StartError when the address cannot be had. */
  listen(address: ListenAddress): Promise<ListenAddress>
  /** For connections from now on. */
  setLimits(limits: SidecarLimits): void
  /** Takes another certificate for connections from now on. Throws when it is not usable. */
  replaceCertificate(certificate: Pem): void
  /** True once `withdraw` or `close` was called: answers then end their connection. */
  draining(): boolean
  /** Sends each client elsewhere with its next answer. Connections and requests are still taken. */
  withdraw(): void
  /** Takes no further connections, and waits for requests under way for at most `drainMs`: then `onLate` may end them in order. */
  close(options: { readonly drainMs: number; readonly onLate: () => void }): Promise<void>
}
export type ListenerOptions = {
  readonly limits: SidecarLimits
  /** Of the data port; null: plain text. */
  readonly certificate: Pem | null
  /** `expectsContinue`: the client waits for 100 (Continue) before it sends its body. */
  readonly onRequest: (client: ClientRequest, res: ClientAnswer, expectsContinue: boolean) => void
  /** True for a WebSocket handshake on a route that takes them; any other upgrade is an ordinary request. */
  readonly mayUpgrade: (req: IncomingMessage) => boolean
  readonly onUpgrade: (client: ClientRequest, res: ClientAnswer, upgrade: Upgrade) => void
  /** What never became a request. With `answers`, the answer is written to the connection, which then ends; else it has ended. */
  readonly onRejected: (connection: Duplex, rejection: Rejection) => void
  /** True for addresses whose connections are not counted, since they bring many clients. */
  readonly isProxy: (address: string) => boolean
  /** A connection was closed unread: there were as many as may be. */
  readonly onDropped: () => void
}
export type Rejection = {
  readonly code: ProblemCode
  /** For the log only. */
  readonly reason: string
  /** Of the other end; empty when it is gone. */
  readonly address: string
  readonly answers: boolean
}

const CHECK_MS = 1_000
/** Of silence, after which the system asks the other end whether it is still there. */
const PROBE_AFTER_MS = 30_000
/** For a client that was refused to read why and to end its side, too. */
const LINGER_MS = 1_000
const IDLE_CHECK_MS = 100

export function createListener(options: ListenerOptions): Listener {
  const { certificate, onRequest, mayUpgrade, onUpgrade, onRejected } = options
  let { limits } = options
  const queues = new WeakMap<Duplex, RequestQueue>()
  let draining = false
  const server = createHttpServer(certificate, {
    maxHeaderSize: limits.headerBytesMax,
    headersTimeout: limits.headersTimeoutMs,
    // Bodies may take long; what bounds them is that they may not stop or be too slow (pace.ts, bodyReadMs).
    requestTimeout: 0,
    keepAliveTimeout: limits.keepAliveMs,
    connectionsCheckingInterval: CHECK_MS,
    insecureHTTPParser: false,
    // Judged in inbound.ts, which answers with a problem document.
    requireHostHeader: false,
    // One that comes behind a request that is under way would be answered out of turn.
    shouldUpgradeCallback: (req) => queueOf(req.socket).current === null && mayUpgrade(req),
    // A client that vanished without a word is noticed, although nobody writes to it.
    keepAlive: true,
    keepAliveInitialDelay: PROBE_AFTER_MS,
  })
  // Node drops fields past a count of its own without a word; inbound.ts refuses them instead, and the bytes are bounded.
  server.maxHeadersCount = 0
  server.maxConnections = limits.connectionsMax

  function queueOf(connection: Duplex): RequestQueue {
    const queue = queues.get(connection) ?? new RequestQueue(connection)
    queues.set(connection, queue)
    return queue
  }

  function accept(req: IncomingMessage, res: ServerResponse, expectsContinue: boolean): void {
    // The parser loses what follows an upgrade that is not made: the next bytes may be from the middle of a message.
    const isLast = req.headers.upgrade !== undefined
    if (isLast) res.shouldKeepAlive = false
    const begin = (): void => onRequest(http1Request(req), res, expectsContinue)
    if (queueOf(req.socket).take({ req, res, begin, isLast }, limits.pipelinedMax)) return
    drop(req.socket, 'more requests at once than pipelined_max')
  }
  server.on('request', (req, res) => accept(req, res, false))
  server.on('checkContinue', (req, res) => accept(req, res, true))
  server.on('checkExpectation', (req, res) => accept(req, res, false))
  server.on('upgrade', (req, socket, head) => {
    const res = answerOver(req, socket)
    socket.on('error', () => socket.destroy())
    onUpgrade(http1Request(req), res, { socket, head, release: () => release(res, socket) })
  })
  function reject(connection: Duplex, code: ProblemCode, reason: string): void {
    endSoon(connection)
    onRejected(connection, { code, reason, address: addressOf(connection), answers: true })
  }
  function drop(connection: Duplex, reason: string, code: ProblemCode = 'busy'): void {
    onRejected(connection, { code, reason, address: addressOf(connection), answers: false })
    connection.destroy()
  }
  server.on('drop', options.onDropped)
  server.on('connect', (_req, connection) =>
    queueOf(connection).endWith(() => reject(connection, 'method_unsupported', 'CONNECT')),
  )
  server.on('clientError', (err, connection) => {
    const code = problemOf(err)
    const queue = queueOf(connection)
    const reason = reasonOf(err)
    if (code === null) connection.destroy()
    // Requests before it are whole, and are answered first.
    else if (queue.current === null || queue.current.req.complete) queue.endWith(() => reject(connection, code, reason))
    else if (queue.current.res.headersSent) drop(connection, reason, code)
    else reject(connection, code, reason)
  })
  const http2 = createHttp2Server({
    limits,
    onRequest,
    onFlood: (socket) => drop(socket, 'a flood of HTTP/2 frames', 'request_invalid'),
  })
  const detection = detectProtocol(server, {
    timeoutMs: () => limits.headersTimeoutMs,
    onHttp2: http2.accept,
    onLate: (connection) => reject(connection, 'request_timeout', 'no request came'),
  })
  const sockets = openSockets(server, {
    mayOpen: (client, count) => count <= limits.clientConnectionsMax || options.isProxy(client),
    onFull: (socket, reason) => drop(socket, reason),
  })

  return {
    listen: (address) => listenOn(server, 'The sidecar', address),
    draining: () => draining,
    withdraw() {
      draining = true
      http2.withdraw()
    },
    setLimits(next) {
      limits = next
      server.headersTimeout = next.headersTimeoutMs
      server.keepAliveTimeout = next.keepAliveMs
      server.maxConnections = next.connectionsMax
      // Read for each connection, though the types do not know it.
      Object.assign(server, { maxHeaderSize: next.headerBytesMax })
      http2.setLimits(next)
    },
    replaceCertificate(next) {
      if (server instanceof TlsServer) server.setSecureContext(secureOptions(next))
    },
    async close(ending) {
      draining = true
      detection.close()
      if (!server.listening) return
      http2.drain()
      await drain(server, sockets, ending)
    },
  }
}

function createHttpServer(certificate: Pem | null, options: ServerOptions): Server {
  return certificate === null
    ? createServer(options)
    : createTlsServer({ ...options, ...secureOptions(certificate), ALPNProtocols: ['h2', 'http/1.1'] })
}

/** Node lets go of a connection that is to be upgraded; until then it is answered like any other. */
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

/** The answer lets go of a connection that is no longer HTTP. */
function release(res: ServerResponse, socket: Duplex): void {
  res.removeAllListeners('close')
  if (res.socket !== null) res.detachSocket(res.socket)
  socket.removeAllListeners('error')
}

/** Nobody else hears what goes wrong with it, or knows how long it stays. */
function endSoon(connection: Duplex): void {
  const timer = setTimeout(() => connection.destroy(), LINGER_MS)
  connection.on('error', () => connection.destroy())
  connection.once('close', () => clearTimeout(timer))
  // What still comes is read, or closing would take the answer back.
  connection.resume()
}

/** Null when there is nobody left to tell. */
function problemOf(err: NodeJS.ErrnoException): ProblemCode | null {
  if (err.code === 'ECONNRESET' || err.code === 'EPIPE') return null
  if (err.code === 'HPE_HEADER_OVERFLOW') return 'headers_too_large'
  if (err.code === 'ERR_HTTP_REQUEST_TIMEOUT') return 'request_timeout'
  return 'request_invalid'
}

/** What the parser says of it: a code, or words of its own, which are never the client's. */
const reasonOf = (err: NodeJS.ErrnoException): string => err.code ?? err.name

function addressOf(connection: Duplex): string {
  const address = 'remoteAddress' in connection ? connection.remoteAddress : null
  return typeof address === 'string' ? (parseAddress(address) ?? address) : ''
}

type Opening = {
  /** `count`: with this one. */
  readonly mayOpen: (address: string, count: number) => boolean
  readonly onFull: (socket: Socket, reason: string) => void
}

/** Also those that are not HTTP yet, or not any more. */
function openSockets(server: Server, { mayOpen, onFull }: Opening): ReadonlySet<Socket> {
  const sockets = new Set<Socket>()
  const counts = new Map<string, number>()
  server.on('connection', (socket: Socket) => {
    const address = addressOf(socket)
    const client = clientOf(address)
    const count = (counts.get(client) ?? 0) + 1
    counts.set(client, count)
    sockets.add(socket)
    socket.once('close', () => {
      sockets.delete(socket)
      const left = (counts.get(client) ?? 0) - 1
      if (left > 0) counts.set(client, left)
      else counts.delete(client)
    })
    if (!mayOpen(address, count)) onFull(socket, 'more connections of one client than client_connections_max')
  })
  return sockets
}

async function drain(
  server: Server,
  sockets: ReadonlySet<Socket>,
  { drainMs, onLate }: Parameters<Listener['close']>[0],
): Promise<void> {
  const closed = new Promise<void>((resolve) => server.close(() => resolve()))
  server.closeIdleConnections()
  // One whose last answer had begun before does not say that it ends.
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
