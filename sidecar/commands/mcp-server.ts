/** Asks a running MCP server for its tools, first in the new revision of the protocol, then by the handshake of older ones. */
import { messageOf } from '../../pdp/shared/base/error-message.ts'
import type { JsonMembers } from '../../pdp/shared/base/json-text.ts'
import { isJsonObject } from '../../pdp/shared/domain/json.ts'
import { ConfigError } from '../../pdp/shared/process/exit.ts'
import { VERSION_KEY } from '../mcp/message.ts'
import { HANDSHAKE_REVISIONS, STATELESS_REVISIONS } from '../mcp/methods.ts'
import { RULES_MAX } from '../route-file/mcp.ts'
import { declaredCheck } from './declared-check.ts'

export type McpTool = {
  readonly name: string
  readonly description: string
  /** The server's own hints about the tool, which are not verified. */
  readonly hints: readonly string[]
  readonly arguments: readonly string[]
  /** The check that the tool declares; null: a route file cannot express it. Absent: the tool declares no check. */
  readonly declared?: string | null
}
export type McpServer = { readonly url: URL; readonly tools: readonly McpTool[] }

/** `fields`: header fields of the session or of the revision. `meta`: the `_meta` member of each message. */
type Manner = { readonly fields: { readonly [name: string]: string }; readonly meta: JsonMembers | null }

const TIMEOUT_MS = 20_000
const BYTES_MAX = 8 * 1024 * 1024
const HINTS = {
  readOnlyHint: 'read-only',
  destructiveHint: 'destructive',
  idempotentHint: 'idempotent',
  openWorldHint: 'reaches other systems',
}
const CLIENT = { name: 'portcullis-sidecar', version: '1' }

/** Lists the server's tools. Rejects with ConfigError. */
export async function readMcpServer(text: string): Promise<McpServer> {
  const url = URL.parse(text)
  if (url === null || !/^https?:$/.test(url.protocol) || url.username !== '' || url.search !== '' || url.hash !== '')
    throw new ConfigError([`${text} is not the URL of an MCP server, such as http://127.0.0.1:3001/mcp`])
  const signal = AbortSignal.timeout(TIMEOUT_MS)
  try {
    return { url, tools: await listTools(new Asking(url, signal)) }
  } catch (err) {
    if (err instanceof ConfigError) throw err
    throw new ConfigError([`${url.href} does not answer as an MCP server: ${messageOf(err)}`])
  }
}

async function listTools(asking: Asking): Promise<readonly McpTool[]> {
  const [revision = ''] = STATELESS_REVISIONS
  const meta = {
    [VERSION_KEY]: revision,
    'io.modelcontextprotocol/clientInfo': CLIENT,
    'io.modelcontextprotocol/clientCapabilities': {},
  }
  const stateless = { fields: { 'mcp-protocol-version': revision, 'mcp-method': 'tools/list' }, meta }
  const first = await asking.ask('tools/list', {}, stateless).catch(() => null)
  if (first !== null) return await allPages(asking, first.result, stateless)
  const handshake = await shakeHands(asking)
  const { result } = await asking.ask('tools/list', {}, handshake)
  return await allPages(asking, result, handshake)
}

async function shakeHands(asking: Asking): Promise<Manner> {
  const params = { protocolVersion: HANDSHAKE_REVISIONS.at(-1), capabilities: {}, clientInfo: CLIENT }
  const { result, session } = await asking.ask('initialize', params, { fields: {}, meta: null })
  const fields = {
    'mcp-protocol-version': String(result.protocolVersion),
    ...(session !== null && { 'mcp-session-id': session }),
  }
  await asking.notify('notifications/initialized', fields)
  return { fields, meta: null }
}

async function allPages(asking: Asking, first: JsonMembers, manner: Manner): Promise<readonly McpTool[]> {
  const tools = toolsIn(first)
  for (let page = first; typeof page.nextCursor === 'string'; ) {
    if (tools.length > RULES_MAX) throw new ConfigError([`the server has more than ${RULES_MAX} tools`])
    const { result } = await asking.ask('tools/list', { cursor: page.nextCursor }, manner)
    const more = toolsIn(result)
    if (more.length === 0) break
    tools.push(...more)
    page = result
  }
  return tools
}

