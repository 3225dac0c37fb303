/** Parses a route file into a typed value, or reports all of its errors at once. */
import type { Node } from 'yaml'
import type { Network } from '../../pdp/shared/base/addresses.ts'
import { isId } from '../../pdp/shared/domain/names.ts'
import type { KeyPairFiles } from '../../pdp/shared/process/key-pair-files.ts'
import type { AssertionEntry } from '../http/assertion.ts'
import type { Cors } from '../http/cors.ts'
import { type HeaderNames, passIssue } from '../http/fields.ts'
import type { MovedPaths, UpstreamEntry } from '../http/upstream-entry.ts'
import { clusterNames } from '../request/host-set.ts'
import { parseAuthority } from '../request/target.ts'
import type { OpenPath, Route } from '../routes/route.ts'
import type { SidecarLimits } from './default-limits.ts'
import { type DoorEntry, readDoors } from './doors.ts'
import {
  ALLOWED_ONE_IN,
  BODY_BYTES,
  DPOP,
  HEADER_OR_PREFIX,
  LOG,
  NONCES,
  PATHS_IN_LOG,
  PROBE_PATH,
  SUBJECTS_IN_LOG,
} from './format.ts'
import { readLimits, readNetwork } from './limits.ts'
import { readMode, shadowRouteOf } from './options.ts'
import { type IssuerEntry, type PdpEntry, readTls } from './peers.ts'
import { parseRoutes } from './routes.ts'
import { readSignIn, type SignInEntry } from './sign-in.ts'
import { parseTests, type RouteTest } from './tests.ts'
import { checkAudiences, checkBearer, readAssertion } from './words/assertion.ts'
import { readCors } from './words/cors.ts'
import { readIdentityHeaders } from './words/identity-headers.ts'
import { readMcpSessions } from './words/mcp-sessions.ts'
import { readOpenPaths } from './words/open-paths.ts'
import { membersBeside, openPlatform, type Platform, readShared } from './words/platform.ts'
import { HEADER } from './words/schema.ts'
import { createUpstreamReader, readUpstream } from './words/upstream.ts'
import { type FileIssue, YamlReader } from './words/yaml-reader.ts'

export type PathsInLog = (typeof PATHS_IN_LOG)[number]
export type SubjectsInLog = (typeof SUBJECTS_IN_LOG)[number]
export type RouteFile = {
  /** The resource for which clients request tokens: the first of `resources`. */
  readonly resource: string
  /** Values of which the `aud` claim must contain one. */
  readonly resources: readonly string[]
  /** Public origin and path prefix, without a trailing slash. */
  readonly publicUrl: string
  readonly issuers: readonly IssuerEntry[]
  /** The service of routes that name no other. */
  readonly upstream: UpstreamEntry
  readonly pdp: PdpEntry
  /** TLS of the data port; null: plain text. */
  readonly tls: KeyPairFiles | null
  /** The listeners at which gateways ask. */
  readonly doors: readonly DoorEntry[]
  /** How browsers sign in; null: the file has no sign-in. */
  readonly signIn: SignInEntry | null
  /** CORS where no route matches; null: pages of other origins may not read answers. */
  readonly cors: Cors | null
  /** True: DPoP proofs must contain a nonce that this sidecar gave (RFC 9449 section 9). */
  readonly proofNonces: boolean
  /** How the decision log names subjects. */
  readonly subjectsInLog: SubjectsInLog
  /** How much of a path the decision log contains. */
  readonly pathsInLog: PathsInLog
  /** The sampling of log lines: one of so many allowed requests is logged. */
  readonly allowedOneIn: number
  /** The paths at which load balancers ask whether the sidecar is ready. */
  readonly probePaths: readonly string[]
  /** Paths that are open to some peers, under every host. */
  readonly openPaths: readonly OpenPath[]
  /** Host names in lower case, without port. */
  readonly hosts: readonly string[]
  /** Rules for the client's fields, and fields that name the bearer to the service. */
  readonly headers: HeaderNames
  /** How the sidecar signs who calls, for the service; null: it does not. */
  readonly assertion: AssertionEntry | null
  /** The file with the keys that bind sessions of MCP; null: each process has a key of its own. */
  readonly mcpKeysFile: string | null
  readonly bodyBytesMax: number
  /** Proxies whose forwarding fields are trusted. */
  readonly trustedProxies: readonly Network[]
  /** True: their connections begin with a header of the PROXY protocol. */
  readonly proxyProtocol: boolean
  /** The limits that the file sets; others have their defaults. */
  readonly limits: Partial<SidecarLimits>
  readonly routes: readonly Route[]
  /** The route for requests that match no route, if the whole file is in shadow mode; else null. */
  readonly shadowRoute: Route | null
  /** True: the service gets the token only because of shadow mode. */
  readonly keepsToken: boolean
  readonly tests: readonly RouteTest[]
}
export type ParsedRouteFile =
  | { readonly file: RouteFile; readonly issues: readonly [] }
  | { readonly file: null; readonly issues: readonly FileIssue[] }

