/** The data port: strict parsing with a problem document for each rejection, and a graceful shutdown. */
import { createServer, type IncomingMessage, type Server, type ServerOptions, ServerResponse } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { Server as TlsServer } from 'node:tls'
import type { ProblemCode } from '../../pdp/shared/base/problems.ts'
import { RequestQueue, Rests } from '../../pdp/shared/process/http/request-queue.ts'
import { type ListenAddress, listenOn } from '../../pdp/shared/process/listen.ts'
import { dropsAuthority, type Pem, secureOptions } from '../config/certificates.ts'
import { type ClientAnswer, type ClientRequest, http1Request, type Upgrade } from '../http/client-request.ts'
import { mayTake } from '../http/share.ts'
import type { SidecarLimits } from '../route-file/default-limits.ts'
import { resetWhenCut } from './cut-response.ts'
import { createHttp2Server } from './http2-server.ts'
import { addressOf, openSockets } from './open-sockets.ts'
import { detectProtocol } from './protocol-detection.ts'
import { type RequestLines, watchRequestLines } from './request-lines.ts'

export type Listener = {
  /** Throws StartError when it cannot listen on the address. */
  listen(address: ListenAddress): Promise<ListenAddress>
  /** Listens on a unix socket. Rejects with the system's error. */
  listenAt(path: string): Promise<void>
  /** Applies to new connections. */
  setLimits(limits: SidecarLimits): void
  /**
   * Uses another certificate for new connections. Throws when it is not usable. Returns how many open connections it has ended:
   * all, when an authority of client certificates is gone.
   */
  replaceCertificate(certificate: Pem): number
  /** Closes each connection with its next response. New connections and requests are still accepted. */
  withdraw(): void
  /** Accepts no more connections and waits at most `drainMs` for open requests; `onLate` may then end them in order. */
  close(options: { readonly drainMs: number; readonly onLate: () => void }): Promise<void>
}
export type ListenerOptions = {
  readonly limits: SidecarLimits
  /** The certificate of the data port; null: plain text. */
  readonly certificate: Pem | null
  /** `expectsContinue`: the client waits for 100 (Continue) before it sends its body. */
  readonly onRequest: (client: ClientRequest, res: ClientAnswer, expectsContinue: boolean) => void
  /** True for a WebSocket handshake on a route that accepts it; any other upgrade is an ordinary request. */
  readonly mayUpgrade: (req: IncomingMessage) => boolean
  readonly onUpgrade: (client: ClientRequest, res: ClientAnswer, upgrade: Upgrade) => void
  /** Input was rejected before it became a request. With `answers`, write the response to the connection, which then closes. */
  readonly onRejected: (connection: Duplex, rejection: Rejection) => void
  /** True for addresses of trusted proxies, whose connections are not counted because they serve many clients. */
  readonly isProxy: (address: string) => boolean
  /** A connection was closed unread because `connections_max` was reached. */
  readonly onDropped: () => void
}
export type Rejection = {
  readonly code: ProblemCode
  /** For the log only. */
  readonly reason: string
  /** The peer's address; empty when the peer is gone. */
  readonly address: string
  /** True while a response can still be sent. */
  readonly answers: boolean
}

const CHECK_MS = 1_000
/** Idle time after which TCP keepalive probes the peer. */
const PROBE_AFTER_MS = 30_000
/** Time for a rejected client to read the response and close its side. */
const LINGER_MS = 1_000
const IDLE_CHECK_MS = 100

