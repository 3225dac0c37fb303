/** Parses the `tests` of a route file: requests and their expected results. They need no network. */
import type { Node } from 'yaml'
import { parseAddress } from '../../pdp/shared/base/addresses.ts'
import type { ContextValue } from '../routes/context.ts'
import type { Route } from '../routes/route.ts'
import { constantOf } from './context.ts'
import { EXPECT, REQUEST, STATUS, TEST } from './format.ts'
import { HEADER } from './words/schema.ts'
import type { YamlReader } from './words/yaml-reader.ts'

export type RouteTest = {
  readonly line: number
  readonly method: string
  /** Origin or absolute form. */
  readonly target: string
  /** Claims of the token; null: no token. */
  readonly as: { readonly [claim: string]: ContextValue } | null
  /** The address of the client; null: not known. */
  readonly from: string | null
  readonly headers: readonly (readonly [name: string, value: string])[]
  /** Null: none. */
  readonly body: string | null
  readonly expect: {
    /** Id of the route; null: not tested. */
    readonly route: string | null
    readonly asks: readonly string[] | null
    readonly context: { readonly [parameter: string]: ContextValue } | null
    readonly status: number | null
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
  if (members === null || members.request === null || members.expect === null) return null
  const match = REQUEST.exec(reader.text(members.request, 'request') ?? '')
  if (match === null) reader.report(members.request, 'request must be "METHOD /path" or "METHOD http://host/path"')
  const expect = reader.members(members.expect, 'expect', EXPECT)
  const as = members.as === null ? null : constants(reader, members.as, 'as')
  const from = members.from === null ? null : parseAddress(reader.text(members.from, 'from') ?? '')
  if (members.from !== null && from === null) reader.report(members.from, 'from must be an IP address')
  if (match === null || expect === null) return null
  const route = expect.route === null ? null : reader.text(expect.route, 'route')
  if (route !== null && !routes.some(({ id }) => id === route))
    reader.report(expect.route, `the route ${route} does not exist`)
  const asks = expect.asks === null ? null : (reader.items(expect.asks, 'asks') ?? [])
  return {
    line: reader.lineOf(members.request),
    method: match[1] ?? '',
    target: match[2] ?? '',
    as,
    from,
    headers: members.headers === null ? [] : parseHeaders(reader, members.headers),
    body: members.body === null ? null : reader.text(members.body, 'body'),
    expect: {
      route,
      asks: asks?.map((item) => reader.text(item, 'a question')).filter((text) => text !== null) ?? null,
      context: expect.context === null ? null : constants(reader, expect.context, 'context'),
      status: expect.status === null ? null : reader.count(expect.status, 'status', STATUS),
    },
  }
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
