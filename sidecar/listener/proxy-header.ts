/**
 * The PROXY protocol, versions 1 and 2: a load balancer that forwards TCP names the client in a line or block before the first byte
 * of a connection (haproxy.org/download/3.0/doc/proxy-protocol.txt).
 */
import type { Server } from 'node:http'
import type { Socket } from 'node:net'
import { Server as TlsServer } from 'node:tls'
import { parseAddress } from '../../pdp/shared/base/addresses.ts'

/** `address`: null when the balancer names no client, as in its own health checks. */
export type ProxyHeader =
  | { readonly kind: 'more' }
  | { readonly kind: 'bad' }
  | { readonly kind: 'whole'; readonly bytes: number; readonly address: string | null }

/** The longest line of version 1 (section 2.1). */
const LINE_BYTES_MAX = 107
const LINE = /^PROXY (?:UNKNOWN(?: [\x20-\x7e]*)?|TCP([46]) ([0-9A-Fa-f:.]+) ([0-9A-Fa-f:.]+) (\d{1,5}) (\d{1,5}))\r\n$/
const LINE_START = Buffer.from('PROXY ')
/** The first bytes of version 2 (section 2.2). */
const SIGNATURE = Buffer.from('\r\n\r\n\0\r\nQUIT\n')
const FIXED_BYTES = 16
/** The bound of a block of version 2: balancers add a few hundred bytes about themselves and TLS. */
const BLOCK_BYTES_MAX = 4_096
const [LOCAL, PROXY] = [0x20, 0x21]
/** Bytes of both addresses, and of one, by family: IPv4 and IPv6 over TCP, and unix sockets, which have no usable address. */
const FAMILIES: { readonly [family: number]: { readonly bytes: number; readonly addressBytes: number } } = {
  0: { bytes: 0, addressBytes: 0 },
  17: { bytes: 12, addressBytes: 4 },
  33: { bytes: 36, addressBytes: 16 },
  49: { bytes: 216, addressBytes: 0 },
}
const MORE: ProxyHeader = { kind: 'more' }
const BAD: ProxyHeader = { kind: 'bad' }
const PORT_MAX = 65_535

/** `first`: the bytes that came so far. */
export function readProxyHeader(first: Buffer): ProxyHeader {
  const begins = (start: Buffer): boolean => {
    const length = Math.min(first.length, start.length)
    return first.compare(start, 0, length, 0, length) === 0
  }
  if (begins(SIGNATURE)) return first.length < FIXED_BYTES ? MORE : readBlock(first)
  return begins(LINE_START) ? readLine(first) : BAD
}

function readLine(first: Buffer): ProxyHeader {
  const end = first.subarray(0, LINE_BYTES_MAX).indexOf('\r\n')
  if (end < 0) return first.length < LINE_BYTES_MAX ? MORE : BAD
  const bytes = end + 2
  const match = LINE.exec(first.toString('latin1', 0, bytes))
  if (match === null) return BAD
  const [, family, source, target, ...ports] = match
  if (family === undefined) return { kind: 'whole', bytes, address: null }
  const addresses = [source, target].map((text = '') =>
    text.includes(':') === (family === '6') ? parseAddress(text) : null,
  )
  const isGood = addresses.every((address) => address !== null) && ports.every((port) => Number(port) <= PORT_MAX)
  return isGood ? { kind: 'whole', bytes, address: addresses[0] ?? null } : BAD
}

function readBlock(first: Buffer): ProxyHeader {
  const bytes = FIXED_BYTES + first.readUInt16BE(14)
  if (bytes > BLOCK_BYTES_MAX) return BAD
  const [command, family] = [first[12], FAMILIES[first[13] ?? -1]]
  if (command !== LOCAL && command !== PROXY) return BAD
  // A health check of the balancer may have addresses, but they are ignored.
  if (command === PROXY && (family === undefined || bytes < FIXED_BYTES + family.bytes)) return BAD
  if (first.length < bytes) return MORE
  if (command === LOCAL || family === undefined || family.addressBytes === 0)
    return { kind: 'whole', bytes, address: null }
  const source = first.subarray(FIXED_BYTES, FIXED_BYTES + family.addressBytes)
  const text =
    family.addressBytes === 4 ? [...source].join('.') : (source.toString('hex').match(/.{4}/g) ?? []).join(':')
  return { kind: 'whole', bytes, address: parseAddress(text) }
}

export type ProxyHeaderOptions = {
  /** True for addresses that begin each connection with a header. */
  readonly isNeeded: (address: string | undefined) => boolean
  readonly timeoutMs: () => number
  /** Is called for a connection whose header is missing, wrong or late. */
  readonly onBad: (socket: Socket) => void
}

/**
 * Reads the header before any other code sees the connection, which then has the client's address: an empty one if the header names no
 * client, so that its requests do not count as the balancer's. Must be called after all others listen to `connection`.
 */
export function expectProxyHeaders(server: Server, options: ProxyHeaderOptions): { close(): void } {
  const waiting = new Set<Socket>()
  const listeners = server.listeners('connection')
  const handOn = (socket: Socket): void => {
    for (const listener of listeners) listener.call(server, socket)
  }
  // Addresses of clients by peer: a connection within TLS is another object with the same peer.
  const clients = new Map<string, string>()
  const peerOf = ({ remoteAddress, remotePort, localAddress }: Socket): string =>
    `${remoteAddress} ${remotePort} ${localAddress}`

  function name(socket: Socket, address: string): void {
    if (server instanceof TlsServer) {
      const peer = peerOf(socket)
      clients.set(peer, address)
      socket.once('close', () => clients.delete(peer))
    }
    Object.defineProperty(socket, 'remoteAddress', { value: address })
  }

  function read(socket: Socket): void {
    let first: Buffer = Buffer.alloc(0)
    const refuse = (): void => {
      settle()
      options.onBad(socket)
      socket.destroy()
    }
    const late = setTimeout(refuse, options.timeoutMs())
    const ignore = (): void => undefined
    function settle(): void {
      clearTimeout(late)
      waiting.delete(socket)
      socket.off('data', onData).off('error', ignore).off('end', refuse).off('close', settle)
    }
    function onData(chunk: Buffer): void {
      first = first.length === 0 ? chunk : Buffer.concat([first, chunk])
      const header = readProxyHeader(first)
      if (header.kind === 'more') return
      if (header.kind === 'bad') return void refuse()
      settle()
      socket.pause()
      name(socket, header.address ?? '')
      if (first.length > header.bytes) socket.unshift(first.subarray(header.bytes))
      handOn(socket)
      // No resume for TLS, which reads the connection natively.
      if (!(server instanceof TlsServer)) socket.resume()
    }
    waiting.add(socket)
    socket.on('data', onData).on('error', ignore).on('end', refuse).on('close', settle)
  }

  server.removeAllListeners('connection')
  server.on('connection', (socket: Socket) => (options.isNeeded(socket.remoteAddress) ? read(socket) : handOn(socket)))
  if (server instanceof TlsServer)
    server.prependListener('secureConnection', (socket) => {
      const peer = peerOf(socket)
      const address = clients.get(peer)
      clients.delete(peer)
      if (address !== undefined) Object.defineProperty(socket, 'remoteAddress', { value: address })
    })
  return {
    close() {
      for (const socket of waiting) socket.destroy()
    },
  }
}