/** `platform`: the text of the settings that a platform makes for every route file; null: none. */
export function parseRouteFile(source: string, platform: string | null = null): ParsedRouteFile {
  const reader = new YamlReader(source)
  if (reader.isBroken) return { file: null, issues: sorted(reader.issues) }
  const file = readRouteFile(reader, platform === null ? null : openPlatform(platform))
  if (file === null || reader.issues.length > 0) return { file: null, issues: sorted(reader.issues) }
  return { file, issues: [] }
}

const sorted = (issues: readonly FileIssue[]): readonly FileIssue[] =>
  [...issues].sort((a, b) => a.line - b.line || a.column - b.column)

function readRouteFile(reader: YamlReader, platform: Platform | null): RouteFile | null {
  const members = reader.members(reader.root, 'the route file', membersBeside(platform))
  if (members === null) return null
  if (members.portcullis !== null && reader.text(members.portcullis, 'portcullis') !== 'v1')
    reader.report(members.portcullis, 'portcullis must be v1, the version of this format')
  const resources = readResources(reader, members.resource)
  const resource = resources?.[0] ?? null
  const publicUrl = members.public_url === null ? null : readPublicUrl(reader, members.public_url)
  const { issuers, pdp } = readShared(reader, members, { platform, resources })
  const upstream = readUpstream(reader, members.upstream)
  const fields = readHeaders(reader, members)
  const { headers, assertion } = fields
  const proxies = readProxies(reader, members)
  const limits = readLimits(reader, members.limits)
  const listed = reader.list(members.hosts, 'hosts', readHost)
  const cors = readCors(reader, members.cors)
  const moved = { stripPath: upstream?.stripPath ?? null, addPath: upstream?.addPath ?? null }
  const origins = originsOf(publicUrl ?? resource)
  const defaults = { cors, origins, ...moved, ...readDefaults(reader, members) }
  const known = knownTokens(issuers, resources)
  const reading = { headers, context: members.context, known, readUpstream: createUpstreamReader(reader, upstream) }
  const routes = parseRoutes(reader, members.routes, { ...defaults, ...reading })
  const socket = routes.find((route) => route.websocket && (route.upstream ?? upstream)?.http2 === true)
  if (socket !== undefined)
    reader.report(members.upstream, `http2 does not support WebSocket, but the route ${socket.id} accepts it`)
  const tests = parseTests(reader, members.tests, routes)
  const bodyBytesMax =
    members.body_bytes_max === null
      ? BODY_BYTES.default
      : reader.count(members.body_bytes_max, 'body_bytes_max', BODY_BYTES)
  const seenUrl = publicUrl ?? (resource === null ? null : callableUrl(resource))
  if (resource !== null && seenUrl === null && members.public_url === null)
    reader.report(members.resource, 'public_url is required, because resource is not an http URL that clients call')
  if (
    resources === null ||
    resource === null ||
    seenUrl === null ||
    issuers === null ||
    upstream === null ||
    pdp === null ||
    bodyBytesMax === null
  )
    return null
  const named = listed ?? hostnamesOf([...resources, seenUrl])
  const hosts = [...named, ...readClusterService(reader, members.cluster_service)]
  const signIn = readSignIn(reader, members.sign_in, { publicUrl: seenUrl, issuers })
  const doors = readDoors(reader, members.doors, { routes, signsIn: members.sign_in !== null })
  checkBearer(reader, members.assertion, { assertion, routes, doors })
  checkAudiences(reader, members.upstream, { assertion, upstream, routes })
  const peers = { issuers, upstream, pdp, tls: readTls(reader, members.tls), doors, signIn }
  const logging = { proofNonces: readDpop(reader, members.dpop), ...readJournal(reader, members.log) }
  const operating = {
    ...logging,
    ...proxies,
    hosts,
    ...readOpened(reader, members, moved),
    cors,
    ...fields,
    bodyBytesMax,
    limits,
  }
  const routing = {
    routes,
    shadowRoute: shadowRouteOf(routes, defaults),
    keepsToken: defaults.shadow && defaults.keepsToken,
    tests,
  }
  return { ...peers, ...operating, resource, resources, publicUrl: seenUrl, ...routing }
}

