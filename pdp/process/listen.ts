/** Addresses to listen on, and what to say when one cannot be had. */
import { isIP } from 'node:net'
import { StartError } from './exit.ts'

export type ListenAddress = { readonly host: string; readonly port: number }

/** Parses `host:port`, `[v6]:port` or `:port` (all addresses). Throws Error with a message that continues the variable's name. */
export function parseListenAddress(text: string): ListenAddress {
  const match = /^(?:\[([0-9A-Fa-f:.]+)\]|([A-Za-z0-9.-]*)):(\d{1,5})$/.exec(text)
  const port = Number(match?.[3])
  if (match === null || port > 65_535)
    throw new Error(`must be host:port, such as 127.0.0.1:8080, not ${JSON.stringify(text)}`)
  const v6 = match[1]
  if (v6 !== undefined && isIP(v6) !== 6)
    throw new Error(`has no IPv6 address in its brackets: ${JSON.stringify(text)}`)
  return { host: v6 ?? (match[2] || '0.0.0.0'), port }
}

/** True only for addresses that no other machine can reach. A name other than `localhost` is not trusted to be one. */
export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || (isIP(host) === 4 && host.startsWith('127.'))
}

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