export function createListener(options: ListenerOptions): Listener {
  const { onRequest, mayUpgrade, onUpgrade, onRejected } = options
  let { limits, certificate } = options
  const rests = new Rests(() => limits.keepAliveMs)
  const queues = new WeakMap<Duplex, RequestQueue>()
  const lines = new WeakMap<Duplex, RequestLines>()
  const server = createHttpServer(certificate, {
    maxHeaderSize: limits.headerBytesMax,
    headersTimeout: limits.headersTimeoutMs,
    // The duration of a body is not limited. Idle time, minimum rate and `bodyReadMs` limit it instead.
    requestTimeout: 0,
    keepAliveTimeout: limits.keepAliveMs,
    connectionsCheckingInterval: CHECK_MS,
    insecureHTTPParser: false,
    // The pipeline checks the Host field, and answers with a problem document.
    requireHostHeader: false,
    // A pipelined upgrade would be answered before the requests in front of it.
    shouldUpgradeCallback: (req) =>
      queueOf(req.socket).current === null && lines.get(req.socket)?.formOf(req) === 'good' && mayUpgrade(req),
    // Notices a vanished client even when nothing is written to it.
    keepAlive: true,
    keepAliveInitialDelay: PROBE_AFTER_MS,
  })
  // Node would silently drop fields beyond its limit. The pipeline rejects them instead, and `maxHeaderSize` limits the bytes.
  server.maxHeadersCount = 0
  server.maxConnections = limits.connectionsMax

  function queueOf(connection: Duplex): RequestQueue {
    const queue = queues.get(connection) ?? new RequestQueue(connection, rests)
    queues.set(connection, queue)
    return queue
  }

  /** HTTP/1.1 begins on this connection. */
  function begin(connection: Socket, serve: () => void): void {
    lines.set(
      connection,
      watchRequestLines(connection, serve, { headBytesMax: () => limits.headerBytesMax, onTooLong }),
    )
  }
  const onTooLong = (connection: Duplex): void =>
    queueOf(connection).endWith(() => reject(connection, 'headers_too_large', 'the header section is too long'))

  function accept(req: IncomingMessage, res: ServerResponse, expectsContinue: boolean): void {
    const form = lines.get(req.socket)?.formOf(req) ?? 'unknown'
    if (form !== 'good') {
      queueOf(req.socket).endWith(() => refuse(req.socket, form))
      return
    }
    // When an upgrade is not performed, the parser loses the bytes that follow, so no later request can be read.
    const isLast = req.headers.upgrade !== undefined
    if (isLast) res.shouldKeepAlive = false
    if (req.httpVersionMinor === 0) resetWhenCut(res, req.socket)
    const begin = (): void => onRequest(http1Request(req), res, expectsContinue)
    if (queueOf(req.socket).take({ req, res, begin, isLast }, limits.pipelinedMax)) return
    drop(req.socket, 'the client exceeded pipelined_max')
  }
  server.on('request', (req, res) => accept(req, res, false))
  server.on('checkContinue', (req, res) => accept(req, res, true))
  server.on('checkExpectation', (req, res) => accept(req, res, false))
  server.on('upgrade', (req, socket, head) => {
    lines.get(socket)?.close()
    const res = answerOver(req, socket)
    socket.on('error', () => socket.destroy())
    onUpgrade(http1Request(req), res, { socket, head, release: () => release(res, socket) })
  })
  function reject(connection: Duplex, code: ProblemCode, reason: string): void {
    endSoon(connection)
    onRejected(connection, { code, reason, address: addressOf(connection), answers: true })
  }
  function refuse(connection: Duplex, form: 'bad' | 'unknown'): void {
    if (form === 'bad') {
      reject(connection, 'request_invalid', 'the request line is malformed')
      return
    }
    // Without an answer, the client sends it again on another connection.
    endSoon(connection)
    const reason = 'the request follows a chunked body without a pause'
    onRejected(connection, { code: 'request_invalid', reason, address: addressOf(connection), answers: false })
    connection.end()
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
    // Complete requests before the malformed one are answered first.
    else if (queue.current === null || queue.current.req.complete) queue.endWith(() => reject(connection, code, reason))
    else if (queue.current.res.headersSent) drop(connection, reason, code)
    else reject(connection, code, reason)
  })
  const http2 = createHttp2Server({
    limits,
    onRequest,
    onFlood: (socket) => drop(socket, 'a flood of HTTP/2 frames', 'request_invalid'),
    isProxy: options.isProxy,
  })
  const detection = detectProtocol(server, {
    timeoutMs: () => limits.headersTimeoutMs,
    onHttp1: begin,
    onHttp2: http2.accept,
    onLate: (connection) => reject(connection, 'request_timeout', 'no complete request arrived in time'),
  })
  const sockets = openSockets(server, {
    mayOpen: (client, { own, used }) =>
      (own < limits.clientConnectionsMax && mayTake(own, { used, max: limits.connectionsMax })) ||
      options.isProxy(client),
    onFull: (socket, reason) => drop(socket, reason),
  })

  return {
    listen: (address) => listenOn(server, 'The sidecar', address),
    listenAt: (path) =>
      new Promise((resolve, reject) => {
        server.once('error', reject)
        server.listen(path, () => {
          server.off('error', reject)
          resolve()
        })
      }),
    withdraw: http2.withdraw,
    setLimits(next) {
      limits = next
      server.headersTimeout = next.headersTimeoutMs
      server.keepAliveTimeout = next.keepAliveMs
      server.maxConnections = next.connectionsMax
      // Node reads this property for each connection, but its types lack it.
      Object.assign(server, { maxHeaderSize: next.headerBytesMax })
      http2.setLimits(next)
    },
    replaceCertificate(next) {
      if (server instanceof TlsServer) server.setSecureContext(secureOptions(next))
      const ended = dropsAuthority(certificate, next) ? [...sockets] : []
      for (const socket of ended) socket.destroy()
      certificate = next
      return ended.length
    },
    async close(ending) {
      detection.close()
      if (!server.listening) return
      rests.hurry(LINGER_MS)
      http2.drain()
      await drain(server, sockets, ending)
    },
  }
}

function createHttpServer(certificate: Pem | null, options: ServerOptions): Server {
  if (certificate === null) return createServer(options)
  const { headersTimeout: handshakeTimeout } = options
  return createTlsServer({
    ...options,
    ...secureOptions(certificate),
    ALPNProtocols: ['h2', 'http/1.1'],
    // Node waits 120 s for a handshake; silent connections would use up connections_max.
    ...(handshakeTimeout !== undefined && { handshakeTimeout }),
  })
}

/** Node detaches a connection at an upgrade. This response lets the pipeline answer it like any other. */
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

/** Detaches the response from a connection that is no longer HTTP. */
function release(res: ServerResponse, socket: Duplex): void {
  res.removeAllListeners('close')
  if (res.socket !== null) res.detachSocket(res.socket)
  socket.removeAllListeners('error')
}

/** Handles errors of a connection that is closing, and bounds how long it stays open. */
function endSoon(connection: Duplex): void {
  const timer = setTimeout(() => connection.destroy(), LINGER_MS)
  connection.on('error', () => connection.destroy())
  connection.once('close', () => clearTimeout(timer))
  // Unread bytes would make the system reset the connection, and the client could lose the response.
  connection.resume()
}

/** Null when the client is gone. */
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
