/** Finds the route of a request: the most specific path decides, then the method. */
import type { Check } from './checks.ts'
import { isWithin, overlap, type Pattern } from './patterns.ts'
import type { RouteOptions } from './route-options.ts'

export type Route = RouteOptions & {
  /** As written in the file, such as `GET /invoices/{id}`: names the route in logs and metrics. */
  readonly id: string
  /** Lower case; null: every served host that has no routes of its own. */
  readonly host: string | null
  /** `*`: every method. */
  readonly method: string
  readonly pattern: Pattern
  /** Null: public. */
  readonly check: Check | null
}

export type Match =
  /** `parameters`: by position in the pattern. */
  | { readonly kind: 'route'; readonly route: Route; readonly parameters: readonly string[] }
  | { readonly kind: 'method'; readonly allow: readonly string[] }
  /** Folding its case or trimming its slash would lead to a more specific route. */
  | { readonly kind: 'ambiguous' }
  | { readonly kind: 'none' }

export type RouteTable = {
  match(request: { readonly host: string; readonly method: string; readonly segments: readonly string[] }): Match
  /** Hosts that have routes of their own. */
  readonly hosts: ReadonlySet<string>
}

/** One path of the table: its pattern and its routes by method. */
type Place = { readonly pattern: Pattern; readonly methods: Map<string, Route> }
type Node = {
  readonly literals: Map<string, Node>
  /** As `literals`, by folded text. */
  readonly folded: Map<string, Node[]>
  parameter: Node | null
  rest: Place | null
  end: Place | null
  /** Of a root: no literal below changes by folding. */
  unfolded: boolean
}

/** What is wrong with a pair of routes, or null. */
export function routeConflict(a: Route, b: Route): string | null {
  if (a.host !== b.host || !overlap(a.pattern, b.pattern)) return null
  const within = isWithin(a.pattern, b.pattern)
  const around = isWithin(b.pattern, a.pattern)
  if (within && around) return a.method === b.method ? 'is the same route as' : null
  if (within || around) return null
  return 'matches some paths of, and neither is the more specific:'
}

/** `routes` must be free of conflicts. */
export function createRouteTable(routes: readonly Route[]): RouteTable {
  const roots = new Map<string | null, Node>()
  for (const route of routes) insert(rootOf(roots, route.host), route)
  const shared = rootOf(roots, null)

  return {
    hosts: new Set([...roots.keys()].filter((host) => host !== null)),
    match({ host, method, segments }) {
      const root = roots.get(host) ?? shared
      const place = find(root, segments, 0)
      if (place === null) return { kind: 'none' }
      if (reachesMoreSpecific(root, place, segments)) return { kind: 'ambiguous' }
      const route = select(place, method)
      if (route === undefined) return { kind: 'method', allow: allowedMethods(place) }
      return { kind: 'route', route, parameters: parametersOf(route.pattern, segments) }
    },
  }
}

function rootOf(roots: Map<string | null, Node>, host: string | null): Node {
  const root = roots.get(host) ?? createNode()
  roots.set(host, root)
  return root
}

function createNode(): Node {
  return { literals: new Map(), folded: new Map(), parameter: null, rest: null, end: null, unfolded: true }
}

function insert(root: Node, route: Route): void {
  let node = root
  for (const segment of route.pattern.segments) {
    if (segment.kind === 'parameter') {
      node.parameter ??= createNode()
      node = node.parameter
      continue
    }
    let child = node.literals.get(segment.text)
    if (child === undefined) {
      child = createNode()
      node.literals.set(segment.text, child)
      const folded = fold(segment.text)
      node.folded.set(folded, [...(node.folded.get(folded) ?? []), child])
      root.unfolded &&= folded === segment.text
    }
    node = child
  }
  const place: Place = (route.pattern.rest ? node.rest : node.end) ?? { pattern: route.pattern, methods: new Map() }
  if (route.pattern.rest) node.rest = place
  else node.end = place
  place.methods.set(route.method, route)
}

/** Depth first, literal before parameter before rest; since patterns never cross, the first find is the most specific. */
function find(node: Node, segments: readonly string[], at: number): Place | null {
  const segment = segments[at]
  if (segment === undefined) return node.end
  const literal = node.literals.get(segment)
  const byLiteral = literal === undefined ? null : find(literal, segments, at + 1)
  if (byLiteral !== null) return byLiteral
  const byParameter = node.parameter === null || segment === '' ? null : find(node.parameter, segments, at + 1)
  return byParameter ?? node.rest
}

/** Upstreams that ignore case or a trailing slash would serve another route's handler: DESIGN section 6.1. */
function reachesMoreSpecific(root: Node, place: Place, segments: readonly string[]): boolean {
  // Most requests: nothing would change by folding, so nothing else can be reached.
  if (root.unfolded && segments.at(-1) !== '' && segments.every((segment) => UNCHANGED.test(segment))) return false
  const folded = segments.map(fold)
  const trimmed = folded.length > 1 && folded.at(-1) === '' ? folded.slice(0, -1) : null
  const candidates = [...findFolded(root, folded, 0), ...(trimmed === null ? [] : findFolded(root, trimmed, 0))]
  return candidates.some((other) => other !== place && !isWithin(place.pattern, other.pattern))
}

/** Every place that the folded segments reach; at most the nodes of the table, each once per way to it. */
function findFolded(node: Node, folded: readonly string[], at: number): Place[] {
  const segment = folded[at]
  if (segment === undefined) return node.end === null ? [] : [node.end]
  const rest = node.rest === null ? [] : [node.rest]
  const literals = (node.folded.get(segment) ?? []).flatMap((child) => findFolded(child, folded, at + 1))
  const parameter = node.parameter === null || segment === '' ? [] : findFolded(node.parameter, folded, at + 1)
  return [...literals, ...parameter, ...rest]
}

const ASCII = /^[\x20-\x7e]*$/
const UNCHANGED = /^[\x20-\x40\x5b-\x7e]*$/

/** One text for all that some server compares as equal: case, and compatibility forms such as full-width letters. */
function fold(text: string): string {
  return ASCII.test(text) ? text.toLowerCase() : text.normalize('NFKC').toUpperCase().toLowerCase()
}

// Methods that a `*` does not cover: TRACE echoes credentials, CONNECT opens a tunnel.
const NEVER = new Set(['TRACE', 'CONNECT'])

function select({ methods }: Place, method: string): Route | undefined {
  const route = methods.get(method) ?? (method === 'HEAD' ? methods.get('GET') : undefined)
  return route ?? (NEVER.has(method) ? undefined : methods.get('*'))
}

function allowedMethods({ methods }: Place): readonly string[] {
  const names = new Set([...methods.keys()].filter((name) => name !== '*'))
  if (names.has('GET')) names.add('HEAD')
  return [...names.add('OPTIONS')].sort()
}

function parametersOf({ segments }: Pattern, values: readonly string[]): readonly string[] {
  const found: string[] = []
  for (const [at, segment] of segments.entries()) if (segment.kind === 'parameter') found.push(values[at] ?? '')
  return found
}
