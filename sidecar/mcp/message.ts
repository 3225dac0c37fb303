/** Reads an MCP client's message from the body. Refuses a message that two parsers could read differently. */
import { stringAt } from '../../pdp/shared/base/json-text.ts'
import { RequestError } from '../request/errors.ts'
import { findValue, readJson, refuseRepeated, skipSpace, writtenAt } from '../routes/json-body.ts'
import { HANDSHAKE_REVISIONS, type McpMethod, methodOf, STATELESS_REVISIONS, UNNAMED_REVISION } from './methods.ts'
import { RPC, RpcError } from './rpc-error.ts'

export type McpMessage = {
  readonly text: string
  /** The id as JSON text; null: the message is a notification. */
  readonly id: string | null
  /** The method; null: the message is a client's answer to a request of its server. */
  readonly method: string | null
  readonly does: McpMethod
  /** The tool's or prompt's name, or the resource's URI; null: the method has none. */
  readonly name: string | null
  readonly revision: string
  readonly isStateless: boolean
}

const NO_ID = /^null$/
const ID = /^(?:"(?:[^"\\]|\\.){0,256}"|-?(?:0|[1-9]\d{0,15}))$/
export const VERSION_KEY = 'io.modelcontextprotocol/protocolVersion'
const ANSWER: McpMethod = { rule: 'open' }

/** Reads the message. `named`: the revision in the MCP-Protocol-Version field; null: no such field. Throws RpcError. */
export function readMessage(body: Buffer, named: string | null): McpMessage {
  const text = readText(body)
  let id: string | null = null
  const refuse = (code: number, message: string, more: { status?: number; data?: object } = {}): never => {
    const { status = 400, data = {} } = more
    throw new RpcError('request_invalid', message, { id, code, status, message, data: { ...data } })
  }
  try {
    refuseRepeated(text)
    id = readId(text)
    if (stringOf(text, ['jsonrpc']) !== '2.0') refuse(RPC.request, 'The message is not JSON-RPC 2.0')
    const method = stringOf(text, ['method'])
    const params = findValue(text, ['params'])
    if (params !== null && text[params] !== '{') refuse(RPC.request, 'params must be an object')
    const revision = revisionOf(text, { method, named }, refuse)
    const isStateless = STATELESS_REVISIONS.includes(revision)
    const shared = { text, id, method, revision, isStateless }
    if (method === null) {
      const isAnswer = findValue(text, ['result']) !== null || findValue(text, ['error']) !== null
      if (!isAnswer || id === null || isStateless) refuse(RPC.request, 'The message has no method')
      return { ...shared, id: null, does: ANSWER, name: null }
    }
    const does = methodOf(revision, method)
    // The status with which servers of each revision answer an unknown method.
    const status = isStateless ? 404 : id === null ? 400 : 200
    if (does === null) return refuse(RPC.method, 'The method is not supported here', { status })
    if (method.startsWith('notifications/') !== (id === null) && does.rule === 'open')
      refuse(RPC.request, 'A request has an id, and a notification has none')
    const name = does.name === undefined ? null : stringOf(text, ['params', does.name])
    if (does.name !== undefined && name === null)
      refuse(RPC.params, `params.${does.name} is missing`, { status: id === null ? 400 : 200 })
    // Tasks are refused: a task goes on after its permission has ended, and the sidecar cannot tell whose its result is.
    if (does.rule === 'tool' && findValue(text, ['params', 'task']) !== null)
      refuse(RPC.params, 'Calls as tasks are not supported here', { status: id === null ? 400 : 200 })
    return { ...shared, does, name }
  } catch (err) {
    if (!(err instanceof RequestError) || err instanceof RpcError) throw err
    return refuse(RPC.request, err.message)
  }
}

function readText(body: Buffer): string {
  const refused = (code: number, message: string) =>
    new RpcError('request_invalid', message, { id: null, code, status: 400, message })
  let text: string
  try {
    text = readJson(body)
  } catch {
    throw refused(RPC.parse, 'The body is not JSON in UTF-8')
  }
  if (text[skipSpace(text, 0)] !== '{') throw refused(RPC.request, 'The body must be one message, which is an object')
  return text
}

/** The id as JSON text; null: no id. Throws RequestError. */
function readId(text: string): string | null {
  const at = findValue(text, ['id'])
  if (at === null) return null
  const id = writtenAt(text, at)
  if (ID.test(id)) return id
  const message = NO_ID.test(id) ? 'id must not be null' : 'id must be a string or an integer'
  throw new RpcError('request_invalid', message, { id: null, code: RPC.request, status: 400, message })
}

/** The text at this path; null: no such member. Throws RequestError for another type. */
export function stringOf(text: string, path: readonly string[]): string | null {
  const at = findValue(text, path)
  if (at === null) return null
  const written = writtenAt(text, at)
  if (!written.startsWith('"')) throw new RequestError('request_invalid', `${path.join('.')} must be a string`)
  const value = stringAt(written, 0, written.length)
  if (!value.isWellFormed() || value.includes('\0'))
    throw new RequestError('request_invalid', `${path.join('.')} has a character that readers take for different ones`)
  return value
}

function revisionOf(
  text: string,
  { method, named }: { readonly method: string | null; readonly named: string | null },
  refuse: (code: number, message: string, more?: { status?: number; data?: object }) => never,
): string {
  const meta = findValue(text, ['params', '_meta'])
  const inBody = meta === null || text[meta] !== '{' ? null : stringOf(text, ['params', '_meta', VERSION_KEY])
  if (named !== null && inBody !== null && named !== inBody)
    refuse(RPC.headers, 'MCP-Protocol-Version and the body name different revisions')
  const supported = [...STATELESS_REVISIONS, ...[...HANDSHAKE_REVISIONS].reverse()]
  const revision = inBody ?? named ?? UNNAMED_REVISION
  if (supported.includes(revision)) return revision
  // `initialize` may name no revision yet: client and server agree on one in this handshake.
  if (method === 'initialize' && inBody === null) return UNNAMED_REVISION
  return refuse(RPC.revision, 'This revision of the protocol is not supported here', {
    data: { supported, requested: revision.slice(0, 32) },
  })
}
