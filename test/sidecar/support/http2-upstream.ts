/** A service that speaks HTTP/2 only, in plain text or over TLS, for a sidecar to forward to. */
import {
  createSecureServer,
  createServer,
  type IncomingHttpHeaders,
  type SecureServerOptions,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from 'node:http2'
import type { AddressInfo } from 'node:net'

export type Http2Reached = {
  readonly headers: IncomingHttpHeaders
  /** Names and values in turn, with the pseudo-header fields. */
  readonly raw: readonly string[]
  body: string
  trailers: IncomingHttpHeaders | null
}
export type Http2Upstream = {
  readonly port: number
  readonly reached: Http2Reached[]
  readonly sessions: Set<ServerHttp2Session>
  /** Replaces the answer; called when the header section arrived. */
  handle: ((stream: ServerHttp2Stream, reached: Http2Reached) => void) | null
  close(): Promise<void>
}

export async function startHttp2Upstream(secure: SecureServerOptions | null = null): Promise<Http2Upstream> {
  const options = { maxSessionMemory: 64 }
  const server = secure === null ? createServer(options) : createSecureServer({ ...options, ...secure })
  const sessions = new Set<ServerHttp2Session>()
  server.on('session', (session) => {
    sessions.add(session)
    session.on('close', () => sessions.delete(session))
    session.on('error', () => undefined)
  })
  server.on('stream', (stream: ServerHttp2Stream, headers: IncomingHttpHeaders, _flags: number, raw: string[]) => {
    const reached: Http2Reached = { headers, raw, body: '', trailers: null }
    upstream.reached.push(reached)
    stream.on('error', () => undefined)
    stream.on('trailers', (trailers: IncomingHttpHeaders) => {
      reached.trailers = trailers
    })
    if (upstream.handle !== null) return upstream.handle(stream, reached)
    stream.on('data', (chunk: Buffer) => {
      reached.body += chunk.toString('latin1')
    })
    stream.on('end', () => {
      if (stream.destroyed || stream.closed) return
      stream.respond({ ':status': 200, 'content-type': 'text/plain' })
      stream.end(`got ${reached.body}`)
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const upstream: Http2Upstream = {
    port: (server.address() as AddressInfo).port,
    reached: [],
    sessions,
    handle: null,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        for (const session of sessions) session.destroy()
      }),
  }
  return upstream
}
