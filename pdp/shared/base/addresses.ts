/** Network addresses: one text for each, the networks that an operator names, and what counts as one client. */
import { BlockList, isIP } from 'node:net'

export type Networks = { readonly has: (address: string) => boolean }
export const NO_NETWORKS: Networks = { has: () => false }

const MAPPED = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i
const GROUPS = 8
const GROUP_BITS = 16
/** What one subscriber has at least (RFC 6177 section 2): all of it is one client. */
const CLIENT_BITS = 64

/** IPv6 in its one form (RFC 5952) without a zone, and IPv4 that is mapped into it (RFC 4291 section 2.5.5.2) as IPv4. Null: no address. */
export function parseAddress(text: string): string | null {
  const version = isIP(text)
  if (version === 4) return text
  if (version === 0) return null
  const mapped = MAPPED.exec(text)?.[1]
  if (mapped !== undefined) return mapped
  const groups = groupsOf(text.replace(/%.*$/, ''))
  if (groups.slice(0, 5).every((group) => group === 0) && groups[5] === 0xffff) return toIpv4(groups)
  return new URL(`http://[${textOf(groups)}]`).hostname.slice(1, -1)
}

const toIpv4 = (groups: readonly number[]): string =>
  groups
    .slice(6)
    .flatMap((group) => [group >> 8, group & 0xff])
    .join('.')

/** Of an IPv6 address without a zone. */
function groupsOf(address: string): number[] {
  const hexadecimal = address.replace(/(\d+)\.(\d+)\.(\d+)\.(\d+)$/, (_, ...bytes: string[]) => {
    const [a = 0, b = 0, c = 0, d = 0] = bytes.slice(0, 4).map(Number)
    return `${(a * 256 + b).toString(16)}:${(c * 256 + d).toString(16)}`
  })
  const [start = '', end] = hexadecimal.split('::')
  const parse = (part: string): number[] => (part === '' ? [] : part.split(':').map((one) => Number.parseInt(one, 16)))
  if (end === undefined) return parse(start)
  const [before, after] = [parse(start), parse(end)]
  return [...before, ...Array<number>(GROUPS - before.length - after.length).fill(0), ...after]
}

const textOf = (groups: readonly number[]): string => groups.map((group) => group.toString(16)).join(':')

/** Whom the limits for one client count together: an IPv4 address, or the /64 of an IPv6 address. */
export function clientOf(address: string): string {
  if (!address.includes(':') || isIP(address) !== 6) return address
  return `${textOf(groupsOf(address).slice(0, CLIENT_BITS / GROUP_BITS))}::/${CLIENT_BITS}`
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
  // A mapped block names IPv4 addresses, as those that connect over it are called here.
  const mapped = version === 6 && !address.includes(':')
  const bits = mapped ? wide - 96 : wide
  if (bits <= 0) throw new Error('would trust every address')
  if (!isFirst(address, bits)) throw new Error('has bits set behind its prefix')
  return { address, bits }
}

/** The bits behind the prefix are all zero. */
function isFirst(address: string, bits: number): boolean {
  const all = address.includes(':')
    ? groupsOf(address).map((group) => group.toString(2).padStart(GROUP_BITS, '0'))
    : address.split('.').map((byte) => Number(byte).toString(2).padStart(8, '0'))
  return !all.join('').slice(bits).includes('1')
}

/** Addresses are asked about as `parseAddress` gives them. */
export function createNetworks(networks: readonly Network[]): Networks {
  if (networks.length === 0) return NO_NETWORKS
  const list = new BlockList()
  const family = (address: string) => (address.includes(':') ? 'ipv6' : 'ipv4')
  for (const { address, bits } of networks) list.addSubnet(address, bits, family(address))
  return { has: (address) => isIP(address) !== 0 && list.check(address, family(address)) }
}
