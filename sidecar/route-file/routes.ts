/** Parses the `routes` of a route file. */
import { isMap, isScalar, isSeq, type Node } from 'yaml'
import { createHeaderRules, type HeaderNames, type HeaderRules } from '../http/fields.ts'
import { CHECKS_MAX } from '../pdp-client/question.ts'
import { parseAuthority } from '../request/target.ts'
import type { AnswerRule } from '../routes/answer-rule.ts'
import {
  admitsGuests,
  asksPermission,
  type Check,
  leavesOf,
  sourcesOf,
  TEXT_PARTS,
  usesBody,
} from '../routes/checks.ts'
import type { ContextEntry, RouteContext } from '../routes/context.ts'
import { ANYBODY } from '../routes/mcp-rules.ts'
import { beginsWith, parameterNames, parsePattern } from '../routes/patterns.ts'
import { isSameRoute, type Route, type RouteOptions } from '../routes/route.ts'
import { describeSource, parseSource, type Source } from '../routes/template.ts'
import { parseCheck } from './check.ts'
import { parseContext } from './context.ts'
import { ROUTE, ROUTES_MAX } from './format.ts'
import { readMcpRoute } from './mcp.ts'
import { type OptionDefaults, plainOptions, readRouteOptions, strippedIssue } from './options.ts'
import { readAnswerRule } from './words/answer.ts'
import { readComparison } from './words/comparison.ts'
import { type Entry, whyAbsent, type YamlReader } from './words/yaml-reader.ts'

export type RouteDefaults = OptionDefaults & {
  readonly headers: HeaderNames
  /** The file's `context`; null: there is none. */
  readonly context: Node | null
}
type Context = {
  readonly reader: YamlReader
  readonly parameters: readonly string[]
  readonly rules: HeaderRules
  /** True: `arguments.NAME` is an argument of a call of MCP. */
  readonly hasArguments?: boolean
  /** True: `item.NAME` is a member of an item of the answer. */
  readonly hasItem?: boolean
}
type RouteMembers = {
  readonly check: Node | null
  readonly withIdentity: boolean
  readonly context: Node | null
  readonly answer: Node | null
  readonly options: RouteOptions
}

const CHECK_DEPTH_MAX = 8
const KEY = /^(\*|[A-Z]+(?:-[A-Z]+)*)[ \t]+([^\s/]*)(\/\S*)$/
const COMBINATIONS: readonly string[] = ['all', 'any', 'equals', ...TEXT_PARTS]

/** Returns the valid routes. Reports errors to the reader. */
export function parseRoutes(reader: YamlReader, node: Node | null, defaults: RouteDefaults): readonly Route[] {
  if (node === null) return []
  const entries = reader.entries(node, 'routes') ?? []
  if (entries.length > ROUTES_MAX) reader.report(node, `routes has more than ${ROUTES_MAX} entries`)
  const rules = createHeaderRules(defaults.headers)
  const shared = parseSharedContext({ reader, parameters: [], rules }, defaults.context)
  const routes: { route: Route; node: Node | null }[] = []
  for (const entry of entries.slice(0, ROUTES_MAX)) {
    const one = parseRoute(reader, entry, { ...defaults, rules, shared })
    if (one !== null && !beginsWith(one.pattern, one.stripPath))
      reader.report(entry.keyNode, strippedIssue(one.id, one.stripPath))
    // MCP uses three methods: POST for messages, GET for the server's stream, DELETE for the end of a session.
    const methods = one === null ? [] : one.mcp === null ? [one.method] : MCP_METHODS
    for (const method of methods) if (one !== null) routes.push({ route: { ...one, method }, node: entry.keyNode })
  }
  noteSame(reader, routes)
  return routes.map(({ route }) => route)
}

const MCP_METHODS = ['POST', 'GET', 'DELETE']

function noteSame(reader: YamlReader, routes: readonly { route: Route; node: Node | null }[]): void {
  for (const [at, { route, node }] of routes.entries()) {
    const earlier = routes.slice(0, at).find((other) => isSameRoute(route, other.route))
    // One MCP route becomes three routes; a repetition is reported for only one of them.
    const isSaid = route.mcp !== null && route.method !== 'POST' && earlier?.route.mcp !== null
    if (earlier !== undefined && !isSaid) reader.report(node, `${route.id} is the same route as ${earlier.route.id}`)
  }
}

