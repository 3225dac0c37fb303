/** Addresses to listen on, how to listen, and what to say when an address cannot be had. */
import { createServer, isIP, type Server } from 'node:net'
import { StartError } from './exit.ts'

export type ListenAddress = { readonly host: string; readonly port: number }

/** Every address of this machine, IPv6 and IPv4. */
export const ANY_HOST = '::'
const ANY_IPV4_HOST = '0.0.0.0'
/** What a system without IPv6 answers. A port that is taken is none of them: it must stay an error. */
const NO_IPV6: readonly unknown[] = ['EAFNOSUPPORT', 'EADDRNOTAVAIL', 'EPROTONOSUPPORT']

/** Parses `host:port`, `[v6]:port` or `:port` (all addresses of both families). Throws Error with a message that continues the variable's name. */
export function parseListenAddress(text: string): ListenAddress {
  const match = /^(?:\[([0-9A-Fa-f:.]+)\]|([A-Za-z0-9.-]*)):(\d{1,5})$/.exec(text)
  const port = Number(match?.[3])
  if (match === null || port > 65_535)
    throw new Error(`must be host:port, such as 127.0.0.1:8080, not ${JSON.stringify(text)}`)
  const v6 = match[1]
  if (v6 !== undefined && isIP(v6) !== 6)
    throw new Error(`has no IPv6 address in its brackets: ${JSON.stringify(text)}`)
  return { host: v6 ?? (match[2] || ANY_HOST), port }
}

/** True only for addresses that no other machine can reach. A name other than `localhost` is not trusted to be one. */
export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || (isIP(host) === 4 && host.startsWith('127.'))
}

/**
 * The address that a server can bind: `::` takes both families, and becomes `0.0.0.0` only where the system has no IPv6.
 * Left to itself, Node would also fall back when the IPv6 port is taken, and then share the port with a stranger.
 */
export async function bindableAddress(address: ListenAddress, probe = probeIpv6): Promise<ListenAddress> {
  if (address.host !== ANY_HOST) return address
  const code = await probe()
  return NO_IPV6.includes(code) ? { ...address, host: ANY_IPV4_HOST } : address
}

/** Null, or the code of the error, when a port of the system's choice is bound on `::`. */
function probeIpv6(): Promise<unknown> {
  return new Promise((resolve) => {
    const server = createServer()
    server.once('error', (err: NodeJS.ErrnoException) => resolve(err.code))
    server.listen(0, ANY_HOST, () => server.close(() => resolve(null)))
  })
}

/** Listens, and returns the address with the port that was given. Throws StartError when the address cannot be had. */
export async function listenOn(server: Server, what: string, wanted: ListenAddress): Promise<ListenAddress> {
  const { host, port } = await bindableAddress(wanted)
  await new Promise<void>((resolve, reject) => {
    const fail = (err: Error): void => reject(listenError(err, what, wanted))
    server.once('error', fail)
    server.listen(port, host, () => {
      server.off('error', fail)
      resolve()
    })
  })
  const bound = server.address()
  return { host, port: bound === null || typeof bound === 'string' ? port : bound.port }
}

/** A peer's address as it is written: a socket of both families shows IPv4 as `::ffff:10.0.0.1`. */
export function plainAddress(address: string | undefined): string {
  const mapped = /^::ffff:([\d.]+)$/i.exec(address ?? '')?.[1]
  return mapped ?? address ?? ''
}

/** Where this machine reaches what listens on the host. */
export const dialableHost = (host: string): string => (host === ANY_HOST || host === ANY_IPV4_HOST ? '127.0.0.1' : host)

/** An IPv6 address loses its brackets; any other host stays as it is. */
export const withoutBrackets = (host: string): string => host.replace(/^\[|\]$/g, '')

export const urlHost = ({ hostname }: URL): string => withoutBrackets(hostname)

/** The port of an http or https URL, or the default port of its scheme. */
export const urlPort = ({ port, protocol }: URL): number => Number(port || (protocol === 'https:' ? 443 : 80))

/** `host:port` with IPv6 in brackets. */
export function formatAddress({ host, port }: ListenAddress): string {
  return `${host.includes(':') ? `[${host}]` : host}:${port}`
}

/** One line for an operator about a failed listen; other errors come back as they are. */
export function listenError(err: unknown, what: string, address: ListenAddress): unknown {
  const code = err instanceof Error && 'code' in err ? err.code : undefined
  const place = `${what} cannot listen on ${formatAddress(address)}`
  if (code === 'EADDRINUSE') return new StartError(`${place}: another process uses this port`)
  if (code === 'EACCES') return new StartError(`${place}: the system does not allow this process to use this port`)
  if (code === 'EADDRNOTAVAIL') return new StartError(`${place}: this machine has no such address`)
  if (code === 'ENOTFOUND' || code === 'EAI_AGAIN') return new StartError(`${place}: the host name does not resolve`)
  return err
}