function readDefaults(
  reader: YamlReader,
  nodes: {
    readonly [name in 'forward_token' | 'assertion' | 'sign_in' | 'mode' | 'guest_organization']: Node | null
  },
) {
  const { forward_token: forward, mode } = nodes
  return {
    forwardToken: forward !== null && reader.boolean(forward, 'forward_token') === true,
    // A service with an assertion or a sign-in never got the client's token, so there is none that it could go on getting.
    keepsToken: [forward, nodes.assertion, nodes.sign_in].every((node) => node === null),
    shadow: mode !== null && readMode(reader, mode),
    guestOrganization: readGuestOrganization(reader, nodes.guest_organization),
  }
}

/** The issuers and audiences whose tokens the file accepts. */
const knownTokens = (issuers: readonly IssuerEntry[] | null, resources: readonly string[] | null) => ({
  issuers: issuers?.map(({ issuer }) => issuer) ?? null,
  audiences:
    issuers === null || resources === null
      ? null
      : [...new Set([...resources, ...issuers.flatMap(({ external }) => external?.audience ?? [])])],
})

/** The default for WebSocket connections: only pages of the resource's own origin may open them. */
function originsOf(url: string | null): ReadonlySet<string> {
  const origin = URL.parse(url ?? '')?.origin ?? 'null'
  return new Set(origin === 'null' ? [] : [origin])
}

const isHttpUrl = (text: string): boolean => /^https?:$/.test(URL.parse(text)?.protocol ?? '')

const hostnamesOf = (urls: readonly string[]): readonly string[] => [
  ...new Set(urls.filter(isHttpUrl).map((url) => new URL(url).hostname)),
]