function parseRoute(
  reader: YamlReader,
  { key, keyNode, value }: Entry,
  defaults: RouteDefaults & Pick<Context, 'rules'> & { readonly shared: RouteContext },
): Route | null {
  const match = KEY.exec(key)
  if (match === null) {
    const method = /^([a-z]+) /.exec(key)?.[1]
    const advice = method === undefined ? '' : `: write ${method.toUpperCase()}`
    reader.report(keyNode, `${JSON.stringify(key)} must be "METHOD /path" or "METHOD host/path"${advice}`)
    return null
  }
  const [, method = '', hostText = '', path = ''] = match
  if (method === 'CONNECT' || method === 'TRACE') reader.report(keyNode, `${method} cannot be forwarded`)
  const { host, hostParameter } = hostText === '' ? EVERY_HOST : parseHost(reader, keyNode, hostText)
  const pattern = parsePattern(path)
  if (typeof pattern === 'string') {
    reader.report(keyNode, `the path ${path} ${pattern}`)
    return null
  }
  const names = parameterNames(pattern)
  if (hostParameter !== null && names.includes(hostParameter))
    reader.report(keyNode, `{${hostParameter}} is in the host and in the path`)
  const parameters = hostParameter === null ? names : [...names, hostParameter]
  const context = { reader, parameters, rules: defaults.rules }
  const id = `${method} ${hostText}${path}`
  if (method === 'MCP') return parseMcp(context, { keyNode, value }, { ...defaults, id, host, hostParameter, pattern })
  const members = routeMembers(reader, value, defaults)
  const { check: checkNode, withIdentity, context: contextNode, answer: answerNode, options } = members
  const isPublic = withIdentity || isPublicNode(reader.resolve(checkNode))
  const check = isPublic || isNothing(checkNode) ? null : parseCheckNode(context, checkNode, 0)
  if (isNothing(value)) reader.report(keyNode, `${key} has no check`)
  if ((checkNode === null && !withIdentity) || (check === null && !isPublic)) return null
  const counted = check === null ? 0 : leavesOf(check)
  if (counted > CHECKS_MAX)
    reader.report(checkNode, `a route may have at most ${CHECKS_MAX} checks, but this one has ${counted}`)
  const answer =
    answerNode === null ? null : parseAnswer(context, answerNode, { check, method, websocket: options.websocket })
  const asked: Check | null = check === null || answer === null ? check : { kind: 'all', of: [check, answer.keep] }
  for (const issue of misfits(options, { method, isPublic, withIdentity, asked })) reader.report(keyNode, issue)
  const own = parseContext({ ...context, note: (at, source) => noteSource(context, at, source) }, contextNode)
  if (contextNode !== null && (asked === null ? isPublic : !asksPermission(asked)))
    reader.report(
      contextNode,
      'context has no effect, because no check of this route asks for a relation or a permission',
    )
  const wholly = [...defaults.shared.filter(({ name }) => !own.some((entry) => entry.name === name)), ...own]
  if (options.encodedSlash && wholly.some(readsPath))
    reader.report(
      keyNode,
      'request.path cannot be used with encoded_slash: keep, because %2F could not be distinguished from /',
    )
  const place = { id, host, hostParameter, method, pattern }
  return { ...options, ...place, context: wholly, check, withIdentity, answer, mcp: null }
}

/** The answer rule. It needs a check, since a public route does not know its reader. */
function parseAnswer(
  context: Context,
  node: Node,
  { check, method, websocket }: Pick<Route, 'check' | 'method' | 'websocket'>,
): AnswerRule | null {
  const { reader } = context
  if (check === null)
    reader.report(node, 'answer needs a check: the PDP is asked about the reader, whom a public route does not know')
  if (method !== 'GET' && method !== 'POST' && method !== 'QUERY')
    reader.report(node, 'answer needs the method GET, POST or QUERY, with which services send lists')
  if (websocket) reader.report(node, 'answer cannot be used with upgrade: nothing can be taken out of a WebSocket')
  return readAnswerRule(reader, node, (at) => parseCheckNode({ ...context, hasItem: true }, at, 0))
}

/** Sentences about options that have no effect on such a route, or another one than their name says. */
function misfits(
  options: RouteOptions,
  of: {
    readonly method: string
    readonly isPublic: boolean
    readonly withIdentity: boolean
    readonly asked: Check | null
  },
): readonly string[] {
  const { isPublic, withIdentity, method, asked } = of
  const { tokenFrom } = options
  const isOfPages = tokenFrom !== null && (tokenFrom.subprotocol || tokenFrom.cookie !== null)
  const isNarrowed = options.issuers !== null || options.audience !== null
  return [
    isPublic && !withIdentity && isNarrowed && 'issuers and audience cannot be used on a public route',
    isPublic && !withIdentity && tokenFrom !== null && 'token_from cannot be used on a public route',
    withIdentity && isOfPages && 'public: with_identity takes a token from header, but not from subprotocol or cookie',
    ...sourcesOf(asked ?? ANYBODY).map(
      (source) =>
        source.from === 'header' &&
        tokenFrom?.header.includes(source.name) === true &&
        `header.${source.name} holds the token, so a check cannot use it`,
    ),
    isOfPages &&
      method !== 'GET' &&
      'token_from needs the method GET, with which pages open connections and event streams',
    isPublic && options.stepUp !== null && 'step_up cannot be used on a public route',
    options.guests !== null && (issueOfGuests(asked, options) ?? false),
    options.websocket && method !== 'GET' && 'upgrade needs the method GET (RFC 6455 section 4.1)',
  ].filter((issue) => issue !== false)
}

