/** `init`: makes a first route file: a route and tests for each operation of an OpenAPI document, or a rule for each tool of MCP. */
import { isDeepStrictEqual } from 'node:util'
import { Document, isMap, isScalar } from 'yaml'
import { ConfigError } from '../../pdp/shared/process/exit.ts'
import { RULES_MAX } from '../route-file/mcp.ts'
import { openLists } from '../route-file/open-lists.ts'
import { parseRouteFile } from '../route-file/route-file.ts'
import { parsePattern, patternText } from '../routes/patterns.ts'
import { isSameRoute, type Route } from '../routes/route.ts'
import { type CheckText, checkOfMapping, MappingError } from './coaz.ts'
import type { McpServer, McpTool } from './mcp-server.ts'
import type { ApiDescription, Operation } from './openapi.ts'

export type FirstRouteFile = {
  readonly text: string
  /** Operations that a route file cannot express or tell apart, each with its reason. */
  readonly leftOut: readonly string[]
}
type FirstRoute = Pick<Route, 'id' | 'host' | 'method' | 'pattern'> & { readonly check: CheckText }

const EXAMPLE: ApiDescription & { readonly origin: string } = {
  origin: 'https://app.example.com',
  operations: [
    { method: 'GET', path: '/healthz', isPublic: true },
    { method: 'GET', path: '/**', isPublic: false },
  ],
}

/** `api`: null without a document. `schema`: the address of the schema for editors. Throws ConfigError when no operation can be a route. */
export function firstRouteFile(api: ApiDescription | null, schema: string): FirstRouteFile {
  const { operations, origin } = api ?? EXAMPLE
  const { routes, leftOut } = routesOf(operations)
  if (routes.length === 0) throw new ConfigError(leftOut.map((reason) => `no route for ${reason}`))
  const document = firstDocument({
    resource: origin ?? EXAMPLE.origin,
    upstream: 'http://127.0.0.1:3000',
    routes: Object.fromEntries(routes.map(({ id, check }) => [id, check])),
    tests: routes.flatMap(testsOf),
  })
  document.commentBefore = commentOf(schema, [
    ' routes: signed_in accepts every active access token. Say more where it matters: viewer invoice:{id}.',
    ' Every key is explained in docs/routes.md.',
    ...leftOut.map((reason) => ` Without a route: ${reason}`),
  ])
  const { file } = parseRouteFile(document.toString({ lineWidth: 0 }))
  const places = new Map(operations.map(({ method, path, list }) => [`${method} ${path}`, list]))
  const open = file === null ? [] : openLists(file, (id) => places.get(id) ?? '$.items[*]')
  if (open.length > 0) document.commentBefore += open.map((sentence) => `\n ${sentence}`).join('')
  return { text: document.toString({ lineWidth: 0 }), leftOut }
}

/** A route file for an MCP server. Each tool's check asks for a relationship that no subject has yet. Throws ConfigError. */
export function firstMcpRouteFile({ url, tools }: McpServer, schema: string): FirstRouteFile {
  const pattern = parsePattern(url.pathname)
  if (typeof pattern === 'string') throw new ConfigError([`no route for ${url.pathname}: the path ${pattern}`])
  if (tools.length > RULES_MAX) throw new ConfigError([`the server has more than ${RULES_MAX} tools`])
  const id = `MCP ${patternText(pattern)}`
  const known = new Map(tools.filter(({ name }) => TOOL.test(name)).map((tool) => [tool.name, tool]))
  const leftOut = tools.filter(({ name }) => !TOOL.test(name)).map(({ name }) => `${plain(name)}, because of its name`)
  const checkOf = (name: string): string => `caller mcp_tool:${name}`
  const document = firstDocument({
    resource: EXAMPLE.origin,
    upstream: url.origin,
    routes: { [id]: { tools: Object.fromEntries([...known.keys()].map((name) => [name, checkOf(name)])) } },
    tests: [...known.keys()].map((name) => ({
      mcp: `tools/call ${name}`,
      as: { sub: 'alice' },
      expect: { asks: [checkOf(name)] },
    })),
  })
  const rules = document.getIn(['routes', id, 'tools'])
  for (const { key } of isMap(rules) ? rules.items : []) {
    const tool = isScalar(key) ? known.get(String(key.value)) : undefined
    if (isScalar(key) && tool !== undefined) key.commentBefore = aboutTool(tool)
  }
  document.commentBefore = commentOf(schema, [
    ' tools: nobody may call one until a relationship says so, such as mcp_tool:NAME#caller@user:alice. signed_in allows everybody;',
    ' viewer customer:{arguments.id} asks about an argument; {check: "viewer customer:{arguments.id}", listed: some} lists the tool to those',
    ' who view some customer, and not to all. A tool, prompt or resource that is not named here is denied.',
    ' Every key is explained in docs/routes.md.',
    ...leftOut.map((reason) => ` Without a rule: ${reason}`),
  ])
  return { text: document.toString({ lineWidth: 0 }), leftOut }
}

