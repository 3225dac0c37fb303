/**
 * Moves a token to Authorization from another field of the client, or from where a browser page puts it that cannot set fields. A page's
 * WebSocket sends the token as a subprotocol or as a cookie, its EventSource as a cookie.
 */

import { lowerAscii, trimBlanks } from '../../pdp/shared/base/blanks.ts'
import { hasOrigin } from '../http/cors.ts'
import { malformed, RequestError } from './errors.ts'
import { fieldValues, type InboundRequest } from './inbound.ts'

export type TokenFrom = {
  /** Lower-case names of fields that hold a token, with or without its scheme. */
  readonly header: readonly string[]
  /** True: a WebSocket sends it as `bearer, <token>` or `base64url.bearer.authorization.k8s.io.<token in base64url>`. */
  readonly subprotocol: boolean
  /** The name of the cookie that holds a token; null: no cookie does. */
  readonly cookie: string | null
}
type Rules = { readonly tokenFrom: TokenFrom | null; readonly origins: ReadonlySet<string> }
/** The protocol that the answer names if the service chooses none: a browser ends a connection whose answer names none of its own. */
export const BEARER_PROTOCOL = 'bearer'
const PROTOCOLS = 'sec-websocket-protocol'
const PLACES = new Set(['cookie', PROTOCOLS])
const KUBERNETES = 'base64url.bearer.authorization.k8s.io.'
/** Some gateways keep it before the token. */
const SCHEME = /^bearer +/i
/** Matches a token68 (RFC 9110 section 11.2). */
const TOKEN = /^[A-Za-z0-9._~+/-]+=*$/

/**
 * The request with its token in Authorization and nowhere else. Throws RequestError for two tokens, and for an announced token that is
 * missing. `refusal`: the reason why a page may not use its cookie here; null: it may.
 */
export function takeBrowserToken(
  request: InboundRequest,
  route: Rules,
  upgrade: boolean,
): { readonly request: InboundRequest; readonly refusal: RequestError | null } {
  const { tokenFrom } = route
  const isHere = (name: string): boolean => PLACES.has(name) || tokenFrom?.header.includes(name) === true
  if (tokenFrom === null || !request.names.some(isHere)) return { request, refusal: null }
  const kept = { raw: [] as string[], names: [] as string[] }
  const inFields: string[] = []
  const inProtocols: string[] = []
  const inCookies: string[] = []
  for (const [at, folded] of request.names.entries()) {
    const [name = '', value = ''] = [request.raw[2 * at], request.raw[2 * at + 1]]
    let rest: string | null = value
    // Names are compared exactly: a field with another spelling of the name is another field.
    if (tokenFrom.header.includes(name.toLowerCase())) {
      inFields.push(trimBlanks(value).replace(SCHEME, ''))
      continue
    }
    if (folded === 'cookie' && tokenFrom.cookie !== null) rest = withoutCookie(value, tokenFrom.cookie, inCookies)
    if (folded === PROTOCOLS && tokenFrom.subprotocol) rest = withoutProtocol(value, inProtocols)
    if (rest === null) continue
    kept.raw.push(name, rest)
    kept.names.push(folded)
  }
  if (inFields.length + inProtocols.length + inCookies.length === 0) return { request, refusal: null }
  const counts = upgrade || (request.method === 'GET' && isEventSource(request))
  const ofPage = counts ? [...(upgrade ? inProtocols : []), ...inCookies] : []
  const tokens = [...inFields, ...ofPage]
  const [token] = tokens
  if (token === undefined) return { request: { ...request, ...kept }, refusal: null }
  // Two tokens are refused: the sidecar could check one, and the service believe the other.
  if (tokens.length > 1 || request.authorization.length > 0)
    throw malformed('A request has one token: in Authorization, in another field, as a subprotocol or in a cookie')
  if (!TOKEN.test(token)) throw malformed('The token has a character that no token has')
  const refusal = counts && inCookies.length > 0 ? pageRefusal(request, route, upgrade) : null
  const credentials = `Bearer ${token}`
  const authorization = [credentials]
  const raw = [...kept.raw, 'authorization', credentials]
  return { request: { ...request, raw, names: [...kept.names, 'authorization'], authorization }, refusal }
}

/** True for a request that only a page's EventSource makes: forms, images and links never ask for exactly this type. */
const isEventSource = (request: InboundRequest): boolean =>
  lowerAscii(trimBlanks(fieldValues(request, 'accept').join())) === 'text/event-stream'

/**
 * Browsers send cookies with requests of every page. CORS does not cover WebSocket (RFC 6455 section 10.2), so the page's origin must
 * be one that the route names. A page of the same origin opens an event stream without Origin.
 */
function pageRefusal(request: InboundRequest, { origins }: Rules, upgrade: boolean): RequestError | null {
  const from = fieldValues(request, 'origin')
  const sites = fieldValues(request, 'sec-fetch-site')
  const isNamed = from.length === 1 && hasOrigin(origins, from[0] ?? '')
  const isOwn = !upgrade && from.length === 0 && sites.length === 1 && sites[0] === 'same-origin'
  if (isNamed || isOwn) return null
  const what = upgrade ? 'a connection' : 'an event stream'
  return new RequestError('origin_refused', `Only pages of ${[...origins].join(', ')} may open ${what} by a cookie`)
}

/** Matches every character except visible ASCII: some servers drop blanks or other bytes from a name. */
const INVISIBLE = /[^\x21-\x7e]/g

/** The Cookie field without this cookie; null: it is empty then. Throws RequestError for a name that a server could read as this one. */
function withoutCookie(value: string, name: string, tokens: string[]): string | null {
  const others: string[] = []
  for (const pair of value.split(';').map(trimBlanks)) {
    const at = pair.indexOf('=')
    const key = at < 0 ? pair : trimBlanks(pair.slice(0, at))
    if (lowerAscii(key.replace(INVISIBLE, '')) !== lowerAscii(name)) others.push(pair)
    else if (key === name && at >= 0) tokens.push(trimBlanks(pair.slice(at + 1)))
    else throw malformed(`There is a cookie whose name could be read as ${name}`)
  }
  return others.every((pair) => pair === '') ? null : others.join('; ')
}

/** The list of subprotocols without the token; null: it is empty then. */
function withoutProtocol(value: string, tokens: string[]): string | null {
  const protocols = value.split(',').map(trimBlanks)
  const others: string[] = []
  for (let at = 0; at < protocols.length; at += 1) {
    const protocol = protocols[at] ?? ''
    if (protocol.startsWith(KUBERNETES))
      tokens.push(Buffer.from(protocol.slice(KUBERNETES.length), 'base64url').toString('latin1'))
    else if (protocol === BEARER_PROTOCOL) {
      at += 1
      tokens.push(protocols[at] ?? '')
    } else others.push(protocol)
  }
  return others.length === 0 ? null : others.join(', ')
}
