/** Reads the issuers and the PDP that a route file names, and the sidecar's own certificate. */
import type { Node } from 'yaml'
import type { KeyPairFiles } from '../../pdp/shared/process/key-pair-files.ts'
import { isLoopback, withoutBrackets } from '../../pdp/shared/process/listen.ts'
import { ALGORITHM_NAMES, type AlgorithmName, isAlgorithm } from '../../pdp/shared/token/algorithms.ts'
import type { IssuerTerms } from '../../pdp/shared/token/issuer-claims.ts'
import { isSafeKeyUrl } from '../../pdp/shared/token/remote-keys.ts'
import type { PeerFiles } from '../http/upstream-entry.ts'
import { prefixConflict, readExternal } from './external-issuer.ts'
import { INTROSPECTION, ISSUER } from './issuer-format.ts'
import { HOST_AND_PORT, PDP, type PEER_FILES, TLS } from './words/peer-format.ts'
import type { YamlReader } from './words/yaml-reader.ts'

/** How the sidecar asks an external issuer about its tokens (RFC 7662). */
export type IntrospectionEntry = {
  readonly endpoint: string
  readonly clientId: string
  readonly clientSecretFile: string
}
export type IssuerEntry = {
  readonly issuer: string
  /** The URL of the key set; null: it is in the issuer's metadata. */
  readonly jwksUri: string | null
  readonly algorithms: readonly AlgorithmName[]
  /** How tokens of an external issuer are read; null: the issuer is the PDP itself. */
  readonly external: IssuerTerms | null
  /** How the issuer is asked about tokens; null: its keys verify them. */
  readonly introspection: IntrospectionEntry | null
}
export type PdpEntry = PeerFiles & {
  /** The PDP's addresses, each as `host:port`. */
  readonly addresses: readonly string[]
  /** True: the connection is plain text, which only loopback allows. */
  readonly insecure: boolean
  /** File with the token that authenticates the sidecar to the PDP, read for each stream; null: no token is sent. */
  readonly tokenFile: string | null
}

/** Reads the issuers. `resources`: the audience for issuers that name no other. */
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
    reader.report(members.issuer, unsafeUrlIssue('issuer', issuer, ' unless jwks_uri is set'))
  if (jwksUri !== null && !isSafeKeyUrl(jwksUri)) reader.report(members.jwks_uri, unsafeUrlIssue('jwks_uri', jwksUri))
  // An issuer must fit into a header field (RFC 9110 section 5.5). An external one without a subject map would count as the PDP.
  if (issuer !== null && !/^[\x21-\x7e]+$/.test(issuer)) reader.report(members.issuer, 'issuer must be visible ASCII')
  const isBroken = issuer === null || (members.external !== null && external === null)
  return isBroken ? null : { issuer, jwksUri, algorithms, external, introspection }
}

/** The rest of an error about http, since most identity providers of a cluster have no TLS inside. */
export const WAYS_OUT =
  'over http, anybody on the way could give answers of their own. Name the public https address of the issuer, or give it TLS in the cluster and trust its authority (SSL_CERT_FILE, or authorities of the chart)'

/** The reason for which `isSafeKeyUrl` refuses the URL, as a sentence. */
export function unsafeUrlIssue(what: string, text: string, unless = ''): string {
  const url = URL.parse(text)
  if (url !== null && url.username + url.password !== '')
    return `${what} must have no name and password before its host`
  return `${what} must be an https URL (http only on loopback)${unless}${url?.protocol === 'http:' ? `: ${WAYS_OUT}` : ''}`
}

function readIntrospection(reader: YamlReader, node: Node): IntrospectionEntry | null {
  const members = reader.members(node, 'introspection', INTROSPECTION)
  if (members?.endpoint == null || members.client_id === null || members.client_secret_file === null) return null
  const endpoint = reader.text(members.endpoint, 'endpoint')
  const clientId = reader.text(members.client_id, 'client_id')
  const clientSecretFile = readPath(reader, members.client_secret_file, 'client_secret_file')
  if (endpoint !== null && !isSafeKeyUrl(endpoint))
    reader.report(members.endpoint, unsafeUrlIssue('endpoint', endpoint))
  if (endpoint === null || clientId === null || clientSecretFile === null) return null
  return { endpoint, clientId, clientSecretFile }
}

function readAlgorithm(reader: YamlReader, node: Node | null): AlgorithmName | null {
  const name = reader.text(node, 'an algorithm')
  if (name === null || isAlgorithm(name)) return name
  reader.report(node, `${name} is not a supported algorithm; use one of ${ALGORITHM_NAMES.join(', ')}`)
  return null
}

export function readPeerFiles(
  reader: YamlReader,
  nodes: { readonly [key in keyof typeof PEER_FILES]: Node | null },
): PeerFiles {
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

export function readTls(reader: YamlReader, node: Node | null): KeyPairFiles | null {
  if (node === null) return null
  const members = reader.members(node, 'tls', TLS)
  if (members === null) return null
  const certFile = readPath(reader, members.cert_file, 'cert_file')
  const keyFile = readPath(reader, members.key_file, 'key_file')
  const clientCaFile = readPath(reader, members.client_ca_file, 'client_ca_file')
  return certFile === null || keyFile === null ? null : { certFile, keyFile, clientCaFile }
}
