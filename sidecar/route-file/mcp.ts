/** Reads a route for MCP: the check of its server, and the rules of its tools, prompts and resources. */
import { isMap, isScalar, type Node } from 'yaml'
import { type Check, sourcesOf } from '../routes/checks.ts'
import { listedPart, type McpResource, type McpRule, type McpRules, parseUriPattern } from '../routes/mcp-rules.ts'
import type { RouteOptions } from '../routes/route.ts'
import type { StepUp } from '../routes/step-up.ts'
import { type Source, sourceText } from '../routes/template.ts'
import { LISTED, MCP_ROUTE, MCP_RULE } from './format.ts'
import { type OptionDefaults, plainOptions, readRouteOptions, readStepUp } from './options.ts'
import type { YamlReader } from './words/yaml-reader.ts'

export type McpReading = {
  readonly reader: YamlReader
  /** The names of the parameters in the route's path. */
  readonly parameters: readonly string[]
  /** `more`: names of parameters in a URI. `isCall`: the check may read arguments of a call. Reports errors to the reader. */
  readonly readCheck: (node: Node, how: { readonly more: readonly string[]; readonly isCall: boolean }) => Check | null
}
/** True for an argument of a call: a request for a list has none. */
const isArgument = (source: Source): boolean => source.from === 'body'
export const RULES_MAX = 256

/** Reads an MCP route and reports errors; null: the node is no map of these members. */
export function readMcpRoute(
  reading: McpReading,
  node: Node | null,
  defaults: OptionDefaults,
): { readonly check: Node | null; readonly rules: McpRules; readonly options: RouteOptions } | null {
  const { reader } = reading
  const members = reader.members(node, 'a route of the kind MCP', MCP_ROUTE)
  if (members === null) return null
  const { check, tools, prompts, resources, ...given } = members
  const none = {
    query: null,
    body: null,
    upgrade: null,
    origins: null,
    encoded_slash: null,
    semicolon: null,
    audience: null,
    guests: null,
    issuers: null,
    token_from: null,
    upstream_headers_ms: null,
  }
  const options = Object.values(given).every((value) => value === null)
    ? plainOptions(defaults)
    : readRouteOptions(reader, { ...none, ...given }, defaults)
  const rules = {
    tools: namedRules(reading, tools, 'tools'),
    prompts: namedRules(reading, prompts, 'prompts'),
    resources: resourceRules(reading, resources),
  }
  for (const [name, count] of [
    ['tools', Object.keys(rules.tools).length],
    ['prompts', Object.keys(rules.prompts).length],
    ['resources', rules.resources.length],
  ] as const)
    if (count > RULES_MAX) reader.report(node, `a route of the kind MCP has more than ${RULES_MAX} ${name}`)
  return { check, rules, options }
}

function namedRules(reading: McpReading, node: Node | null, what: 'tools' | 'prompts'): McpRules['tools'] {
  const found: { [name: string]: McpRule } = Object.create(null)
  for (const { key, keyNode, value } of node === null ? [] : (reading.reader.entries(node, what) ?? [])) {
    const rule = readRule(reading, value ?? keyNode, { more: [], isOfCall: isArgument })
    if (rule !== null) found[key] = rule
  }
  return found
}

function resourceRules(reading: McpReading, node: Node | null): readonly McpResource[] {
  const { reader, parameters } = reading
  const found: McpResource[] = []
  for (const { key, keyNode, value } of node === null ? [] : (reader.entries(node, 'resources') ?? [])) {
    const uri = parseUriPattern(key, parameters.length)
    if (typeof uri === 'string') {
      reader.report(keyNode, `the resource ${key} ${uri}`)
      continue
    }
    const isOfCall = (source: Source): boolean => source.from === 'path' && source.index >= uri.first
    const rule = readRule(reading, value ?? keyNode, { more: uri.names, isOfCall })
    if (rule !== null) found.push({ ...rule, template: key, uri })
  }
  return found
}

function readRule(
  { reader, readCheck }: McpReading,
  given: Node | null,
  { more, isOfCall }: { readonly more: readonly string[]; readonly isOfCall: (source: Source) => boolean },
): McpRule | null {
  const node = reader.resolve(given)
  const isRule = isMap(node) && node.items.some(({ key }) => isScalar(key) && key.value === 'check')
  const members = isRule ? reader.members(node, 'a rule', MCP_RULE) : { check: given, listed: null, step_up: null }
  if (members === null || members.check === null) return null
  const check = readCheck(members.check, { more, isCall: more.length === 0 })
  const stepUp: StepUp | null = members.step_up === null ? null : readStepUp(reader, members.step_up)
  if (check === null) return null
  const asksSome = members.listed !== null && reader.choice(members.listed, 'listed', LISTED) === 'some'
  const some = asksSome ? listedPart(check, isOfCall, true) : null
  if (some !== null && !mayBeShown(check, some, isOfCall)) reader.report(members.listed, NOT_SOME)
  else if (some !== null && takesTwice(check, isOfCall)) reader.report(members.listed, TWICE)
  return { check, listed: listedPart(check, isOfCall, false), some, stepUp }
}

const NOT_SOME =
  'listed: some needs a relation that takes an argument, and each such relation must take one argument alone as its id, such as viewer customer:{arguments.id}'

const TWICE =
  'listed: some cannot ask for an argument in two parts that must both hold, since each may hold for another one: make one relation of them in the model'

/** True if two parts that must both hold take the same value of the call. */
function takesTwice(check: Check, isOfCall: (source: Source) => boolean): boolean {
  if (check.kind !== 'all' && check.kind !== 'any') return false
  const taken = check.of.flatMap((part) => [...new Set(sourcesOf(part).filter(isOfCall).map(sourceText))])
  if (check.kind === 'all' && new Set(taken).size < taken.length) return true
  return check.of.some((part) => takesTwice(part, isOfCall))
}

/** True if each relation to an argument of the call has the argument alone as its id, so that `some` has a part for it. */
function mayBeShown(check: Check, some: Check, isOfCall: (source: Source) => boolean): boolean {
  const taking = partsOf(check).filter(
    (part) => part.kind === 'relation' && part.id.some((piece) => typeof piece === 'object' && isOfCall(piece)),
  )
  return taking.length > 0 && partsOf(some).filter(({ kind }) => kind === 'some').length === taking.length
}

const partsOf = (check: Check): readonly Check[] =>
  check.kind === 'all' || check.kind === 'any' ? check.of.flatMap(partsOf) : [check]
