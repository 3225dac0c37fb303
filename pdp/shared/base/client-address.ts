/** Finds the client of a request by the fields of proxies that the operator trusts (RFC 7239, X-Forwarded-For). */

import { type Network, type Networks, parseAddress, parseNetwork } from './addresses.ts'
import { trimBlanks } from './blanks.ts'
import { messageOf } from './error-message.ts'

/** The values of one kind of forwarding field, from the client's end on; null where a proxy gave no value. */
export type ClaimedChain = {
  readonly addresses: readonly (string | null)[]
  readonly schemes: readonly (string | null)[]
  readonly hosts: readonly (string | null)[]
}

/** The chain of the fields X-Forwarded-*; null without these fields. */
export function plainSaid(raw: readonly string[]): ClaimedChain | null {
  const said = { addresses: list(raw, 'x-forwarded-for'), schemes: list(raw, 'x-forwarded-proto') }
  const hosts = list(raw, 'x-forwarded-host')
  return said.addresses.length + said.schemes.length + hosts.length === 0 ? null : { ...said, hosts }
}

/** The chain of the field Forwarded; null without it. Throws Error when it cannot be parsed. */
export function standardSaid(raw: readonly string[]): ClaimedChain | null {
  const elements = values(raw, 'forwarded').flatMap(parseForwarded)
  if (elements.length === 0) return null
  const each = (name: string): (string | null)[] => elements.map((element) => element.get(name) ?? null)
  return { addresses: each('for'), schemes: each('proto'), hosts: each('host') }
}

/**
 * Goes from the nearest proxy to the first address that is no trusted proxy's. Throws Error for a value that is no address. `peer`: the
 * trusted proxy that is connected to us. `proxyCount`: how many trusted proxies are between that address and us.
 */
export function nearestStranger(
  { addresses }: ClaimedChain,
  { peer, trusted }: { readonly peer: string; readonly trusted: Networks },
): { readonly address: string; readonly proxyCount: number } {
  let address = peer
  let proxyCount = 1
  for (let at = addresses.length - 1; at >= 0; at -= 1) {
    const node = parseNode(addresses[at] ?? null)
    if (node === null) break
    address = node
    if (!trusted.has(node)) break
    proxyCount += 1
  }
  return { address, proxyCount }
}

export const FIELDS_DIFFER = 'Forwarded and X-Forwarded-* of a trusted proxy differ'

/** The client's address, or the address of a proxy that does not report it. With invalid fields, the peer counts as the client. */
export function clientAddress(
  raw: readonly string[],
  { remoteAddress, trusted }: { readonly remoteAddress: string; readonly trusted: Networks },
): string {
  const peer = parseAddress(remoteAddress) ?? remoteAddress
  if (!trusted.has(peer)) return peer
  try {
    // Only fields that agree are used: a proxy writes one of the two kinds, and forwards the other as the client sent it.
    const said = [plainSaid(raw), standardSaid(raw)].filter((one) => one !== null)
    const [address = peer, other = address] = said.map((one) => nearestStranger(one, { peer, trusted }).address)
    return address === other ? address : peer
  } catch {
    return peer
  }
}

/** Addresses and CIDR blocks with commas between. Throws Error with a message that continues the setting's name. */
export function parseNetworks(text: string): readonly Network[] {
  return text.split(',').map((member) => {
    const one = member.trim()
    try {
      return parseNetwork(one)
    } catch (err) {
      throw new Error(
        `must list addresses or CIDR blocks with commas between; ${JSON.stringify(one)} ${messageOf(err)}`,
      )
    }
  })
}

const NODE = /^(?:\[([0-9A-Fa-f:.]+)\]|(\d+\.\d+\.\d+\.\d+))(?::(?:\d{1,5}|_[A-Za-z0-9._-]+))?$/

/** Reads a node (RFC 7239 section 6), or a bare IPv6 address of X-Forwarded-For. Null: the proxy does not know the address. */
function parseNode(text: string | null): string | null {
  if (text === null || /^(?:unknown|_[A-Za-z0-9._-]+)(?::[!-~]*)?$/i.test(text)) return null
  const match = NODE.exec(text)
  const address = parseAddress(match?.[1] ?? match?.[2] ?? text)
  if (address === null) throw new Error('A trusted proxy names a client by something that is not an IP address')
  return address
}

const list = (raw: readonly string[], name: string): string[] =>
  values(raw, name).flatMap((value) => value.split(',').map(trimBlanks))

function values(raw: readonly string[], name: string): string[] {
  const found: string[] = []
  for (let at = 0; at + 1 < raw.length; at += 2)
    if (raw[at]?.length === name.length && raw[at]?.toLowerCase() === name) found.push(raw[at + 1] ?? '')
  return found
}

const FORWARDED_TOKEN = "([!#$%&'*+.^_`|~0-9A-Za-z-]+)"
// Blanks can match in one way only, because backtracking over long runs of them would take too long.
const FORWARDED_PAIR = new RegExp(
  `[ \\t]*(?:${FORWARDED_TOKEN}=(?:${FORWARDED_TOKEN}|"((?:[^"\\\\]|\\\\.)*)")[ \\t]*)?([;,]|$)`,
  'y',
)

/**
 * The parameters of each element of a Forwarded field (RFC 7239 section 4), by lower-case name. Throws Error for text outside the grammar,
 * and for a repeated parameter.
 */
function parseForwarded(value: string): ReadonlyMap<string, string>[] {
  const elements: ReadonlyMap<string, string>[] = []
  let element = new Map<string, string>()
  FORWARDED_PAIR.lastIndex = 0
  for (;;) {
    const match = FORWARDED_PAIR.exec(value)
    if (match === null) throw new Error('The Forwarded field of a trusted proxy cannot be read')
    const [, name, token, quoted, end] = match
    if (name !== undefined) {
      const key = name.toLowerCase()
      if (element.has(key)) throw new Error('The Forwarded field of a trusted proxy has one parameter twice')
      element.set(key, token ?? (quoted ?? '').replace(/\\(.)/g, '$1'))
    }
    if (end === ';') continue
    elements.push(element)
    if (end === '') return elements
    element = new Map()
  }
}
