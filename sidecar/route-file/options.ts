/** Reads the options of a route besides its check: path encoding, queries, bodies, WebSocket upgrade and origins, mode, and step-up. */
import { isMap, type Node } from 'yaml'
import { LIKE_OWN } from '../http/cookies.ts'
import type { MovedPaths, UpstreamEntry } from '../http/upstream-entry.ts'
import type { TokenFrom } from '../request/browser-token.ts'
import { parsePattern } from '../routes/patterns.ts'
import type { Route, RouteOptions } from '../routes/route.ts'
import type { StepUp } from '../routes/step-up.ts'
import { ACR, AGE_SECONDS, BODIES, BODY_BYTES, COOKIE, MODES, type ROUTE, STEP_UP, TOKEN_FROM } from './format.ts'
import { TIME } from './limits.ts'
import { readCors, STARRED } from './words/cors.ts'
import { fieldIssue } from './words/identity-headers.ts'
import type { YamlReader } from './words/yaml-reader.ts'

export type OptionDefaults = Pick<RouteOptions, 'forwardToken' | 'shadow' | 'origins' | 'cors' | keyof MovedPaths> & {
  /** The issuers and audiences that the file names; null: they have errors. */
  readonly known: { readonly issuers: readonly string[] | null; readonly audiences: readonly string[] | null }
  /** The organization in which the PDP is asked about guests; null: the file has none. */
  readonly guestOrganization: string | null
  /** Returns null for the service of the file. */
  readonly readUpstream: (node: Node) => UpstreamEntry | null
  /** True: the service gets the token as it did before shadow mode, since the file does not say otherwise. */
  readonly keepsToken?: boolean
}
/** The defaults that also routes without options have. */
type PlainDefaults = Omit<OptionDefaults, 'known' | 'readUpstream'>

/** Copies the members by name: the caller's object has more, which would stay in memory as long as the route. */
export const plainOptions = ({
  forwardToken,
  shadow,
  origins,
  cors,
  stripPath,
  addPath,
  keepsToken = false,
}: PlainDefaults): RouteOptions => ({
  forwardToken: forwardToken || (shadow && keepsToken),
  shadow,
  origins,
  cors,
  stripPath,
  addPath,
  encodedSlash: false,
  semicolon: false,
  query: false,
  body: null,
  bodyBytesMax: null,
  websocket: false,
  tokenFrom: null,
  stepUp: null,
  issuers: null,
  audience: null,
  upstream: null,
  upstreamHeadersMs: null,
  signIn: true,
  guests: null,
  answer: null,
  context: [],
})

/**
 * The route for requests that match no route. Null: the file, or one of its routes, enforces checks, and an unreadable request could be
 * meant for such a route.
 */
export function shadowRouteOf(routes: readonly Route[], defaults: PlainDefaults): Route | null {
  const pattern = parsePattern('/**')
  if (!defaults.shadow || typeof pattern === 'string' || routes.some(enforces)) return null
  const named = { id: '', host: null, hostParameter: null, method: '*', pattern }
  return { ...plainOptions({ ...defaults, cors: null }), ...named, check: null, withIdentity: false, mcp: null }
}

const enforces = ({ check, shadow }: Pick<Route, 'check' | 'shadow'>): boolean => check !== null && !shadow

/** The error for a path that does not begin with `strip_path`: the service would get another path than the route is about. */
export const strippedIssue = (what: string, stripPath: string | null): string =>
  `${what} does not begin with ${stripPath}, which strip_path of its service removes`

/** Reads a route's options and reports errors. */
export function readRouteOptions(
  reader: YamlReader,
  nodes: {
    readonly [key in Exclude<keyof typeof ROUTE, 'check' | 'public' | 'context' | 'answer'>]: Node | null
  },
  defaults: OptionDefaults,
): RouteOptions {
  const kept = (name: 'encoded_slash' | 'semicolon' | 'query'): boolean => {
    const node = nodes[name]
    if (node === null) return false
    reader.choice(node, name, ['keep'])
    return true
  }
  const forward = nodes.forward_token === null ? null : reader.boolean(nodes.forward_token, 'forward_token')
  const upgrades = texts(reader, nodes.upgrade, 'upgrade') ?? []
  for (const name of upgrades)
    if (name !== 'websocket') reader.report(nodes.upgrade, `upgrade must be websocket, not ${name}`)
  const tokenFrom = readTokenFrom(reader, nodes.token_from, nodes.upgrade !== null)
  if (nodes.origins !== null && nodes.upgrade === null && tokenFrom?.cookie == null)
    reader.report(nodes.origins, 'origins needs upgrade, or token_from with a cookie')
  const shadow = nodes.mode === null ? defaults.shadow : readMode(reader, nodes.mode)
  const upstream = nodes.upstream === null ? null : defaults.readUpstream(nodes.upstream)
  return {
    encodedSlash: kept('encoded_slash'),
    semicolon: kept('semicolon'),
    query: kept('query'),
    body: nodes.body === null ? null : (reader.choice(nodes.body, 'body', BODIES) ?? null),
    bodyBytesMax:
      nodes.body_bytes_max === null ? null : reader.count(nodes.body_bytes_max, 'body_bytes_max', BODY_BYTES),
    forwardToken: forward ?? (defaults.forwardToken || (shadow && defaults.keepsToken === true)),
    shadow,
    websocket: upgrades.includes('websocket'),
    tokenFrom,
    origins: readOrigins(reader, nodes.origins) ?? defaults.origins,
    cors: nodes.cors === null ? defaults.cors : readCors(reader, nodes.cors),
    stepUp: nodes.step_up === null ? null : readStepUp(reader, nodes.step_up),
    issuers: readKnown(reader, nodes.issuers, { what: 'issuers', known: defaults.known.issuers }),
    audience: readKnown(reader, nodes.audience, { what: 'audience', known: defaults.known.audiences }),
    upstream,
    stripPath: (upstream ?? defaults).stripPath,
    addPath: (upstream ?? defaults).addPath,
    upstreamHeadersMs:
      nodes.upstream_headers_ms === null ? null : reader.count(nodes.upstream_headers_ms, 'upstream_headers_ms', TIME),
    signIn: nodes.sign_in === null || reader.boolean(nodes.sign_in, 'sign_in') !== false,
    guests:
      nodes.guests !== null && reader.boolean(nodes.guests, 'guests') === true
        ? { organization: defaults.guestOrganization }
        : null,
    answer: null,
    context: [],
  }
}

