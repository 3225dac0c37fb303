/** Parses the `tests` of a route file: requests and their expected results. They need no network. */
import type { Node } from 'yaml'
import type { Route } from '../routes/route.ts'
import { EXPECT, REQUEST, STATUS, TEST } from './format.ts'
import type { YamlReader } from './yaml-reader.ts'

export type RouteTest = {
  readonly line: number
  readonly method: string
  /** Origin or absolute form. */
  readonly target: string
  /** Claims of the token; null: no token. */
  readonly as: { readonly [claim: string]: string } | null
  readonly expect: {
    /** Id of the route; null: not tested. */
    readonly route: string | null
    readonly asks: readonly string[] | null
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
  const as = members.as === null ? null : parseClaims(reader, members.as)
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
    expect: {
      route,
      asks: asks?.map((item) => reader.text(item, 'a question')).filter((text) => text !== null) ?? null,
      status: expect.status === null ? null : reader.count(expect.status, 'status', STATUS),
    },
  }
}

function parseClaims(reader: YamlReader, node: Node): { readonly [claim: string]: string } {
  const claims: { [claim: string]: string } = Object.create(null)
  for (const { key, value } of reader.entries(node, 'as') ?? []) claims[key] = reader.text(value, key) ?? ''
  return claims
}
