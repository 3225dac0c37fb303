/** Parses a request strictly: framing (RFC 9112 sections 6 and 7), host, target and fields. */
import type { ClientRequest } from '../http/client-request.ts'
import { splitList } from '../http/fields.ts'
import { foldName } from '../http/folding.ts'
import { malformed, RequestError } from './errors.ts'
import type { Origin } from './origin.ts'
import {
  type Authority,
  parseAuthority,
  parseTarget,
  type RequestTarget,
  unreadAuthority,
  unreadTarget,
} from './target.ts'

export type InboundRequest = {
  readonly version: ClientRequest['version']
  readonly method: string
  readonly target: RequestTarget
  readonly host: Authority
  /** The host that a trusted proxy reports; null: no trusted proxy reports one. */
  readonly namedHost: Authority | null
  /** The client's address, as trusted proxies report it; empty when it is not known. */
  readonly clientAddress: string
  /** The Host field as it was sent. */
  readonly hostField: string
  /** Header fields, names and values alternating, as they arrived. */
  readonly raw: readonly string[]
  /** Folded names of `raw`, in its order. */
  readonly names: readonly string[]
  /** Folded names that the Connection field lists; they are not for the next hop, and no check sees them. */
  readonly connectionListed: ReadonlySet<string>
  readonly authorization: readonly string[]
  readonly proofs: readonly string[]
  /** The length of the body. Null: unknown until it ends. 0: no body. */
  readonly bodyBytes: number | null
  /** The reason for which the request cannot be read strictly: only shadow mode lets it pass, as written. Null: it was read. */
  readonly refusal: RequestError | null
}

const FIELDS_MAX = 100
/**
 * Fields for the service and framing fields. Connection must not list them (RFC 9110 section 7.6.1): to drop one because a client
 * lists it would change the message after its evaluation.
 */
export const UNLISTABLE: ReadonlySet<string> = new Set([
  'host',
  'content-length',
  'transfer-encoding',
  'expect',
  'authorization',
  'dpop',
  'cookie',
  'origin',
  'referer',
  'user-agent',
  'from',
  'date',
  'via',
  'range',
  'accept',
  'cache-control',
  'pragma',
  'age',
  'etag',
  'last-modified',
  'location',
  'link',
  'allow',
  'vary',
  'max-forwards',
  'prefer',
  'priority',
  'idempotency-key',
  'traceparent',
  'tracestate',
  'baggage',
  'x-request-id',
  'x-requested-with',
  'x-csrf-token',
  'x-xsrf-token',
])
export const UNLISTABLE_PREFIXES = ['accept-', 'content-', 'if-', 'sec-', 'access-control-']
const NONE: ReadonlySet<string> = new Set()

export type InboundOptions = {
  readonly origin: Pick<Origin, 'address' | 'host' | 'fault'>
  readonly targetCharsMax: number
  /** True in shadow mode of the file: a refused request is returned with its refusal, if it has one framing and HTTP allows it. */
  readonly isShadowed?: boolean
}

/** Throws RequestError. `client` must come from a strict parser that keeps every field. */
export function readInbound(client: ClientRequest, options: InboundOptions): InboundRequest {
  try {
    return readStrictly(client, options)
  } catch (err) {
    if (options.isShadowed !== true || !(err instanceof RequestError)) throw err
    return leaveUnread(client, options.origin.address, err)
  }
}

function readStrictly(client: ClientRequest, { origin, targetCharsMax }: InboundOptions): InboundRequest {
  const { version, method, raw } = client
  const fault = origin.fault ?? client.fault
  if (fault !== null) throw malformed(fault)
  if (method === 'CONNECT') throw new RequestError('method_unsupported', 'CONNECT is not supported')
  if (raw.length > 2 * FIELDS_MAX) throw new RequestError('headers_too_large', `More than ${FIELDS_MAX} header fields`)
  const names: string[] = []
  const found = collectFields(raw, names)
  if (found.expect.some((value) => value.toLowerCase() !== '100-continue'))
    throw malformed('The only supported expectation is 100-continue')
  const bodyBytes = readFraming(client, found)
  const [hostField] = found.host
  if (hostField === undefined || found.host.length > 1) throw malformed('There must be exactly one Host field')
  const host = parseAuthority(hostField)
  if (client.target.length > targetCharsMax)
    throw new RequestError('target_too_long', `The request target has more than ${targetCharsMax} characters`)
  const target = parseTarget(client.target)
  // RFC 9112 section 3.2.2 prefers the target; we refuse a request with two different names.
  if (target.authority !== null && target.authority.toLowerCase() !== hostField.toLowerCase())
    throw malformed('The request target and the Host field name different hosts')
  return {
    version,
    method,
    target,
    host,
    namedHost: origin.host,
    clientAddress: origin.address,
    hostField,
    raw,
    names,
    connectionListed: listedNames(found.connection),
    authorization: found.authorization,
    proofs: found.dpop,
    bodyBytes,
    refusal: null,
  }
}

