/** Parses the `tests` of a route file: requests and their expected results. They need no network. */
import type { Node } from 'yaml'
import { parseAddress } from '../../pdp/shared/base/addresses.ts'
import type { ContextValue } from '../routes/context.ts'
import { patternText } from '../routes/patterns.ts'
import type { Route } from '../routes/route.ts'
import { constantOf } from './context.ts'
import { EXPECT, MCP_CALL, REQUEST, STATUS, TEST } from './format.ts'
import { HEADER } from './words/schema.ts'
import type { YamlReader } from './words/yaml-reader.ts'

export type RouteTest = {
  readonly line: number
  readonly method: string
  /** The target in origin form or absolute form. */
  readonly target: string
  /** Claims of the token; null: no token is sent. */
  readonly as: { readonly [claim: string]: ContextValue } | null
  /** The address of the client; null: unknown. */
  readonly from: string | null
  readonly headers: readonly (readonly [name: string, value: string])[]
  /** The body of the tested request; null: it has none. */
  readonly body: string | null
  /** An answer of the service, and the questions about its items that are allowed; null: only the request is tested. */
  readonly answer: { readonly text: string; readonly allowed: readonly string[] } | null
  readonly expect: {
    /** The id of the route; null: it is not tested. */
    readonly route: string | null
    readonly asks: readonly string[] | null
    readonly context: { readonly [parameter: string]: ContextValue } | null
    readonly status: number | null
    readonly answer: string | null
  }
}

/** Returns the valid tests. Reports errors to the reader. */
export function parseTests(reader: YamlReader, node: Node | null, routes: readonly Route[]): readonly RouteTest[] {
  if (node === null) return []
  const items = reader.items(node, 'tests') ?? []
  return items.map((item) => parseTest(reader, item, routes)).filter((test) => test !== null)
}

function parseTest(reader: YamlReader, node: Node | null, routes: readonly Route[]): RouteTest | null {
  const members = reader.members(node, 'a test', TEST)
  if (members === null || members.expect === null) return null
  if ((members.request === null) === (members.mcp === null)) {
    reader.report(node, 'a test needs either request or mcp')
    return null
  }
  const expect = reader.members(members.expect, 'expect', EXPECT)
  const as = members.as === null ? null : constants(reader, members.as, 'as')
  const from = members.from === null ? null : parseAddress(reader.text(members.from, 'from') ?? '')
  if (members.from !== null && from === null) reader.report(members.from, 'from must be an IP address')
  if (expect === null) return null
  const route = expect.route === null ? null : reader.text(expect.route, 'route')
  if (route !== null && !routes.some(({ id }) => id === route))
    reader.report(expect.route, `the route ${route} does not exist`)
  const asks = expect.asks === null ? null : (reader.items(expect.asks, 'asks') ?? [])
  const sent = members.mcp === null ? readRequest(reader, members) : readMcp(reader, members, { routes, route })
  if (sent === null) return null
  return {
    line: reader.lineOf(members.request ?? members.mcp),
    ...sent,
    as,
    from,
    headers: members.headers === null ? [] : parseHeaders(reader, members.headers),
    answer: parseAnswer(reader, members, expect.answer),
    expect: {
      route,
      asks: asks?.map((item) => reader.text(item, 'a question')).filter((text) => text !== null) ?? null,
      context: expect.context === null ? null : constants(reader, expect.context, 'context'),
      status: expect.status === null ? null : reader.count(expect.status, 'status', STATUS),
      answer: expect.answer === null ? null : reader.text(expect.answer, 'answer'),
    },
  }
}

type Nodes = { readonly [name in keyof typeof TEST]: Node | null }
function parseAnswer(reader: YamlReader, { answer, allowed }: Nodes, expected: Node | null): RouteTest['answer'] {
  const text = answer === null ? null : reader.text(answer, 'answer')
  if (allowed !== null && answer === null) reader.report(allowed, 'allowed needs answer: it is about the items of one')
  if (expected !== null && answer === null) reader.report(expected, 'expect.answer needs answer')
  if (answer !== null && expected === null) reader.report(answer, 'answer needs expect.answer')
  const questions = allowed === null ? [] : (reader.items(allowed, 'allowed') ?? [])
  if (text === null) return null
  return { text, allowed: questions.map((item) => reader.text(item, 'a question')).filter((one) => one !== null) }
}

function readRequest(
  reader: YamlReader,
  { request, body, arguments: given }: Nodes,
): Pick<RouteTest, 'method' | 'target' | 'body'> | null {
  if (given !== null) reader.report(given, 'arguments needs mcp')
  const match = REQUEST.exec(reader.text(request, 'request') ?? '')
  if (match === null) reader.report(request, 'request must be "METHOD /path" or "METHOD http://host/path"')
  if (match === null) return null
  return {
    method: match[1] ?? '',
    target: match[2] ?? '',
    body: body === null ? null : reader.text(body, 'body'),
  }
}

/** The JSON-RPC body that MCP clients would send, and its route: the expected one, or the file's only MCP route. */
function readMcp(
  reader: YamlReader,
  { mcp, body, arguments: given }: Nodes,
  { routes, route }: { readonly routes: readonly Route[]; readonly route: string | null },
): Pick<RouteTest, 'method' | 'target' | 'body'> | null {
  const [, method = '', name] = MCP_CALL.exec(reader.text(mcp, 'mcp') ?? '') ?? []
  const kinds = routes.filter((one) => one.mcp !== null && one.method === 'POST' && (route ?? one.id) === one.id)
  const [only] = kinds
  const target =
    only === undefined
      ? ''
      : `${only.host === null ? '' : `http://${only.host.replace('*', 'some')}`}${patternText(only.pattern)}`
  if (body !== null) reader.report(body, 'mcp makes the body: give arguments, or request in place of mcp')
  if (only === undefined || kinds.length > 1)
    reader.report(mcp, 'mcp needs one route of the kind MCP: name it in expect.route')
  else if (target.includes('{')) reader.report(mcp, 'the path of the route has parameters: give request and body')
  if (method === '') return null
  const named = name === undefined ? {} : method.startsWith('resources/') ? { uri: name } : { name }
  const params = { ...named, ...(given !== null && { arguments: constants(reader, given, 'arguments') }) }
  const id = method.startsWith('notifications/') ? {} : { id: 1 }
  return { method: 'POST', target, body: JSON.stringify({ jsonrpc: '2.0', ...id, method, params }) }
}

function constants(reader: YamlReader, node: Node, what: string): { readonly [name: string]: ContextValue } {
  const found: { [name: string]: ContextValue } = Object.create(null)
  for (const { key, keyNode, value } of reader.entries(node, what) ?? []) {
    const constant = constantOf(reader, value)
    if (typeof constant === 'object' && 'issue' in constant) reader.report(value ?? keyNode, `${key} ${constant.issue}`)
    else found[key] = constant
  }
  return found
}

function parseHeaders(reader: YamlReader, node: Node): readonly (readonly [name: string, value: string])[] {
  return (reader.entries(node, 'headers') ?? []).map(({ key, keyNode, value }) => {
    if (!HEADER.test(key)) reader.report(keyNode, `${JSON.stringify(key)} is not a header name`)
    return [key, reader.text(value, key) ?? ''] as const
  })
}
