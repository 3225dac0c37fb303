/** The open connections of the data port, counted for each client address. */
import type { Server } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { clientOf, parseAddress } from '../../pdp/shared/base/addresses.ts'

type Opening = {
  /** `own`: what the client has open already, of `used` in all. */
  readonly mayOpen: (address: string, open: { readonly own: number; readonly used: number }) => boolean
  readonly onFull: (socket: Socket, reason: string) => void
}

/** All open sockets, including those before protocol detection and after an upgrade. */
export function openSockets(server: Server, { mayOpen, onFull }: Opening): ReadonlySet<Socket> {
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

/** The peer's address; empty when the peer is gone. */
export function addressOf(connection: Duplex): string {
  const address = 'remoteAddress' in connection ? connection.remoteAddress : null
  return typeof address === 'string' ? (parseAddress(address) ?? address) : ''
}
