/** Where a request comes from: its connection, or what proxies say that the operator trusts (RFC 7239, X-Forwarded-*). */
import type { ClientRequest } from '../http/client.ts'
import { type Networks, parseAddress } from './addresses.ts'
import { parseForwarded } from './forwarded.ts'
import { type Authority, parseAuthority } from './target.ts'

export type Origin = {
  /** Of the client; when a trusted proxy does not know it, of the proxy that does not. */
  readonly address: string
  readonly scheme: 'http' | 'https'
  /** What the client asked the first trusted proxy for; null: none says it. */
  readonly host: Authority | null
  /** What makes the word of a trusted proxy unusable; null: nothing. */
  readonly fault: string | null
}
/** Texts as they were sent, from the client's side to ours; null: that field is absent. */
type Said = {
  readonly addresses: readonly (string | null)[]
  readonly schemes: readonly (string | null)[]
  readonly hosts: readonly (string | null)[]
}

type Asked = Pick<ClientRequest, 'raw' | 'peerAddress' | 'scheme'>

/** `trusted`: null when no proxy is. Never throws: a fault is for the pipeline to refuse, and the log wants an address in any case. */
export function originOf(client: Asked, trusted: Networks | null): Origin {
  const connection = client.peerAddress()
  const peer = parseAddress(connection) ?? connection
  const direct: Origin = { address: peer, scheme: client.scheme, host: null, fault: null }
  if (trusted === null || !trusted.has(peer)) return direct
  try {
    return readOrigin(client.raw, { direct, trusted })
  } catch (err) {
    return { ...direct, fault: err instanceof Error ? err.message : 'A trusted proxy says what cannot be read' }
  }
}

type Standing = { readonly direct: Origin; readonly trusted: Networks }

function readOrigin(raw: readonly string[], standing: Standing): Origin {
  const plain = plainSaid(raw)
  const standard = standardSaid(raw)
  if (plain === null || standard === null) {
    const said = plain ?? standard
    return said === null ? standing.direct : walk(said, standing)
  }
  // Proxies write one of the two and let the other pass, which anybody may have sent.
  const [one, other] = [walk(plain, standing), walk(standard, standing)]
  const sameHost = textOf(one.host ?? other.host) === textOf(other.host ?? one.host)
  const saysBoth = plain.schemes.length > 0 && standard.schemes.some((scheme) => scheme !== null)
  if (one.address !== other.address || !sameHost || (saysBoth && one.scheme !== other.scheme))
    throw new Error('Forwarded and X-Forwarded-* of a trusted proxy differ')
  return { ...one, host: one.host ?? other.host, scheme: plain.schemes.length > 0 ? one.scheme : other.scheme }
}

const textOf = (host: Authority | null): string => (host === null ? '' : `${host.hostname}:${host.port ?? ''}`)

/** From the nearest proxy to the first address that is no trusted proxy's. */
function walk({ addresses, schemes, hosts }: Said, { direct, trusted }: Standing): Origin {
  let address = direct.address
  let proxyCount = 1
  for (let at = addresses.length - 1; at >= 0; at -= 1) {
    const node = parseNode(addresses[at] ?? null)
    if (node === null) break
    address = node
    if (!trusted.has(node)) break
    proxyCount += 1
  }
  // A proxy that does not add to a list has replaced it.
  const ofFirst = (said: readonly (string | null)[]): string | null =>
    said[Math.max(0, said.length - proxyCount)] ?? null
  const [scheme, host] = [ofFirst(schemes), ofFirst(hosts)]
  return { address, scheme: scheme === null ? direct.scheme : parseScheme(scheme), host: parseHost(host), fault: null }
}

const NODE = /^(?:\[([0-9A-Fa-f:.]+)\]|(\d+\.\d+\.\d+\.\d+))(?::(?:\d{1,5}|_[A-Za-z0-9._-]+))?$/

/** RFC 7239 section 6, and the bare IPv6 addresses of X-Forwarded-For. Null: whoever says it does not know. */
function parseNode(text: string | null): string | null {
  if (text === null || /^(?:unknown|_[A-Za-z0-9._-]+)(?::\S*)?$/i.test(text)) return null
  const match = NODE.exec(text)
  const address = parseAddress(match?.[1] ?? match?.[2] ?? text)
  if (address === null) throw new Error('A trusted proxy names a client by what is no IP address')
  return address
}

const SCHEMES: { readonly [name: string]: 'http' | 'https' } = {
  http: 'http',
  https: 'https',
  ws: 'http',
  wss: 'https',
}

function parseScheme(text: string): 'http' | 'https' {
  const scheme = SCHEMES[text.toLowerCase()]
  if (scheme === undefined) throw new Error('A trusted proxy names a scheme that is neither http nor https')
  return scheme
}

function parseHost(text: string | null): Authority | null {
  return text === null ? null : parseAuthority(text)
}

/** Null when none of the fields is there. */
function plainSaid(raw: readonly string[]): Said | null {
  const said = { addresses: list(raw, 'x-forwarded-for'), schemes: list(raw, 'x-forwarded-proto') }
  const hosts = list(raw, 'x-forwarded-host')
  return said.addresses.length + said.schemes.length + hosts.length === 0 ? null : { ...said, hosts }
}

function standardSaid(raw: readonly string[]): Said | null {
  const elements = values(raw, 'forwarded').flatMap(parseForwarded)
  if (elements.length === 0) return null
  const each = (name: string): (string | null)[] => elements.map((element) => element.get(name) ?? null)
  return { addresses: each('for'), schemes: each('proto'), hosts: each('host') }
}

const list = (raw: readonly string[], name: string): string[] =>
  values(raw, name).flatMap((value) => value.split(',').map((member) => member.trim()))

function values(raw: readonly string[], name: string): string[] {
  const found: string[] = []
  for (let at = 0; at + 1 < raw.length; at += 2)
    if (raw[at]?.length === name.length && raw[at]?.toLowerCase() === name) found.push(raw[at + 1] ?? '')
  return found
}
