/** Detects the HTTP version of each connection: by ALPN with TLS, by the first bytes in plain text. */
import type { Server } from 'node:http'
import type { Socket } from 'node:net'
import { TLSSocket, Server as TlsServer } from 'node:tls'

/** The first bytes of HTTP/2 (RFC 9113 section 3.4), which no HTTP/1.1 server accepts as a request. */
const PREFACE = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n')

/**
 * Ignores `Upgrade: h2c`, which RFC 9113 section 3.1 obsoleted and which attackers used to bypass proxies. `close` closes connections
 * whose protocol is not known; none of them has sent a complete request.
 */
export function detectProtocol(
  server: Server,
  options: {
    /** Time to wait for the first bytes of a connection. */
    readonly timeoutMs: () => number
    /** `serve` lets the server begin to read the connection. */
    readonly onHttp1: (socket: Socket, serve: () => void) => void
    readonly onHttp2: (socket: Socket) => void
    /** Called when too few bytes have arrived in time. */
    readonly onLate: (socket: Socket) => void
  },
): { close(): void } {
  const { timeoutMs, onHttp1, onHttp2, onLate } = options
  const undecided = new Set<Socket>()
  const event = server instanceof TlsServer ? 'secureConnection' : 'connection'
  const listeners = server.listeners(event)
  const toHttp1 = (socket: Socket): void =>
    onHttp1(socket, () => {
      for (const listener of listeners) listener.call(server, socket)
    })

  function decide(socket: Socket): void {
    let first: Buffer = Buffer.alloc(0)
    const late = setTimeout(() => {
      settle()
      onLate(socket)
    }, timeoutMs())
    const ignore = (): void => undefined
    const drop = (): void => void socket.destroy()
    function settle(): void {
      clearTimeout(late)
      undecided.delete(socket)
      socket.off('data', onData).off('error', ignore).off('end', drop).off('close', settle)
    }
    function onData(chunk: Buffer): void {
      first = first.length === 0 ? chunk : Buffer.concat([first, chunk])
      const length = Math.min(first.length, PREFACE.length)
      const isPreface = first.compare(PREFACE, 0, length, 0, length) === 0
      if (isPreface && length < PREFACE.length) return
      settle()
      socket.pause()
      socket.unshift(first)
      if (isPreface) onHttp2(socket)
      else toHttp1(socket)
      socket.resume()
    }
    undecided.add(socket)
    socket.on('data', onData).on('error', ignore).on('end', drop).on('close', settle)
  }

  server.removeAllListeners(event)
  server.on(event, (socket: Socket) => {
    if (!(socket instanceof TLSSocket)) decide(socket)
    else if (socket.alpnProtocol === 'h2') onHttp2(socket)
    else toHttp1(socket)
  })
  return {
    close() {
      for (const socket of undecided) socket.destroy()
    },
  }
}
