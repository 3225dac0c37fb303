/** The origin of a request: its connection, or what trusted proxies report (RFC 7239, X-Forwarded-*). */
import { type Networks, parseAddress } from '../../pdp/shared/base/addresses.ts'
import {
  type ClaimedChain as Claimed,
  FIELDS_DIFFER,
  nearestStranger,
  plainSaid,
  standardSaid,
} from '../../pdp/shared/base/client-address.ts'
import { messageOf } from '../../pdp/shared/base/error-message.ts'
import type { ClientRequest } from '../http/client-request.ts'
import { type Authority, parseAuthority } from './target.ts'

export type Origin = {
  /** The client's address; if a trusted proxy did not report it, the address of that proxy. */
  readonly address: string
  readonly scheme: 'http' | 'https'
  /** The host that the client requested from the first trusted proxy; null: not reported. */
  readonly host: Authority | null
  /** The reason for which a trusted proxy's fields are unusable; null: they are usable, or absent. */
  readonly fault: string | null
}

/** The origin; `trusted` null: no proxy is trusted. Never throws: the log always needs an address, and the pipeline refuses a fault. */
export function originOf(
  client: Pick<ClientRequest, 'raw' | 'peerAddress' | 'scheme'>,
  trusted: Networks | null,
): Origin {
  const connection = client.peerAddress()
  const peer = parseAddress(connection) ?? connection
  const direct: Origin = { address: peer, scheme: client.scheme, host: null, fault: null }
  if (trusted === null || !trusted.has(peer)) return direct
  try {
    return readOrigin(client.raw, { direct, trusted })
  } catch (err) {
    return { ...direct, fault: messageOf(err) }
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
  // Only what both fields report counts: a proxy writes one of the two, and forwards the other, which any client may have forged. It adds
  // its own address to both.
  const [one, other] = [walk(plain, trust), walk(standard, trust)]
  const [saysHost, saysScheme] = [one.host !== null && other.host !== null, saysSchemes(plain) && saysSchemes(standard)]
  const differs = (saysHost && textOf(one.host) !== textOf(other.host)) || (saysScheme && one.scheme !== other.scheme)
  if (one.address !== other.address || differs) throw new Error(FIELDS_DIFFER)
  return { ...one, host: saysHost ? one.host : null, scheme: saysScheme ? one.scheme : trust.direct.scheme }
}

const saysSchemes = ({ schemes }: Claimed): boolean => schemes.some((scheme) => scheme !== null)

const textOf = (host: Authority | null): string => (host === null ? '' : `${host.hostname}:${host.port ?? ''}`)

function walk(claimed: Claimed, { direct, trusted }: Trust): Origin {
  const { address, proxyCount } = nearestStranger(claimed, { peer: direct.address, trusted })
  // A list with fewer items than proxies was replaced by one of them, so its first item counts.
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
  if (scheme === undefined) throw new Error('A trusted proxy reports a scheme that is neither http nor https')
  return scheme
}

function parseHost(text: string | null): Authority | null {
  return text === null ? null : parseAuthority(text)
}
