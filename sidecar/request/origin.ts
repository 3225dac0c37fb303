/** Where a request comes from: its connection, or what proxies say that the operator trusts (RFC 7239, X-Forwarded-*). */
import { type Networks, parseAddress } from '../../pdp/process/addresses.ts'
import {
  type Said as Claimed,
  FIELDS_DIFFER,
  nearestStranger,
  plainSaid,
  standardSaid,
} from '../../pdp/process/client-address.ts'
import type { ClientRequest } from '../http/client.ts'
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

type Trust = { readonly direct: Origin; readonly trusted: Networks }

function readOrigin(raw: readonly string[], trust: Trust): Origin {
  const plain = plainSaid(raw)
  const standard = standardSaid(raw)
  if (plain === null || standard === null) {
    const claimed = plain ?? standard
    return claimed === null ? trust.direct : walk(claimed, trust)
  }
  // Proxies write one of the two and let the other pass, which anybody may have sent.
  const [one, other] = [walk(plain, trust), walk(standard, trust)]
  const sameHost = textOf(one.host ?? other.host) === textOf(other.host ?? one.host)
  const saysBoth = plain.schemes.length > 0 && standard.schemes.some((scheme) => scheme !== null)
  if (one.address !== other.address || !sameHost || (saysBoth && one.scheme !== other.scheme))
    throw new Error(FIELDS_DIFFER)
  return { ...one, host: one.host ?? other.host, scheme: plain.schemes.length > 0 ? one.scheme : other.scheme }
}

const textOf = (host: Authority | null): string => (host === null ? '' : `${host.hostname}:${host.port ?? ''}`)

function walk(claimed: Claimed, { direct, trusted }: Trust): Origin {
  const { address, proxyCount } = nearestStranger(claimed, { peer: direct.address, trusted })
  // A proxy that does not add to a list has replaced it.
  const ofFirst = (texts: readonly (string | null)[]): string | null =>
    texts[Math.max(0, texts.length - proxyCount)] ?? null
  const [scheme, host] = [ofFirst(claimed.schemes), ofFirst(claimed.hosts)]
  return { address, scheme: scheme === null ? direct.scheme : parseScheme(scheme), host: parseHost(host), fault: null }
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