const FRAMING = ['host', 'content-length', 'transfer-encoding', 'expect']

/** Throws `refusal` if two servers could split the message differently, or HTTP itself forbids it (RFC 9112 sections 3.2 and 6). */
function leaveUnread(client: ClientRequest, address: string, refusal: RequestError): InboundRequest {
  const { version, method, raw } = client
  const names: string[] = []
  const found = collectFields(raw, names)
  const bodyBytes = readFraming(client, found)
  const target = unreadTarget(client.target)
  const [hostField = version === '1.0' ? '' : null] = found.host
  const named = target?.authority ?? hostField
  const host = named === null ? null : unreadAuthority(named)
  const listed = found.connection.flatMap(splitList).map(foldName)
  const isAmbiguous = found.host.length > 1 || listed.some((name) => FRAMING.includes(name))
  if (client.fault !== null || method === 'CONNECT' || isAmbiguous) throw refusal
  if (target === null || host === null || hostField === null) throw refusal
  return {
    ...{ version, method, target, host, namedHost: null, clientAddress: address, hostField: named ?? '', raw, names },
    connectionListed: new Set(listed.filter((name) => !isForService(name))),
    authorization: found.authorization,
    proofs: found.dpop,
    bodyBytes,
    refusal,
  }
}

const COLLECTED = [
  'host',
  'connection',
  'authorization',
  'dpop',
  'content-length',
  'transfer-encoding',
  'expect',
] as const
type Collected = (typeof COLLECTED)[number]
type CollectedFields = { [Name in Collected]: string[] }
const collected = new Set<string>(COLLECTED)
const isCollected = (name: string): name is Collected => collected.has(name)
/** One empty list, shared by most fields since most requests lack them. It must never be changed. */
const ABSENT: string[] = []

/** Collects fields by exact names, in any case. `Content_Length` is another field to a parser; its folded name gets it stripped later. */
function collectFields(raw: readonly string[], names: string[]): CollectedFields {
  const found: CollectedFields = {
    host: ABSENT,
    connection: ABSENT,
    authorization: ABSENT,
    dpop: ABSENT,
    'content-length': ABSENT,
    'transfer-encoding': ABSENT,
    expect: ABSENT,
  }
  for (let at = 0; at < raw.length; at += 2) {
    const name = raw[at] ?? ''
    const folded = foldName(name)
    names.push(folded)
    if (!isCollected(folded) || name.toLowerCase() !== folded) continue
    const value = raw[at + 1] ?? ''
    if (found[folded] === ABSENT) found[folded] = [value]
    else found[folded].push(value)
  }
  return found
}

function readFraming({ version, bodiless }: ClientRequest, found: CollectedFields): number | null {
  const encodings = found['transfer-encoding']
  const lengths = found['content-length']
  if (encodings.length > 0) {
    if (version !== '1.1') throw malformed('Transfer-Encoding needs HTTP/1.1')
    if (lengths.length > 0) throw malformed('A request must not have both Transfer-Encoding and Content-Length')
    if (encodings.length > 1 || encodings[0]?.toLowerCase() !== 'chunked')
      throw malformed('The only supported transfer coding is chunked')
    return null
  }
  const [length] = lengths
  if (length === undefined) return version === '2' && !bodiless ? null : 0
  if (lengths.length > 1 || !/^\d{1,15}$/.test(length)) throw malformed('Content-Length is not a single number')
  return Number(length)
}

function listedNames(connection: readonly string[]): ReadonlySet<string> {
  if (connection.length === 0) return NONE
  const listed = new Set(connection.flatMap(splitList).map(foldName))
  for (const name of listed)
    if (isForService(name)) throw malformed('The Connection field lists a field that is for the service')
  return listed
}

const isForService = (name: string): boolean =>
  UNLISTABLE.has(name) || UNLISTABLE_PREFIXES.some((prefix) => name.startsWith(prefix))

/** The same request with the origin that the proxies trusted now report. Throws RequestError. */
export function fromOrigin(request: InboundRequest, { address, host, fault }: Origin): InboundRequest {
  if (fault !== null) throw malformed(fault)
  return { ...request, clientAddress: address, namedHost: host }
}

/** All values of the field whose folded name is `name`. */
export const fieldValues = ({ raw, names }: Pick<InboundRequest, 'raw' | 'names'>, name: string): string[] =>
  names.flatMap((folded, at) => (folded === name ? [raw[2 * at + 1] ?? ''] : []))

/** A copy of the request with only those fields whose folded names pass. */
export const withFields = (request: InboundRequest, passes: (name: string) => boolean): InboundRequest => ({
  ...request,
  raw: request.raw.filter((_, at) => passes(request.names[at >> 1] ?? '')),
  names: request.names.filter(passes),
})