/** Reads one or more names that the file must know: with an unknown issuer or audience, no token could ever be valid. */
function readKnown(
  reader: YamlReader,
  node: Node | null,
  { what, known }: { readonly what: string; readonly known: readonly string[] | null },
): readonly string[] | null {
  const names = node === null ? null : reader.texts(node, what)
  for (const name of names ?? [])
    if (known !== null && !known.includes(name)) reader.report(node, `${name} is not one of ${known.join(', ')}`)
  return names
}

export function readMode(reader: YamlReader, node: Node): boolean {
  return reader.choice(node, 'mode', MODES) === 'shadow'
}

function texts(reader: YamlReader, node: Node | null, what: string): readonly string[] | null {
  if (node === null) return null
  const items = reader.items(node, what) ?? []
  if (items.length === 0) reader.report(node, `${what} must have at least one item`)
  return items.map((item) => reader.text(item, what)).filter((text) => text !== null)
}

function readOrigins(reader: YamlReader, node: Node | null): ReadonlySet<string> | null {
  const origins = texts(reader, node, 'origins')
  for (const origin of origins ?? []) {
    // Origins are compared byte for byte with the Origin field of browsers (RFC 6454 section 6.2).
    const one = origin.replace(STARRED, '$1x')
    if (URL.parse(one)?.origin !== one || one === 'null')
      reader.report(node, `${JSON.stringify(origin)} is not an origin, such as https://app.example.com`)
  }
  return origins === null ? null : new Set(origins)
}

function readTokenFrom(reader: YamlReader, node: Node | null, upgrades: boolean): TokenFrom | null {
  const members = node === null ? null : reader.members(node, 'token_from', TOKEN_FROM)
  if (members === null) return null
  const given = reader.resolve(node)
  if (isMap(given) && given.items.length === 0) reader.report(node, 'token_from needs header, subprotocol or cookie')
  const subprotocol = members.subprotocol !== null && reader.boolean(members.subprotocol, 'subprotocol') === true
  if (subprotocol && !upgrades) reader.report(members.subprotocol, 'subprotocol needs upgrade')
  const cookie = members.cookie === null ? null : reader.text(members.cookie, 'cookie')
  if (cookie !== null && !COOKIE.test(cookie))
    reader.report(members.cookie, `${JSON.stringify(cookie)} is not the name of a cookie`)
  if (cookie !== null && LIKE_OWN.test(cookie)) reader.report(members.cookie, `${cookie} is a cookie of the sidecar`)
  const names = members.header === null ? [] : (reader.texts(members.header, 'header') ?? [])
  for (const name of names) {
    const issue = fieldIssue(name, [])
    if (issue !== null) reader.report(members.header, `${JSON.stringify(name)} ${issue}`)
  }
  return { header: names.map((name) => name.toLowerCase()), subprotocol, cookie }
}

export function readStepUp(reader: YamlReader, node: Node): StepUp | null {
  const members = reader.members(node, 'step_up', STEP_UP)
  if (members === null) return null
  if (members.acr_values === null && members.max_age === null && isMap(reader.resolve(node)))
    reader.report(node, 'step_up needs acr_values, max_age or both')
  const acrValues = texts(reader, members.acr_values, 'acr_values') ?? []
  for (const value of acrValues)
    if (!ACR.test(value)) reader.report(members.acr_values, `${JSON.stringify(value)} is not a valid acr value`)
  const maxAgeSeconds = members.max_age === null ? null : reader.count(members.max_age, 'max_age', AGE_SECONDS)
  return { acrValues, maxAgeSeconds }
}
