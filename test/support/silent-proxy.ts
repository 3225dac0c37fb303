/** A TCP proxy that can fall silent as a broken network does: connections stay open, new ones open, and nothing passes. */
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'

export type SilentProxy = {
  readonly port: number
  /** Connections that were opened so far. */
  readonly connectionsCount: number
  /** Nothing passes any more, on old connections and new ones, and none of them is closed by the proxy. */
  silence(): void
  /** Connections that are opened from now on pass everything. Those from before stay silent for ever. */
  heal(): void
  close(): Promise<void>
}

export async function startSilentProxy(target: {
  readonly host?: string
  readonly port: number
}): Promise<SilentProxy> {
  const pairs = new Set<readonly [Socket, Socket]>()
  const sockets = new Set<Socket>()
  let silent = false
  let connectionsCount = 0

  const keep = (socket: Socket): Socket => {
    sockets.add(socket)
    socket.on('error', () => undefined)
    socket.once('close', () => sockets.delete(socket))
    return socket
  }
  const server = createServer((client) => {
    connectionsCount += 1
    keep(client)
    if (silent) return // accepted, and never heard of again
    const upstream = keep(connect(target.port, target.host ?? '127.0.0.1'))
    const pair = [client, upstream] as const
    pairs.add(pair)
    client.pipe(upstream)
    upstream.pipe(client)
    client.once('close', () => {
      pairs.delete(pair)
      if (!silent) upstream.destroy()
    })
    upstream.once('close', () => void (silent || client.destroy()))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))

  return {
    port: (server.address() as AddressInfo).port,
    get connectionsCount() {
      return connectionsCount
    },
    silence() {
      silent = true
      for (const [client, upstream] of pairs) {
        client.unpipe(upstream)
        upstream.unpipe(client)
        for (const socket of [client, upstream]) socket.removeAllListeners('close').resume()
      }
      pairs.clear()
    },
    heal() {
      silent = false
    },
    async close() {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()))
      for (const socket of sockets) socket.destroy()
      await closed
    },
  }
}
