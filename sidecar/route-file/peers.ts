/** Reads the peers that a route file names (issuers, upstream, PDP) and the sidecar's own certificate. */
import { isMap, type Node } from 'yaml'
import { isLoopback, withoutBrackets } from '../../pdp/shared/process/listen.ts'
import { ALGORITHM_NAMES, type AlgorithmName, isAlgorithm } from '../../pdp/shared/token/algorithms.ts'
import type { IssuerTerms } from '../../pdp/shared/token/issuer-claims.ts'
import { isSafeKeyUrl } from '../../pdp/shared/token/remote-keys.ts'
import { prefixConflict, readExternal } from './external-issuer.ts'
import { INTROSPECTION, ISSUER } from './issuer-format.ts'
import {
  CONNECTIONS,
  HOST_AND_PORT,
  HOST_FIELD,
  PDP,
  type PEER_FILES,
  SERVER_NAME,
  SOCKET_PATH,
  TLS,
  UPSTREAM,
} from './words/peer-format.ts'
import type { YamlReader } from './words/yaml-reader.ts'

/** Only for an external issuer: it is asked about its tokens (RFC 7662). */
export type IntrospectionEntry = {
  readonly endpoint: string
  readonly clientId: string
  readonly clientSecretFile: string
}
export type IssuerEntry = {
  readonly issuer: string
  /** Null: read from the issuer's metadata. */
  readonly jwksUri: string | null
  readonly algorithms: readonly AlgorithmName[]
  /** Null: the PDP itself. */
  readonly external: IssuerTerms | null
  /** Null: tokens are verified by the issuer's keys. */
  readonly introspection: IntrospectionEntry | null
}
/** Paths of PEM files; null: not given. */
export type PeerFiles = {
  /** Authorities that the peer's certificate is verified with; null: those of the system. */
  readonly caFile: string | null
  readonly certFile: string | null
  readonly keyFile: string | null
}
export type UpstreamEntry = PeerFiles & {
  /** Without a path. */
  readonly origin: string
  /** Path of a unix socket, in place of the host and port of `origin`; null: none. */
  readonly socketPath: string | null
  /** The name that its certificate must be for; null: the host of `origin`. */
  readonly serverName: string | null
  /** The Host field that it gets; null: the client's. */
  readonly host: string | null
  /** Uses HTTP/2, which gRPC services need. */
  readonly http2: boolean
  /** No upstream connection carries requests of two clients. */
  readonly perClient: boolean
  /** The upstream reads every body to its end or closes the connection (RFC 9112 section 9.3). */
  readonly reuseAfterBody: boolean
}
export type PdpEntry = PeerFiles & {
  /** `host:port`. */
  readonly addresses: readonly string[]
  /** Plain text; allowed on loopback only. */
  readonly insecure: boolean
  /** File with the token that authenticates the sidecar to the PDP, read for each stream; null: no token is sent. */
  readonly tokenFile: string | null
}
export type TlsEntry = {
  readonly certFile: string
  readonly keyFile: string
  /** Authorities of client certificates; null: none are requested. */
  readonly clientCaFile: string | null
}

/** `resources`: the audience of tokens whose issuer has none of its own. */
export function readIssuers(
  reader: YamlReader,
  node: Node | null,
  resources: readonly string[] | null,
): readonly IssuerEntry[] | null {
  const read = (_: YamlReader, item: Node | null): IssuerEntry | null => readIssuer(reader, item, resources)
  const issuers = node === null ? null : reader.list(node, 'issuers', read)
  if (issuers === null) return null
  if (issuers.filter(({ introspection }) => introspection !== null).length > 1)
    reader.report(node, 'only one issuer may have introspection, because an opaque token does not name its issuer')
  const conflict = prefixConflict(issuers)
  if (conflict !== null) reader.report(node, conflict)
  if (new Set(issuers.map(({ issuer }) => issuer)).size < issuers.length)
    reader.report(node, 'issuers names an issuer twice')
  return issuers
}