/** Matches tool names that follow MCP's recommendation. */
const TOOL = /^[A-Za-z0-9_./-]{1,128}$/
const TEXT_MAX = 120

function aboutTool({ description, hints, arguments: names, declared }: McpTool): string {
  const said = hints.length === 0 ? [] : [`The server says: ${hints.join(', ')}.`]
  const taken = names.length === 0 ? [] : [`Arguments: ${plain(names.join(', '))}.`]
  const about = [...(description === '' ? [] : [`${plain(description).replace(/\.$/, '')}.`]), ...said, ...taken]
  if (declared === null) about.push('It declares a mapping (COAZ-MCP) that is no check here.')
  else if (declared !== undefined) about.push(`It declares the check (COAZ-MCP): ${declared}.`)
  return ` ${about.join(' ')}`
}

/** The text as one line: text of a server must not become a rule of the file. */
function plain(text: string): string {
  const line = text.replaceAll(/[\p{C}\p{Z}]+/gu, ' ').trim()
  return line.length > TEXT_MAX ? `${line.slice(0, TEXT_MAX).toWellFormed()}…` : line
}

type Written = {
  readonly resource: string
  readonly upstream: string
  readonly routes: object
  readonly tests: object[]
}
const firstDocument = ({ resource, upstream, routes, tests }: Written): Document =>
  new Document({
    portcullis: 'v1',
    resource,
    hosts: [...new Set([new URL(resource).hostname, 'localhost'])],
    issuers: [{ issuer: 'http://127.0.0.1:8080' }],
    upstream,
    pdp: { address: '127.0.0.1:9090', insecure: true },
    routes,
    tests,
  })

const commentOf = (schema: string, lines: readonly string[]): string =>
  [
    ` yaml-language-server: $schema=${schema}`,
    ' resource: the audience that tokens must have. hosts: the host names that are served; remove localhost later.',
    ' pdp: plain text (insecure) is for loopback only.',
    ...lines,
  ].join('\n')

function routesOf(operations: readonly Operation[]): { routes: readonly FirstRoute[]; leftOut: readonly string[] } {
  const routes: FirstRoute[] = []
  const leftOut: string[] = []
  for (const operation of operations) {
    const { method, path } = operation
    const pattern = parsePattern(path.split('/').map(routeSegment).join('/'))
    if (typeof pattern === 'string') {
      leftOut.push(`${method} ${path}, because the path ${pattern}`)
      continue
    }
    const id = `${method} ${patternText(pattern)}`
    const check = checkOrReason(operation)
    if (check instanceof MappingError) {
      leftOut.push(`${method} ${path}, because ${check.message}`)
      continue
    }
    const route: FirstRoute = { id, host: null, method, pattern, check }
    const same = routes.find((other) => isSameRoute(route, other))
    if (same === undefined) routes.push(route)
    else if (!isDeepStrictEqual(same.check, check))
      leftOut.push(`${method} ${path}, because it is the same route as ${same.id}, with another check`)
  }
  return { routes, leftOut }
}

/** The check of an operation, or the reason why no check can express its mapping: such an operation must not become `signed_in`. */
function checkOrReason({ isPublic, mapping }: Operation): CheckText | MappingError {
  if (mapping === undefined) return isPublic ? 'public' : 'signed_in'
  try {
    if (isPublic) throw new MappingError('it needs no credentials, and has a mapping')
    return checkOfMapping(mapping, parameterName)
  } catch (err) {
    if (err instanceof MappingError) return err
    throw err
  }
}

/** A segment of a route has one parameter, so `{base}...{head}` becomes `{base_head}`, which matches the same and more. */
function routeSegment(text: string): string {
  const parts = text.replaceAll(/\{([^{}]*)\}/g, (_, name: string) => `{${parameterName(name)}}`)
  const names = [...parts.matchAll(/\{(\w+)\}/g)].map(([, name]) => name)
  return names.length < 2 ? parts : `{${names.join('_')}}`
}

/** Names of parameters in a route file have letters, digits and `_`. */
const parameterName = (name: string): string => name.replaceAll(/\W/g, '_').replace(/^(?=[^A-Za-z]|$)/, 'p')

function testsOf({ id, method, pattern, check }: FirstRoute): object[] {
  const path = patternText(pattern).replaceAll(/\{(\w+)\}/g, 'some-$1')
  const request = `${method} ${pattern.rest ? path.replace(/\*\*$/, 'some/path') : path}`
  if (check === 'public') return [{ request, expect: { route: id } }]
  return [
    // No test for other checks, since the values that they read are unknown here.
    ...(check === 'signed_in' ? [{ request, as: { sub: 'alice' }, expect: { route: id } }] : []),
    { request, expect: { route: id, status: 401 } },
  ]
}
