/** Parses addresses to listen on, listens, and describes failures. */
import { createServer, isIP, type Server } from 'node:net'
import { messageOf } from '../base/error-message.ts'
import { ConfigError, StartError } from './exit.ts'

export type ListenAddress = { readonly host: string; readonly port: number }

/** Every address of this machine, IPv6 and IPv4. */
export const ANY_HOST = '::'
const ANY_IPV4_HOST = '0.0.0.0'
/** Error codes of a system without IPv6. EADDRINUSE is not one of them, because a port in use must stay an error. */
const NO_IPV6: readonly unknown[] = ['EAFNOSUPPORT', 'EADDRNOTAVAIL', 'EPROTONOSUPPORT']

/** Parses `host:port`, `[v6]:port` or `:port` (all addresses of both families). Throws Error with a message that continues the variable's name. */
export function parseListenAddress(text: string): ListenAddress {
  const match = /^(?:\[([0-9A-Fa-f:.]+)\]|([A-Za-z0-9.-]*)):(\d{1,5})$/.exec(text)
  const port = Number(match?.[3])
  if (match === null || port > 65_535)
    throw new Error(`must be host:port, such as 127.0.0.1:8080, not ${JSON.stringify(text)}`)
  const v6 = match[1]
  if (v6 !== undefined && isIP(v6) !== 6)
    throw new Error(`must have an IPv6 address in the brackets: ${JSON.stringify(text)}`)
  return { host: v6 ?? (match[2] || ANY_HOST), port }
}

/** The address that an option of a command line gives. Throws ConfigError. */
export function listenOption(text: string, option: string): ListenAddress {
  try {
    return parseListenAddress(text)
  } catch (err) {
    throw new ConfigError([`${option} ${messageOf(err)}`])
  }
}

/** True only for addresses that no other machine can reach. Names other than `localhost` are not trusted. */
export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || (isIP(host) === 4 && host.startsWith('127.'))
}

/**
 * The address to bind: `::` accepts both families, and becomes `0.0.0.0` only on a system without IPv6. By default Node
 * would also fall back when the IPv6 port is in use, and then share the port number with another process.
 */
export async function bindableAddress(address: ListenAddress, probe = probeIpv6): Promise<ListenAddress> {
  if (address.host !== ANY_HOST) return address
  const code = await probe()
  return NO_IPV6.includes(code) ? { ...address, host: ANY_IPV4_HOST } : address
}

/** Binds any free port on `::`. Returns null or the error code. */
function probeIpv6(): Promise<unknown> {
  return new Promise((resolve) => {
    const server = createServer()
    server.once('error', (err: NodeJS.ErrnoException) => resolve(err.code))
    server.listen(0, ANY_HOST, () => server.close(() => resolve(null)))
  })
}

/** Listens, and returns the bound address. Throws StartError when it cannot listen. */
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

/** A peer's address in its usual form: dual-stack sockets show IPv4 as `::ffff:10.0.0.1`. */
export function plainAddress(address: string | undefined): string {
  const mapped = /^::ffff:([\d.]+)$/i.exec(address ?? '')?.[1]
  return mapped ?? address ?? ''
}

/** The host to connect to from this machine for a listen address. */
export const dialableHost = (host: string): string => (host === ANY_HOST || host === ANY_IPV4_HOST ? '127.0.0.1' : host)

/** An IPv6 address loses its brackets; any other host stays as it is. */
export const withoutBrackets = (host: string): string => host.replace(/^\[|\]$/g, '')

export const urlHost = ({ hostname }: URL): string => withoutBrackets(hostname)

/** The port of an http or https URL, or the default port of its scheme. */
export const urlPort = ({ port, protocol }: URL): number => Number(port || (protocol === 'https:' ? 443 : 80))

/** The address as `host:port`, with brackets around IPv6. */
export function formatAddress({ host, port }: ListenAddress): string {
  return `${host.includes(':') ? `[${host}]` : host}:${port}`
}

/** Converts a failure to listen to a StartError with one line for an operator; returns other errors unchanged. */
export function listenError(err: unknown, what: string, address: ListenAddress): unknown {
  const code = err instanceof Error && 'code' in err ? err.code : undefined
  const place = `${what} cannot listen on ${formatAddress(address)}`
  if (code === 'EADDRINUSE') return new StartError(`${place}: another process uses this port`)
  if (code === 'EACCES') return new StartError(`${place}: the system does not allow this process to use this port`)
  if (code === 'EADDRNOTAVAIL') return new StartError(`${place}: this machine has no such address`)
  if (code === 'ENOTFOUND' || code === 'EAI_AGAIN') return new StartError(`${place}: the host name does not resolve`)
  return err
}

/** Adds to the error of a listener the setting that gives it another address. */
export async function namedBySetting<T>(setting: string, listener: Promise<T>): Promise<T> {
  try {
    return await listener
  } catch (err) {
    throw err instanceof StartError ? new StartError(`${err.message}. Choose another address by ${setting}`) : err
  }
}