function toolsIn({ tools }: JsonMembers): McpTool[] {
  if (!Array.isArray(tools)) throw new TypeError('its list of tools is none')
  return tools.map((tool: unknown) => {
    if (!isJsonObject(tool) || typeof tool.name !== 'string') throw new TypeError('a tool of its list has no name')
    const { annotations, inputSchema, description } = tool
    const said = isJsonObject(annotations) ? annotations : {}
    const schema = isJsonObject(inputSchema) && isJsonObject(inputSchema.properties) ? inputSchema.properties : {}
    const mapping = isJsonObject(inputSchema) ? inputSchema['x-authzen-mapping'] : undefined
    return {
      name: tool.name,
      description: typeof description === 'string' ? description : '',
      hints: Object.entries(HINTS).flatMap(([hint, words]) => (said[hint] === true ? [words] : [])),
      arguments: Object.keys(schema),
      ...(mapping !== undefined && { declared: declaredCheck(mapping) }),
    }
  })
}

class Asking {
  readonly #url: URL
  readonly #signal: AbortSignal
  #id = 0
  constructor(url: URL, signal: AbortSignal) {
    this.#url = url
    this.#signal = signal
  }

  /** Rejects with Error when the answer has no result. */
  async ask(method: string, params: JsonMembers, { fields, meta }: Manner) {
    this.#id += 1
    const id = this.#id
    const message = { jsonrpc: '2.0', id, method, params: meta === null ? params : { ...params, _meta: meta } }
    const response = await this.#send(message, fields)
    const answer = await readAnswer(response, id)
    if (!isJsonObject(answer.result)) {
      const { error } = answer
      throw new Error(isJsonObject(error) ? `${method}: ${String(error.message)}` : `${method} has no result`)
    }
    return { result: answer.result, session: response.headers.get('mcp-session-id') }
  }

  async notify(method: string, fields: Manner['fields']): Promise<void> {
    const response = await this.#send({ jsonrpc: '2.0', method }, fields)
    await response.body?.cancel()
  }

  async #send(message: object, fields: Manner['fields']): Promise<Response> {
    const response = await fetch(this.#url, {
      method: 'POST',
      redirect: 'error',
      signal: this.#signal,
      headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream', ...fields },
      body: JSON.stringify(message),
    })
    if (response.ok) return response
    await response.body?.cancel()
    throw new Error(`it answered with status ${response.status}`)
  }
}

/** The message with this id, from a document or from a stream of events, which may stay open. */
async function readAnswer(response: Response, id: number): Promise<JsonMembers> {
  const isStream = response.headers.get('content-type')?.startsWith('text/event-stream') === true
  const decoder = new TextDecoder('utf-8', { fatal: true })
  let text = ''
  let length = 0
  for await (const chunk of response.body ?? []) {
    length += chunk.length
    if (length > BYTES_MAX) throw new Error('its answer is too long')
    text += decoder.decode(chunk, { stream: true })
    if (!isStream) continue
    const events = text.split(/\r\n\r\n|\n\n|\r\r/)
    text = events.pop() ?? ''
    const found = events.map(dataOf).find((message) => message?.id === id)
    if (found !== undefined && found !== null) return found
  }
  const message: unknown = isStream ? null : JSON.parse(text)
  if (!isJsonObject(message) || message.id !== id)
    throw new Error('its answer has no message with the id of the request')
  return message
}

function dataOf(event: string): JsonMembers | null {
  const lines = [...event.matchAll(/^data: ?(.*)$/gm)].map(([, line = '']) => line)
  if (lines.length === 0 || lines.every((line) => line === '')) return null
  const message: unknown = JSON.parse(lines.join('\n'))
  return isJsonObject(message) ? message : null
}