function readIssuer(reader: YamlReader, node: Node | null, resources: readonly string[] | null): IssuerEntry | null {
  const members = reader.members(node, 'an issuer', ISSUER)
  if (members === null || members.issuer === null) return null
  const issuer = reader.text(members.issuer, 'issuer')
  const jwksUri = members.jwks_uri === null ? null : reader.text(members.jwks_uri, 'jwks_uri')
  // Our own tokens are RS256. The operator must name any other algorithm.
  const algorithms = reader.list(members.algorithms, 'algorithms', readAlgorithm) ?? ['RS256' as const]
  const external = members.external === null ? null : readExternal(reader, members.external, resources)
  const introspection = members.introspection === null ? null : readIntrospection(reader, members.introspection)
  if (members.introspection !== null && external === null)
    reader.report(members.introspection, 'introspection is for an external issuer')
  if (introspection !== null && (members.jwks_uri !== null || members.algorithms !== null))
    reader.report(members.introspection, 'introspection takes the place of jwks_uri and algorithms')
  if (issuer !== null && jwksUri === null && introspection === null && !isSafeKeyUrl(issuer))
    reader.report(
      members.issuer,
      `issuer must be an https URL (http only on loopback) unless jwks_uri is set${WAYS_OUT}`,
    )
  if (jwksUri !== null && !isSafeKeyUrl(jwksUri))
    reader.report(members.jwks_uri, `jwks_uri must be an https URL (http only on loopback)${WAYS_OUT}`)
  // It is a header field's value (RFC 9110 section 5.5), and external issuers without a map would be taken for the PDP.
  if (issuer !== null && !/^[\x21-\x7e]+$/.test(issuer)) reader.report(members.issuer, 'issuer must be visible ASCII')
  const isBroken = issuer === null || (members.external !== null && external === null)
  return isBroken ? null : { issuer, jwksUri, algorithms, external, introspection }
}

/** Most identity providers of a cluster have no TLS inside. */
const WAYS_OUT =
  ': over http, anybody on the way could give keys of their own. Name the public https address of the issuer, or give it TLS in the cluster and trust its authority (SSL_CERT_FILE, or authorities of the chart)'

function readIntrospection(reader: YamlReader, node: Node): IntrospectionEntry | null {
  const members = reader.members(node, 'introspection', INTROSPECTION)
  if (members?.endpoint == null || members.client_id === null || members.client_secret_file === null) return null
  const endpoint = reader.text(members.endpoint, 'endpoint')
  const clientId = reader.text(members.client_id, 'client_id')
  const clientSecretFile = readPath(reader, members.client_secret_file, 'client_secret_file')
  if (endpoint !== null && !isSafeKeyUrl(endpoint))
    reader.report(members.endpoint, 'endpoint must be an https URL (http only on loopback)')
  if (endpoint === null || clientId === null || clientSecretFile === null) return null
  return { endpoint, clientId, clientSecretFile }
}

function readAlgorithm(reader: YamlReader, node: Node | null): AlgorithmName | null {
  const name = reader.text(node, 'an algorithm')
  if (name === null || isAlgorithm(name)) return name
  reader.report(node, `${name} is not a supported algorithm; use one of ${ALGORITHM_NAMES.join(', ')}`)
  return null
}

type FileNodes = { readonly [key in keyof typeof PEER_FILES]: Node | null }

function readPeerFiles(reader: YamlReader, nodes: FileNodes): PeerFiles {
  if ((nodes.cert_file === null) !== (nodes.key_file === null))
    reader.report(nodes.cert_file ?? nodes.key_file, 'cert_file and key_file must be set together')
  return {
    caFile: readPath(reader, nodes.ca_file, 'ca_file'),
    certFile: readPath(reader, nodes.cert_file, 'cert_file'),
    keyFile: readPath(reader, nodes.key_file, 'key_file'),
  }
}

export function readPath(reader: YamlReader, node: Node | null, what: string): string | null {
  const path = node === null ? null : reader.text(node, what)
  if (path !== '') return path
  reader.report(node, `${what} must not be empty`)
  return null
}

