/** Services whose streams last until somebody ends them: event streams and WebSocket, and gRPC. */
import { createServer, type ServerResponse } from 'node:http'
import { createServer as createHttp2Server, type ServerHttp2Stream } from 'node:http2'
import type { AddressInfo, Server as NetServer } from 'node:net'
import { type WebSocket, WebSocketServer } from 'ws'

export type Services = {
  readonly port: number
  readonly grpcPort: number
  /** Sends a byte on every open stream. */
  tick(): void
  stop(): void
}

const STREAMS_MAX = 100_000
/** A gRPC message of one byte. */
const MESSAGE = Buffer.from([0, 0, 0, 0, 1, 65])

export async function startServices(): Promise<Services> {
  const events = new Set<ServerResponse>()
  const sockets = new Set<WebSocket>()
  const calls = new Set<ServerHttp2Stream>()
  const server = createServer((req, res) => {
    if (req.url?.startsWith('/streams/') !== true) return void res.end('invoice')
    res.writeHead(200, { 'content-type': 'text/event-stream' }).write('data: 0\n\n')
    events.add(res)
    res.on('close', () => events.delete(res))
  })
  new WebSocketServer({ server }).on('connection', (socket) => {
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
    socket.on('error', () => undefined)
    socket.send('0')
  })
  const rpc = createHttp2Server({ settings: { maxConcurrentStreams: STREAMS_MAX } })
  rpc.on('stream', (stream) => {
    stream.respond({ ':status': 200, 'content-type': 'application/grpc' })
    stream.write(MESSAGE)
    calls.add(stream)
    stream.on('close', () => calls.delete(stream))
    stream.on('error', () => undefined)
  })
  return {
    port: await listening(server),
    grpcPort: await listening(rpc),
    tick() {
      for (const one of events) one.write('data: 1\n\n')
      for (const one of sockets) one.send('1')
      for (const one of calls) if (!one.destroyed) one.write(MESSAGE)
    },
    stop() {
      server.closeAllConnections()
      server.close()
      rpc.close()
    },
  }
}

async function listening(server: NetServer): Promise<number> {
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve))
  return (server.address() as AddressInfo).port
}