function issueOfGuests(check: Check | null, { stepUp, guests }: RouteOptions): string | null {
  if (check === null) return 'guests has no effect on a public route, which everybody may call'
  if (stepUp !== null) return 'guests cannot be used with step_up, because a guest has not signed in'
  if (!admitsGuests(check))
    return 'guests has no effect, because this check needs a token: only relations and comparisons without claims hold for a guest'
  return asksPermission(check) && guests?.organization === null
    ? 'guests needs guest_organization in the file: the organization whose relationships are asked'
    : null
}

type McpPlace = Pick<Route, 'id' | 'host' | 'hostParameter' | 'pattern'> &
  OptionDefaults & { readonly shared: RouteContext }

function parseMcp(
  context: Context,
  { keyNode, value }: Pick<Entry, 'keyNode' | 'value'>,
  { shared, id, host, hostParameter, pattern, ...defaults }: McpPlace,
): Route | null {
  const { reader, parameters } = context
  if (parameters.length > 0 && isScalar(reader.resolve(value))) reader.report(value, `${id} must be a map`)
  const read = readMcpRoute(
    {
      reader,
      parameters,
      readCheck: (node, { more, isCall }) =>
        parseCheckNode({ ...context, parameters: [...parameters, ...more], hasArguments: isCall }, node, 0),
    },
    value,
    defaults,
  )
  if (read === null) return null
  const check = read.check === null ? ANYBODY : parseCheckNode(context, read.check, 0)
  if (check !== null && usesBody({ check, context: [] }))
    reader.report(read.check ?? keyNode, 'the check of the server cannot read the body: not every message has it')
  if (check === null) return null
  const { tools, prompts, resources } = read.rules
  const counts = [...Object.values(tools), ...Object.values(prompts), ...resources].map((rule) => leavesOf(rule.check))
  const counted = leavesOf(check) + Math.max(0, ...counts)
  if (counted > CHECKS_MAX)
    reader.report(
      keyNode,
      `a call may have at most ${CHECKS_MAX} checks with those of its server, but one has ${counted}`,
    )
  return {
    ...read.options,
    context: shared,
    id,
    host,
    hostParameter,
    method: 'POST',
    pattern,
    check,
    withIdentity: false,
    mcp: read.rules,
  }
}

const readsPath = (entry: ContextEntry): boolean =>
  'source' in entry && entry.source.from === 'request' && entry.source.name === 'path'

/** The context of all routes. It cannot depend on the path or the body of one. */
function parseSharedContext(context: Context, node: Node | null): RouteContext {
  const { reader } = context
  return parseContext(
    {
      ...context,
      note(at, source) {
        noteSource(context, at, source)
        if (source.from === 'body') reader.report(at, 'a value of the body can be in the context of a route only')
      },
    },
    node,
  )
}

const isNothing = (node: Node | null): node is null => node === null || (isScalar(node) && node.value === null)
const isPublicNode = (node: Node | null): boolean => isScalar(node) && node.value === 'public'

const EVERY_HOST: Pick<Route, 'host' | 'hostParameter'> = { host: null, hostParameter: null }
/** Matches `*.app.example.com` or `{tenant}.app.example.com`. */
const STARRED = /^(?:\*|\{([A-Za-z][A-Za-z0-9_]*)\})\.(.+)$/
/** Excludes addresses, which have no labels, and domains of one label, in which everybody has names. */
const DOMAIN = /^(?:localhost|.*\.(?!\d+\.?$)[^.]+\.?)$/

function parseHost(reader: YamlReader, node: Node | null, text: string): typeof EVERY_HOST {
  const [, hostParameter = null, rest = null] = STARRED.exec(text) ?? []
  try {
    const { hostname, port } = parseAuthority(rest ?? text)
    if (port === null && rest === null) return { host: hostname, hostParameter }
    if (port === null && DOMAIN.test(hostname)) return { host: `*.${hostname}`, hostParameter }
  } catch {
    // The error is reported below, with its position.
  }
  if (/^[~^*]/.test(text) && rest === null)
    reader.report(node, `there are no expressions in paths: the path begins with /, and ** at its end is the rest`)
  else
    reader.report(
      node,
      `${text} must be a host name without a port; its first label may be * or a name such as {tenant}`,
    )
  return EVERY_HOST
}