/** Reads an origin, or a map with `url` and options. */
export function readUpstream(reader: YamlReader, node: Node | null): UpstreamEntry | null {
  if (node === null) return null
  if (!isMap(reader.resolve(node))) {
    const origin = readOrigin(reader, node)
    const plain = {
      ...{ http2: false, perClient: false, reuseAfterBody: false },
      ...{ socketPath: null, serverName: null, host: null },
    }
    return origin === null ? null : { origin, ...plain, caFile: null, certFile: null, keyFile: null }
  }
  const members = reader.members(node, 'upstream', UPSTREAM)
  if (members === null || members.url === null) return null
  const origin = readOrigin(reader, members.url)
  const files = readPeerFiles(reader, members)
  if (origin?.startsWith('http:') && Object.values(files).some((path) => path !== null))
    reader.report(node, 'certificates can be used only with an https URL')
  const http2 = members.http2 !== null && reader.boolean(members.http2, 'http2') === true
  for (const name of ['connections', 'reuse_after_body'] as const)
    if (http2 && members[name] !== null) reader.report(members[name], `${name} cannot be combined with http2`)
  const perClient =
    members.connections !== null && reader.choice(members.connections, 'connections', CONNECTIONS) === 'per_client'
  const reuseAfterBody =
    members.reuse_after_body !== null && reader.boolean(members.reuse_after_body, 'reuse_after_body') === true
  if (members.server_name !== null && origin?.startsWith('http:'))
    reader.report(members.server_name, 'server_name can be used only with an https URL')
  const matching = (name: 'socket' | 'server_name' | 'host', form: RegExp, says: string): string | null => {
    const text = members[name] === null ? null : reader.text(members[name], name)
    if (text === null || form.test(text)) return text
    reader.report(members[name], `${name} must be ${says}`)
    return null
  }
  const socketPath = matching('socket', SOCKET_PATH, 'the absolute path of a unix socket')
  const serverName = matching('server_name', SERVER_NAME, 'a host name')
  const host = matching('host', HOST_FIELD, 'a host name, with a port if the service needs one')
  return origin === null ? null : { origin, socketPath, serverName, host, http2, perClient, reuseAfterBody, ...files }
}

function readOrigin(reader: YamlReader, node: Node): string | null {
  const text = reader.text(node, 'upstream')
  if (text === null) return null
  const url = URL.parse(text)
  const isOrigin = url !== null && /^https?:$/.test(url.protocol) && url.pathname === '/' && url.username === ''
  if (isOrigin && url.search === '' && url.hash === '') return url.origin
  const isSocket = /^(unix:)?\//.test(text)
  const way = isSocket ? '; for a unix socket: upstream: {url: http://localhost, socket: /path}' : ''
  reader.report(node, `upstream must be an http or https URL without a path${way}`)
  return null
}

export function readPdp(reader: YamlReader, node: Node | null): PdpEntry | null {
  if (node === null) return null
  const members = reader.members(node, 'pdp', PDP)
  if (members === null) return null
  if ((members.address === null) === (members.addresses === null))
    reader.report(node, 'pdp needs either address or addresses')
  const single = members.address === null ? [] : [readAddress(reader, members.address)]
  const several = reader.list(members.addresses, 'addresses', readAddress) ?? []
  const addresses = [...single, ...several].filter((address) => address !== null)
  const insecure = members.insecure !== null && reader.boolean(members.insecure, 'insecure') === true
  if (insecure && !addresses.every((address) => isLoopback(withoutBrackets(address.replace(/:\d+$/, '')))))
    reader.report(members.insecure, 'insecure is allowed only when every address is loopback')
  const unused = (['ca_file', 'cert_file', 'token_file'] as const).filter((name) => insecure && members[name] !== null)
  for (const name of unused) reader.report(members[name], `${name} cannot be combined with insecure`)
  const tokenFile = readPath(reader, members.token_file, 'token_file')
  return { addresses, insecure, tokenFile, ...readPeerFiles(reader, members) }
}

function readAddress(reader: YamlReader, node: Node | null): string | null {
  const text = reader.text(node, 'address')
  if (text === null || HOST_AND_PORT.test(text)) return text
  reader.report(node, `${JSON.stringify(text)} must be host:port`)
  return null
}

export function readTls(reader: YamlReader, node: Node | null): TlsEntry | null {
  if (node === null) return null
  const members = reader.members(node, 'tls', TLS)
  if (members === null) return null
  const certFile = readPath(reader, members.cert_file, 'cert_file')
  const keyFile = readPath(reader, members.key_file, 'key_file')
  const clientCaFile = readPath(reader, members.client_ca_file, 'client_ca_file')
  return certFile === null || keyFile === null ? null : { certFile, keyFile, clientCaFile }
}
