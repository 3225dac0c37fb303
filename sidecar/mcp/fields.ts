/** The header fields of MCP: fields that repeat the body must agree with it, and a session belongs to one subject. */

import { foldName } from '../http/folding.ts'
import { type InboundRequest, withFields } from '../request/inbound.ts'
import { endOfValue, findValue } from '../routes/json-body.ts'
import type { McpMessage } from './message.ts'
import { RPC, RpcError } from './rpc-error.ts'

const VERSION = 'mcp-protocol-version'
export const SESSION = 'mcp-session-id'
const METHOD = 'mcp-method'
const NAME = 'mcp-name'
const PARAM = 'mcp-param-'
const RESUMED = 'last-event-id'

/** The protocol revision that the request names; null: none. Throws RpcError. */
export const namedRevision = (request: InboundRequest): string | null => single(request, VERSION)

/** The session id that the request names; null: none. Throws RpcError. */
export const namedSession = (request: InboundRequest): string | null => single(request, SESSION)

/** The value of a field; null: absent. Throws RpcError for a repeated field. */
function single({ raw, names, connectionListed }: InboundRequest, name: string): string | null {
  const found = names.flatMap((folded, at) => (folded === name ? [at] : []))
  const [at] = found
  if (at === undefined) return null
  if (found.length > 1 || connectionListed.has(name) || raw[2 * at]?.toLowerCase() !== name)
    throw mismatch(null, `There must be at most one ${name} field, which Connection does not list`)
  return raw[2 * at + 1] ?? ''
}

const mismatch = (id: string | null, message: string): RpcError =>
  new RpcError('request_invalid', message, { id, code: RPC.headers, status: 400, message })

/** Throws RpcError where a field differs from the body. The server decides about absent fields. */
export function refuseDisagreement(request: InboundRequest, { id, isStateless, method, name, text }: McpMessage): void {
  if (!isStateless) return
  const refuse = (field: string): never => {
    throw mismatch(id, `${field} and the body differ`)
  }
  const said = single(request, METHOD)
  if (said !== null && said !== method) refuse('Mcp-Method')
  const named = single(request, NAME)
  if (named !== null && decoded(named) !== name) refuse('Mcp-Name')
  let values: ReturnType<typeof argumentTexts> | null = null
  for (const [at, folded] of request.names.entries()) {
    if (!folded.startsWith(PARAM)) continue
    const value = decoded(single(request, folded) ?? '')
    values ??= argumentTexts(text)
    const own = values.named.get(folded.slice(PARAM.length))
    if (value === null || !values.all.has(value) || (own !== undefined && own !== value))
      refuse(`Mcp-Param-${(request.raw[2 * at] ?? '').slice(PARAM.length)}`)
  }
}

const ENCODED = /^=\?base64\?([A-Za-z0-9+/]*={0,2})\?=$/
const UTF8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** The decoded value; null: it is marked as encoded, or has characters that need it, but cannot be decoded. */
function decoded(value: string): string | null {
  if (!/^=\?/.test(value)) return /^[\x20-\x7e]*$/.test(value) ? value : null
  const encoded = ENCODED.exec(value)?.[1]
  if (encoded === undefined) return null
  const bytes = Buffer.from(encoded, 'base64')
  if (bytes.toString('base64') !== encoded) return null
  try {
    return UTF8.decode(bytes)
  } catch {
    return null
  }
}

/**
 * All texts, numbers and booleans in the arguments: only the server knows which of them a field repeats. `named`: those of arguments with
 * the same folded name as a field.
 */
function argumentTexts(text: string): {
  readonly all: ReadonlySet<string>
  readonly named: ReadonlyMap<string, string>
} {
  const at = findValue(text, ['params', 'arguments'])
  const found = new Set<string>()
  const given: unknown = at === null ? {} : JSON.parse(text.slice(at, endOfValue(text, at)))
  const named = new Map<string, string>()
  for (const [name, value] of Object.entries(typeof given === 'object' && given !== null ? given : {}))
    if (typeof value !== 'object') named.set(foldName(name), String(value))
  const open: unknown[] = [given]
  while (open.length > 0) {
    const value = open.pop()
    if (typeof value === 'object' && value !== null) for (const item of Object.values(value)) open.push(item)
    else if (value !== null) found.add(String(value))
  }
  return { all: found, named }
}

/**
 * The request in the form for the service. Fields that repeat the body are removed in revisions that lack them. An old stream is not
 * resumed: nobody would know to which call its events belong. Answers come uncompressed, since lists are edited, and a cut stream gets an
 * event of ours.
 */
export function serviceRequest(
  request: InboundRequest,
  how: { readonly isStateless: boolean; readonly session: string | null },
): InboundRequest {
  const sent = withFields(request, (name) => {
    const repeats = name === METHOD || name === NAME || name.startsWith(PARAM)
    return !(repeats && !how.isStateless) && ![RESUMED, SESSION, 'accept-encoding'].includes(name)
  })
  if (how.session === null) return sent
  return { ...sent, raw: [...sent.raw, SESSION, how.session], names: [...sent.names, foldName(SESSION)] }
}

/** The resource URIs to which the message `subscriptions/listen` subscribes. Throws RpcError. */
export function listenedUris({ text, id }: McpMessage): readonly string[] {
  const at = findValue(text, ['params', 'notifications', 'resourceSubscriptions'])
  if (at === null) return []
  const uris: unknown = JSON.parse(text.slice(at, endOfValue(text, at)))
  if (Array.isArray(uris) && uris.length <= URIS_MAX && uris.every((uri) => typeof uri === 'string')) return uris
  const message = `resourceSubscriptions must be a list of at most ${URIS_MAX} URIs`
  throw new RpcError('request_invalid', message, { id, code: RPC.params, status: null, message })
}

const URIS_MAX = 64
