/** Network addresses: one text for each, the networks that an operator names, and what counts as one client. */
import { BlockList, isIP } from 'node:net'
import ipaddr from 'ipaddr.js'

export type Networks = { readonly has: (address: string) => boolean }
export const NO_NETWORKS: Networks = { has: () => false }

const MAPPED = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i
const GROUP_BITS = 16
/** Prefix length of an IPv6 client: a subscriber has at least a /64 (RFC 6177 section 2), so each /64 counts as one client. */
const CLIENT_BITS = 64

/**
 * Reads an IPv6 address without its zone. The URL parser first writes it in hexadecimal, because ipaddr.js reads `::192.0.2.1` as
 * a mapped IPv4 address.
 */
const readIpv6 = (text: string): ipaddr.IPv6 =>
  ipaddr.IPv6.parse(new URL(`http://[${text.replace(/%.*$/, '')}]`).hostname.slice(1, -1))

/** The address in one canonical form: IPv6 by RFC 5952 without a zone; IPv4 also for IPv4 mapped into IPv6. Null: no address. */
export function parseAddress(text: string): string | null {
  const version = isIP(text)
  if (version === 4) return text
  if (version === 0) return null
  // A listener for both families reports clients of IPv4 in this form.
  const mapped = MAPPED.exec(text)?.[1]
  if (mapped !== undefined) return mapped
  const address = readIpv6(text)
  return (address.isIPv4MappedAddress() ? address.toIPv4Address() : address).toString()
}

/** The client that the limits count together: an IPv4 address, or the /64 of an IPv6 address. */
export function clientOf(address: string): string {
  if (isIP(address) !== 6) return address
  const network = readIpv6(address)
    .parts.slice(0, CLIENT_BITS / GROUP_BITS)
    .map((group) => group.toString(16))
  return `${network.join(':')}::/${CLIENT_BITS}`
}

export type Network = { readonly address: string; readonly bits: number }

/** An address or a CIDR block. Throws Error with a message that continues its text. */
export function parseNetwork(text: string): Network {
  const [before = '', prefix, ...more] = text.split('/')
  const version = isIP(before)
  const address = parseAddress(before)
  if (address === null || before.includes('%') || more.length > 0) throw new Error('is no IP address and no CIDR block')
  const given = version === 4 ? 32 : 128
  if (prefix !== undefined && !/^(?:0|[1-9]\d{0,2})$/.test(prefix)) throw new Error('has a prefix that is not a number')
  const wide = prefix === undefined ? given : Number(prefix)
  if (wide > given) throw new Error(`has a prefix of more than ${given} bits`)
  // A block of mapped addresses becomes a block of IPv4 addresses, because parseAddress turns mapped addresses into IPv4.
  const mapped = version === 6 && !address.includes(':')
  const bits = mapped ? wide - 96 : wide
  if (bits <= 0) throw new Error('would trust every address')
  if (!isFirst(address, bits)) throw new Error('has bits set behind its prefix')
  return { address, bits }
}

/** True for the first address of the block: all bits after the prefix are zero. */
const isFirst = (address: string, bits: number): boolean =>
  (address.includes(':') ? ipaddr.IPv6 : ipaddr.IPv4).networkAddressFromCIDR(`${address}/${bits}`).toString() ===
  address

/** A set of networks. The addresses that it is asked about must be results of `parseAddress`. */
export function createNetworks(networks: readonly Network[]): Networks {
  if (networks.length === 0) return NO_NETWORKS
  const list = new BlockList()
  const family = (address: string) => (address.includes(':') ? 'ipv6' : 'ipv4')
  for (const { address, bits } of networks) list.addSubnet(address, bits, family(address))
  return { has: (address) => isIP(address) !== 0 && list.check(address, family(address)) }
}