/** A route is a check, or a map with `check` and options. */
function routeMembers(reader: YamlReader, given: Node | null, defaults: OptionDefaults): RouteMembers {
  const plain = { check: given, withIdentity: false, context: null, answer: null, options: plainOptions(defaults) }
  const node = reader.resolve(given)
  if (node === null || isScalar(node) || isSeq(node)) return plain
  const entries = reader.entries(node, 'a route') ?? []
  if (entries.some(({ key }) => COMBINATIONS.includes(key))) return plain
  const members = reader.members(node, 'a route', ROUTE)
  if (members === null) return plain
  const { check, context, answer, public: how } = members
  if ((check === null) === (how === null)) reader.report(node, 'a route needs exactly one of check and public')
  const withIdentity = check === null && how !== null && reader.choice(how, 'public', ['with_identity']) !== null
  return { check, withIdentity, context, answer, options: readRouteOptions(reader, members, defaults) }
}

function parseCheckNode(context: Context, given: Node | null, depth: number): Check | null {
  const { reader } = context
  const node = reader.resolve(given)
  if (depth > CHECK_DEPTH_MAX) {
    reader.report(given, `checks are nested more than ${CHECK_DEPTH_MAX} deep`)
    return null
  }
  if (isScalar(node)) {
    const text = reader.text(given, 'a check')
    const check = text === null ? null : parseCheck(ofBody(context, text), context.parameters)
    if (typeof check === 'string') reader.report(given, check)
    else if (check !== null && check.kind === 'relation') for (const part of check.id) noteSource(context, given, part)
    return typeof check === 'string' ? null : check
  }
  const entries = isSeq(node) ? [] : (reader.entries(given, 'a check') ?? [])
  const [entry] = entries
  if (entry === undefined || entries.length > 1 || !COMBINATIONS.includes(entry.key)) {
    const unquoted = entry === undefined || entries.length > 1 ? null : unquotedCheck(reader, entry)
    const why = entry === undefined ? null : whyAbsent(entry.key)
    if (unquoted !== null) reader.report(given, `put the check in quotes: ${unquoted}`)
    else if (why !== null) reader.report(given, `${entry?.key} is not a check; ${why}`)
    else if (reader.resolve(given) !== null)
      reader.report(
        given,
        'a check must be a string, or a map with exactly one of all, any, equals, starts_with and ends_with',
      )
    return null
  }
  const isCombination = entry.key === 'all' || entry.key === 'any'
  return isCombination
    ? parseCombination(context, entry, depth)
    : readComparison(
        {
          ...context,
          parse: (key) => parseSource(ofBody(context, `{${key}}`).slice(1, -1), context.parameters),
          note: (at, source) => noteSource(context, at, source),
        },
        entry,
      )
}

/** The check text with arguments of a call as members of its body. */
const ofBody = ({ hasArguments = false }: Context, text: string): string =>
  hasArguments ? text.replaceAll('{arguments.', '{body.params.arguments.') : text

/** The check that YAML misread: within [ ], `viewer doc:{id}` is a map from `viewer doc` to `{id}`. Null: it is not that. */
function unquotedCheck(reader: YamlReader, { key, value }: Entry): string | null {
  const node = reader.resolve(value)
  if (!/^\S+ \S+$/.test(key) || !isMap(node)) return null
  const [inner, ...more] = node.items
  return inner === undefined || more.length > 0 || inner.value !== null ? null : `"${key}:{${inner.key}}"`
}

function parseCombination(context: Context, { key, keyNode, value }: Entry, depth: number): Check | null {
  const { reader } = context
  const items = reader.items(value, key)
  if (items === null) return null
  // An empty list of checks would deny nothing.
  if (items.length === 0) reader.report(keyNode, `${key} must have at least one check`)
  const of = items.map((item) => parseCheckNode(context, item, depth + 1)).filter((check) => check !== null)
  return of.length < items.length || of.length === 0 ? null : { kind: key === 'any' ? 'any' : 'all', of }
}

/** Reports a source that cannot be used in this place, such as a header field that never reaches the service. */
function noteSource({ reader, rules, hasItem = false }: Context, node: Node | null, source: string | Source): void {
  if (typeof source === 'object' && source.from === 'item' && !hasItem)
    reader.report(node, `${describeSource(source)} can be read by keep of answer only: the request has no items`)
  if (typeof source === 'string' || source.from !== 'header' || rules.passes(source.name)) return
  reader.report(node, `header.${source.name} is removed from every request, so a check cannot use it`)
}
