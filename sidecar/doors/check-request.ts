/** Reads the request about which Envoy asks. It is read as strictly as a request at the data port. */
import { METHODS } from 'node:http'
import { Readable } from 'node:stream'
import { parseAddress } from '../../pdp/shared/base/addresses.ts'
import type {
  AttributeContext_HttpRequest,
  CheckRequest,
} from '../../proto/gen/envoy/service/auth/v3/external_auth_pb.ts'
import { type ClientRequest, syntheticRequest } from '../http/client-request.ts'
import type { GrpcProfile } from '../http/door-fields.ts'
import { pairsOf, valuesOf } from '../http/fields.ts'
import { RequestError } from '../request/errors.ts'
import type { HeldRequest } from './held-request.ts'

const VERSIONS: { readonly [protocol: string]: ClientRequest['version'] } = {
  'HTTP/1.0': '1.0',
  'HTTP/1.1': '1.1',
  'HTTP/2': '2',
  // HTTP/3 is treated exactly as HTTP/2.
  'HTTP/3': '2',
}
const KNOWN_METHODS = new Set(METHODS)
const SCHEMES: readonly string[] = ['http', 'https']
// RFC 9110 sections 5.1 and 5.5: a token, and no control characters, which also end a folded line.
const NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/
const VALUE = /^[\t\x20-\x7e\x80-\xff]*$/
/** True if Envoy sent only a part of the body. Only a gateway that sends bodies sends the field. */
export const PARTIAL_FIELD = 'x-envoy-auth-partial-body'

/** The gateway is configured in a way that hides parts of the request which must be checked. */
export class UnfitGateway extends Error {
  override readonly name = 'UnfitGateway'
}

type How = { readonly profile: GrpcProfile; readonly body: boolean }

/** Throws UnfitGateway. Anything wrong with the request itself becomes its fault. */
export function readCheck(check: CheckRequest, how: How): HeldRequest {
  const { source, request } = check.attributes ?? {}
  const http = request?.http
  if (http === undefined) throw new UnfitGateway('the question has no HTTP request')
  const fields = http.headerMap === undefined ? joinedFields(http, how) : rawFields(http.headerMap.headers)
  const { pseudo, raw } = split(fields)
  const fault = faultOf(http, { pseudo, raw, replaced: http.headerMap === undefined })
  const peer = source?.address?.socketAddress?.address ?? ''
  const address = parseAddress(peer) ?? ''
  const scheme = http.scheme === 'https' ? 'https' : 'http'
  const body = how.body ? bodyOf(http, raw) : []
  const client: ClientRequest = {
    ...syntheticRequest({ method: http.method, target: http.path, raw: withHost(http, raw) }),
    version: VERSIONS[http.protocol] ?? '1.1',
    fault,
    scheme,
    body: Readable.from(body, { objectMode: false }),
    peerAddress: () => address,
  }
  return { client, origin: { address, scheme, host: null, fault: null } }
}

type Field = readonly [name: string, value: string]

const rawFields = (headers: readonly { key: string; value: string; rawValue: Uint8Array }[]): Field[] =>
  headers.map(({ key, value, rawValue }) => [
    key,
    Buffer.from(rawValue.length > 0 ? rawValue : value).toString('latin1'),
  ])

/**
 * The fields as Envoy sends them: repeated ones joined by commas, and bytes that are not UTF-8 replaced by `!`, although the service gets
 * the original. A value that may have been two fields, or another value, counts as two, so that a check which needs it once refuses.
 */
function joinedFields({ headers }: AttributeContext_HttpRequest, { profile }: How): Field[] {
  if (profile === 'envoy') throw new UnfitGateway('no raw header fields came: set encode_raw_headers: true')
  return Object.entries(headers).flatMap(([name, text]): Field[] => {
    const value = Buffer.from(text).toString('latin1')
    const unsure = value.search(/[,!]/)
    if (unsure < 0 || name.startsWith(':')) return [[name, value]]
    return [
      [name, value.slice(0, unsure)],
      [name, value.slice(unsure + 1)],
    ]
  })
}

function split(fields: readonly Field[]): { pseudo: ReadonlyMap<string, string>; raw: string[] } {
  const pseudo = new Map<string, string>()
  const raw: string[] = []
  for (const [name, value] of fields) {
    if (name.startsWith(':')) pseudo.set(name, value)
    else raw.push(name, value)
  }
  return { pseudo, raw }
}

/** The fields with the authority as Host. A Host field that came as well stays; the request then has two, and is refused. */
const withHost = ({ host }: AttributeContext_HttpRequest, raw: readonly string[]): string[] =>
  host === '' ? [...raw] : ['host', host, ...raw]

function faultOf(
  http: AttributeContext_HttpRequest,
  about: {
    readonly pseudo: ReadonlyMap<string, string>
    readonly raw: readonly string[]
    /** True: bytes that are not UTF-8 were replaced by `!`. False: the raw path was sent, and is compared with this one. */
    readonly replaced: boolean
  },
): string | null {
  const { method, path, host, scheme, protocol, query, fragment } = http
  const { pseudo, raw, replaced } = about
  if (VERSIONS[protocol] === undefined) return 'The HTTP version must be 1.0, 1.1, 2 or 3'
  if (!KNOWN_METHODS.has(method)) return 'The method is unknown'
  if (!SCHEMES.includes(scheme)) return 'The scheme is neither http nor https'
  // For CONNECT, scheme and path are absent; the pipeline refuses it by its method.
  if (method !== 'CONNECT' && !path.startsWith('/')) return 'The path must start with a slash'
  if (replaced && path.includes('!')) return 'The gateway may have replaced bytes of the path by !'
  if (query !== '' || fragment !== '') return 'The query and the fragment came apart from the path'
  const said = { ':method': method, ':path': path, ':authority': host, ':scheme': scheme }
  for (const [name, value] of Object.entries(said))
    if (pseudo.has(name) && pseudo.get(name) !== value) return 'The gateway describes two different requests'
  for (const [name, value] of pairsOf(raw)) {
    if (!NAME.test(name) || !VALUE.test(value)) return 'A header field is malformed'
    // A gateway does not ask about the bytes after an upgrade, so the upgrade is refused.
    if (name.toLowerCase() === 'upgrade') return 'A gateway that asks here cannot upgrade a connection'
  }
  return null
}

const DESCRIBING = new Set(['content-type', 'content-length'])

/** The body. Throws RequestError when it is read and is not whole. */
function* bodyOf({ body, rawBody, size }: AttributeContext_HttpRequest, raw: readonly string[]): Generator<Buffer> {
  const partial = valuesOf(raw, PARTIAL_FIELD)
  const bytes = rawBody.length > 0 ? Buffer.from(rawBody) : Buffer.from(body)
  const isDescribed = raw.some((name, at) => at % 2 === 0 && DESCRIBING.has(name.toLowerCase()))
  // Envoy sends no sign of a body, so the request has none.
  if (partial.length === 0 && bytes.length === 0 && size <= 0n && !isDescribed) return
  const isWhole = partial.length > 0 && partial.every((value) => value === 'false')
  if (!isWhole || (size >= 0n && size !== BigInt(bytes.length)))
    throw new RequestError('request_too_large', 'The gateway did not send the whole body')
  if (bytes.length > 0) yield bytes
}