/** The resources, which must be absolute URIs without fragment (RFC 8707 section 2). */
function readResources(reader: YamlReader, node: Node | null): readonly string[] | null {
  const texts = node === null ? null : reader.texts(node, 'resource')
  if (texts === null || texts.every((text) => URL.parse(text) !== null && !/[#\s]/.test(text))) return texts
  reader.report(node, 'resource must be an absolute URI without a fragment')
  return null
}

/** Excludes blanks, backslashes, user information, query and fragment, which browsers read in ways of their own. */
const CALLABLE = /^https?:\/\/[^\s/\\?#@]+(?:\/[^\s\\?#]*)?$/i

/** The URL in the form that proofs have; null: no client can call it. */
function callableUrl(text: string): string | null {
  const url = CALLABLE.test(text) ? URL.parse(text) : null
  return url === null ? null : `${url.origin}${url.pathname.replace(/\/$/, '')}`
}

function readPublicUrl(reader: YamlReader, node: Node): string | null {
  const text = reader.text(node, 'public_url')
  if (text === null) return null
  const url = callableUrl(text)
  if (url !== null) return url
  reader.report(node, 'public_url must be an http or https URL with an optional path, and without query and fragment')
  return null
}

function readHost(reader: YamlReader, node: Node | null): string | null {
  const text = reader.text(node, 'a host')
  if (text === null) return null
  const [star = ''] = /^\*\.(?=[^.]+\.)/.exec(text) ?? []
  try {
    const { hostname, port, dotted } = parseAuthority(text.slice(star.length))
    if (port === null) return `${star}${hostname}${dotted === true ? '.' : ''}`
  } catch {
    // The error is reported below, with its position.
  }
  const ascii = /[^\0-\x7f]/.test(text) ? URL.parse(`http://${text}`)?.hostname : undefined
  const written = ascii === undefined ? '' : `; in DNS it is ${ascii}`
  reader.report(node, `${JSON.stringify(text)} must be a host name without a port, or *. and one${written}`)
  return null
}

/** Paths that are answered under every host. */
const readOpened = (
  reader: YamlReader,
  { probe_paths, open_paths, doors }: { readonly [name in 'probe_paths' | 'open_paths' | 'doors']: Node | null },
  moved: MovedPaths,
): Pick<RouteFile, 'probePaths' | 'openPaths'> => ({
  probePaths: reader.list(probe_paths, 'probe_paths', readProbePath) ?? [],
  openPaths: readOpenPaths(reader, open_paths, { doors, moved }),
})

function readProbePath(reader: YamlReader, node: Node | null): string | null {
  const text = reader.text(node, 'a probe path')
  if (text === null || PROBE_PATH.test(text)) return text
  reader.report(node, `${JSON.stringify(text)} is not a path such as /healthz, without query and parameters`)
  return null
}

function readGuestOrganization(reader: YamlReader, node: Node | null): string | null {
  const text = node === null ? null : reader.text(node, 'guest_organization')
  if (text === null || isId(text)) return text
  reader.report(node, `${JSON.stringify(text)} is not the id of an organization`)
  return null
}

const CLUSTER_SERVICE = /^([a-z0-9-]{1,63})\.([a-z0-9-]{1,63})(?:\.svc\.([a-z0-9.-]{1,253}))?$/

function readClusterService(reader: YamlReader, node: Node | null): readonly string[] {
  const text = node === null ? null : reader.text(node, 'cluster_service')
  const [, service, namespace, domain = 'cluster.local'] = CLUSTER_SERVICE.exec(text ?? '') ?? []
  if (service !== undefined && namespace !== undefined) return clusterNames(service, namespace, domain)
  if (text !== null) reader.report(node, 'cluster_service must be name.namespace of a Service, such as orders.shop')
  return []
}

function readHeaders(
  reader: YamlReader,
  nodes: {
    readonly [name in 'strip_headers' | 'pass_headers' | 'identity_headers' | 'assertion' | 'mcp_sessions']: Node | null
  },
): Pick<RouteFile, 'headers' | 'assertion' | 'mcpKeysFile'> {
  const strip = reader.list(nodes.strip_headers, 'strip_headers', readStripped) ?? []
  const pass = readPassed(reader, nodes.pass_headers, strip)
  const fields = readIdentityHeaders(reader, nodes.identity_headers, pass)
  const assertion = readAssertion(reader, nodes.assertion, { identity: fields, passed: pass })
  const identity = assertion === null ? fields : [...fields, { name: assertion.header, parts: null }]
  return { headers: { strip, pass, identity }, assertion, mcpKeysFile: readMcpSessions(reader, nodes.mcp_sessions) }
}

function readStripped(reader: YamlReader, node: Node | null): string | null {
  const text = reader.text(node, 'a header name')
  if (text === null || HEADER_OR_PREFIX.test(text)) return text
  reader.report(node, `${JSON.stringify(text)} is not a header name or a prefix such as x-acme-*`)
  return null
}

function readPassed(reader: YamlReader, node: Node | null, stripped: readonly string[]): readonly string[] {
  const read = (_: YamlReader, item: Node | null): string | null => {
    const text = reader.text(item, 'a header name')
    if (text === null) return null
    const issue = HEADER.test(text) ? passIssue(text, stripped) : 'is not a header name'
    if (issue !== null) reader.report(item, `${JSON.stringify(text)} ${issue}`)
    return text
  }
  return reader.list(node, 'pass_headers', read) ?? []
}

function readProxies(
  reader: YamlReader,
  {
    proxy_protocol: node,
    trusted_proxies: proxies,
  }: { readonly [name in 'proxy_protocol' | 'trusted_proxies']: Node | null },
): Pick<RouteFile, 'trustedProxies' | 'proxyProtocol'> {
  const proxyProtocol = node !== null && reader.boolean(node, 'proxy_protocol') === true
  if (proxyProtocol && proxies === null)
    reader.report(node, 'proxy_protocol needs trusted_proxies, the load balancers that name clients')
  return { proxyProtocol, trustedProxies: reader.list(proxies, 'trusted_proxies', readNetwork) ?? [] }
}

function readDpop(reader: YamlReader, node: Node | null): boolean {
  if (node === null) return false
  const nonce = reader.members(node, 'dpop', DPOP)?.nonce ?? null
  return nonce !== null && reader.choice(nonce, 'nonce', NONCES) === 'required'
}

function readJournal(
  reader: YamlReader,
  node: Node | null,
): Pick<RouteFile, 'subjectsInLog' | 'pathsInLog' | 'allowedOneIn'> {
  const members = node === null ? null : reader.members(node, 'log', LOG)
  const subject = members?.subject ?? null
  const path = members?.path ?? null
  const oneIn = members?.allowed_one_in ?? null
  return {
    subjectsInLog: subject === null ? 'plain' : (reader.choice(subject, 'subject', SUBJECTS_IN_LOG) ?? 'omitted'),
    pathsInLog: path === null ? 'without_query' : (reader.choice(path, 'path', PATHS_IN_LOG) ?? 'omitted'),
    allowedOneIn: oneIn === null ? 1 : (reader.count(oneIn, 'allowed_one_in', ALLOWED_ONE_IN) ?? 1),
  }
}
