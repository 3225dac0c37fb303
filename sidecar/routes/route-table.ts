/** Finds the route of a request: the most specific path decides, then the method. */
import { setImmediate } from 'node:timers/promises'
import { foldText } from '../http/folding.ts'
import { strippedCount } from '../http/upstream-entry.ts'
import { judgementOf } from './overlaps.ts'
import {
  isForeseen,
  isPlain,
  type Protection,
  protectsOtherwise,
  readingsBelow,
  readingsOf,
  refuseOutside,
  rulesOf,
  usesPlaces,
} from './path-readings.ts'
import {
  cross,
  foldPattern,
  foldSegment,
  hasText,
  isAt,
  isSegmentWithin,
  isWhole,
  isWithin,
  mayMatch,
  narrowest,
  otherSlash,
  overlap,
  type Parameter,
  type Pattern,
  parametersOf,
} from './patterns.ts'
import type { Match, MatchedRoute, PathSegments, Route, RouteTable } from './route.ts'
import { type Format, formatsOf, isIndexFile, isScript, stemsOf } from './script-paths.ts'

type Entry = { readonly route: Route; readonly rules: string }
/** A pattern of paths in the table, with its routes by method. */
type TablePath = {
  readonly pattern: Pattern
  readonly folded: Pattern
  readonly methods: Map<string, Entry>
  /** True if a slash at the end of its paths could lead to another route; null: not computed yet. */
  slashLeads: boolean | null
  /** Table paths that overlap with this one so that none of the two is more specific; null: not computed yet. */
  crossing: readonly TablePath[] | null
  /** The same table paths by their folded patterns. */
  foldedCrossing: readonly TablePath[] | null
}
type Node = {
  readonly literals: Map<string, Node>
  /** The same nodes by folded literal; several literals may fold to one text. */
  readonly folded: Map<string, Node[]>
  /** Sorted: those with the longest texts around the value come first. */
  readonly parameters: { readonly segment: Parameter; readonly folded: Parameter; readonly node: Node }[]
  rest: TablePath | null
  end: TablePath | null
}
type Root = Node & {
  readonly tablePaths: TablePath[]
  /** True if folding changes no literal of the tree. */
  unfolded: boolean
  /** Folded literals of the tree that are names of index files. */
  readonly indexFiles: Set<string>
  /** Folded literals that end a path or name a script, by each of their names without formats. */
  readonly formatted: Map<string, string[]>
  /** Folded formats that follow parameters, such as `.json`. */
  readonly formats: Format[]
  /** Folded texts around parameters. Fastify also matches an empty value there: `/v/x` is `/v{n}/x`. */
  readonly emptied: Set<string>
}

type Roots = Map<string | null, Root>

/** `routes` must be free of conflicts. */
export function createRouteTable(routes: readonly Route[]): RouteTable {
  const roots: Roots = new Map()
  for (const route of routes) insert(rootOf(roots, route.host), route)
  return tableOver(roots)
}

/** How many routes are inserted before other requests get a turn of the event loop. Each takes some microseconds. */
const INSERTED_IN_TURN = 100

/** Does what `createRouteTable` does, in steps: between two steps a serving process answers requests. */
export async function createRouteTableInTurns(routes: readonly Route[]): Promise<RouteTable> {
  const roots: Roots = new Map()
  for (const [at, route] of routes.entries()) {
    insert(rootOf(roots, route.host), route)
    if (at % INSERTED_IN_TURN === 0) await setImmediate()
  }
  return tableOver(roots)
}

function tableOver(roots: Roots): RouteTable {
  const shared = rootOf(roots, null)

  return {
    hosts: new Set([...roots.keys()].filter((host) => host !== null)),
    match({ host, method, path }) {
      const root = rootFor(roots, host) ?? shared
      const tablePath = find(root, path, 0)
      if (tablePath === null) return { kind: 'none' }
      const others = asSpecific(root, tablePath, path)
      if (others.length > 0) return withLabel(matchSeveral(root, [tablePath, ...others], { method, path }), host)
      const entry = select(tablePath, method)
      if (entry === undefined) return { kind: 'method', allow: allowedMethods([tablePath]) }
      const other = otherRoute(root, { tablePath, entry, method, path })
      if (other !== null) return { kind: 'ambiguous', route: entry.route, other }
      return withLabel({ kind: 'route', ...matchedRoute(tablePath, entry, path), alike: NONE }, host)
    },
    guarded({ host, route, names }) {
      const ours = rulesOf(route)
      for (const { folded, methods } of (rootFor(roots, host) ?? shared).tablePaths) {
        const mayBegin = names.every((name, at) => {
          const segment = folded.segments[at]
          return segment !== undefined && hasText(segment, name, { mayBeEmpty: true })
        })
        if (!mayBegin) continue
        for (const { route: other, rules } of methods.values())
          if (other.check !== null && other.upstream === route.upstream && rules !== ours) return other
      }
      return null
    },
  }
}

/** The routes of this exact host, else those of the host with `*` as its first label. */
const rootFor = (roots: Roots, host: string): Root | undefined =>
  roots.get(host) ?? roots.get(host.replace(/^[^.]+/, '*'))

/** The match with the host's first label as additional last parameter, for routes that name the label. */
function withLabel(match: Match, host: string): Match {
  if (match.kind !== 'route' || (match.route.hostParameter === null && match.alike.length === 0)) return match
  const labelled = (one: MatchedRoute): MatchedRoute =>
    one.route.hostParameter === null ? one : { ...one, parameters: [...one.parameters, host.split('.', 1)[0] ?? ''] }
  return { ...match, ...labelled(match), alike: match.alike.map(labelled) }
}

function rootOf(roots: Roots, host: string | null): Root {
  const root = roots.get(host) ?? {
    ...createNode(),
    tablePaths: [],
    unfolded: true,
    indexFiles: new Set(),
    formatted: new Map(),
    formats: [],
    emptied: new Set(),
  }
  roots.set(host, root)
  return root
}

const createNode = (): Node => ({ literals: new Map(), folded: new Map(), parameters: [], rest: null, end: null })

function insert(root: Root, route: Route): void {
  const { pattern } = route
  let node: Node = root
  for (const [at, segment] of pattern.segments.entries()) {
    const isEnd = !pattern.rest && at === pattern.segments.length - 1
    if (segment.kind === 'parameter') {
      const folded = foldSegment(segment)
      root.unfolded &&= folded.before === segment.before && folded.after === segment.after
      if (!isWhole(folded)) root.emptied.add(folded.before + folded.after)
      if (isEnd || isScript([folded.after], 0)) addFormats(root, formatsOf(folded))
      node = parameterNode(node, segment, folded)
      continue
    }
    let child = node.literals.get(segment.text)
    if (child === undefined) {
      child = createNode()
      node.literals.set(segment.text, child)
      const folded = foldText(segment.text)
      node.folded.set(folded, [...(node.folded.get(folded) ?? []), child])
      root.unfolded &&= folded === segment.text
      if (isIndexFile(folded)) root.indexFiles.add(folded)
    }
    addFormatted(root, foldText(segment.text), isEnd)
    node = child
  }
  let tablePath = pattern.rest ? node.rest : node.end
  if (tablePath === null) {
    tablePath = { pattern, folded: foldPattern(pattern), methods: new Map(), ...NOT_COMPUTED }
    root.tablePaths.push(tablePath)
    if (pattern.rest) node.rest = tablePath
    else node.end = tablePath
  }
  tablePath.methods.set(route.method, { route, rules: rulesOf(route) })
}

function parameterNode({ parameters }: Node, segment: Parameter, folded: Parameter): Node {
  const length = ({ before, after }: Parameter): number => before.length + after.length
  const known = parameters.find((one) => one.segment.before === segment.before && one.segment.after === segment.after)
  if (known !== undefined) return known.node
  const node = createNode()
  parameters.push({ segment, folded, node })
  parameters.sort((a, b) => length(b.segment) - length(a.segment))
  return node
}

const NOT_COMPUTED = { slashLeads: null, crossing: null, foldedCrossing: null } as const

function addFormatted({ formatted }: Root, name: string, isEnd: boolean): void {
  if (!isEnd && !isScript([name], 0)) return
  for (const stem of stemsOf(name)) {
    const names = formatted.get(stem) ?? []
    if (!names.includes(name)) formatted.set(stem, [...names, name])
  }
}

/** Adds each format only once, because each gives one more reading of a path. */
function addFormats({ formats }: Root, found: readonly Format[]): void {
  for (const one of found)
    if (!formats.some(({ stem, added }) => stem === one.stem && added === one.added)) formats.push(one)
}

/** Searches depth first: literal before parameter before rest. So the first table path found is the most specific. */
function find(node: Node, path: PathSegments, at: number): TablePath | null {
  const segment = path.segments[at]
  if (segment === undefined) return node.end
  const literal = node.literals.get(path.written[at] ?? segment)
  const byLiteral = literal === undefined ? null : find(literal, path, at + 1)
  if (byLiteral !== null) return byLiteral
  for (const { segment: parameter, node: child } of node.parameters) {
    const isHere = isWhole(parameter)
      ? segment !== ''
      : isAt(parameter, { path: path.segments, written: path.written, at })
    const byParameter = isHere ? find(child, path, at + 1) : null
    if (byParameter !== null) return byParameter
  }
  return node.rest
}

/** Other table paths that services may match the path to, and that are as specific as `ours`. */
function asSpecific({ tablePaths }: Root, ours: TablePath, { segments, written }: PathSegments): readonly TablePath[] {
  ours.crossing ??= tablePaths.filter((other) => cross(ours.pattern, other.pattern))
  if (ours.crossing.length === 0) return NONE
  const found = ours.crossing.filter(({ pattern }) => mayMatch(pattern, segments, written))
  return mayBeEmpty(segments) ? found : narrowest(found, ({ pattern }) => pattern)
}

/** Some services match an empty last value and others do not, so they differ in which pattern is the narrowest. */
const mayBeEmpty = (segments: readonly string[]): boolean => segments.at(-1) === ''

/** The match where several table paths are equally specific: all of them must agree about the request. */
function matchSeveral(
  root: Root,
  tablePaths: readonly TablePath[],
  { method, path }: { readonly method: string; readonly path: PathSegments },
): Match {
  const chosen = tablePaths.flatMap((tablePath) => {
    const entry = select(tablePath, method)
    return entry === undefined ? [] : [{ tablePath, entry }]
  })
  const [first] = chosen
  if (first === undefined) return { kind: 'method', allow: allowedMethods(tablePaths) }
  // A table path that lacks the method shows by all of its routes how its paths are protected.
  const could = tablePaths.flatMap((tablePath) => {
    const entry = select(tablePath, method)
    const entries = entry === undefined ? [...tablePath.methods.values()] : [entry]
    return entries.map((one) => matchedRoute(tablePath, one, path))
  })
  if (new Set(could.map(judgementOf)).size > 1) return { kind: 'overlap', routes: could.map(({ route }) => route) }
  for (const { tablePath, entry } of chosen) {
    const other = otherRoute(root, { tablePath, entry, method, path, alike: tablePaths })
    if (other !== null) return { kind: 'ambiguous', route: entry.route, other }
  }
  const { route } = first.entry
  return {
    kind: 'route',
    ...matchedRoute(first.tablePath, first.entry, path),
    alike: could.filter((one) => one.route !== route),
  }
}

const matchedRoute = (tablePath: TablePath, { route }: Entry, { segments }: PathSegments): MatchedRoute => ({
  route,
  parameters: parametersOf(tablePath.pattern, segments),
})

const NONE: readonly never[] = []

type MatchedEntry = {
  readonly tablePath: TablePath
  readonly entry: Entry
  /** Other table paths that match the unchanged path and protect it alike. */
  readonly alike?: readonly TablePath[]
  readonly method: string
  readonly path: PathSegments
}

/** A route with other rules that some service could run for the request; null: no such route. */
function otherRoute(root: Root, { tablePath, entry, method, path, alike = NONE }: MatchedEntry): Route | null {
  refuseOutside(entry.route, path.segments)
  // The fast path of most requests: no other reading exists.
  const { unfolded, indexFiles, formatted, formats, emptied } = root
  const hasFormats =
    (tablePath.pattern.rest && formats.length > 0) ||
    path.segments.some((text) => formatted.has(text) || emptied.has(text))
  if (unfolded && indexFiles.size === 0 && !hasFormats && isPlain(path)) {
    tablePath.slashLeads ??= slashLeads(root, tablePath)
    if (!tablePath.slashLeads) return null
  }
  const names = { pattern: tablePath.folded, indexFiles, formatted, formats }
  const count = strippedCount(entry.route.stripPath)
  for (const reading of count === 0 ? readingsOf(path, names) : readingsBelow(count, path, names)) {
    for (const other of foldedTablePaths(root, reading.segments, path.segments.length - 1)) {
      if (other === tablePath || alike.includes(other)) continue
      const theirs = select(other, method)
      // A reading that no route of the service takes does no harm. Fastify, too, matches no empty value here.
      if (theirs === undefined && !mayMatchWhole(other, reading.segments)) continue
      if (isForeseen(reading, { ours: tablePath.pattern, theirs: other.pattern })) continue
      const plain = protectionOf(tablePath, entry)
      // Parameters at other positions have other values, so equal rules then mean other checks.
      const moved = !reading.aligned && usesPlaces(plain.rules)
      const ours = moved ? { ...plain, rules: '' } : plain
      const protection = theirs === undefined ? null : protectionOf(other, theirs)
      const { pattern: read, isElsewhere } = reading
      if (protectsOtherwise(ours, protection, { path: other.folded, read, isElsewhere }))
        return theirs?.route ?? [...other.methods.values()][0]?.route ?? null
    }
  }
  return null
}

/** True unless only an empty value leads to the table path. */
const mayMatchWhole = ({ folded: { segments, rest } }: TablePath, path: readonly string[]): boolean =>
  rest || segments.every((one, at) => hasText(one, path[at] ?? ''))

const protectionOf = ({ folded }: TablePath, { route, rules: verdict }: Entry): Protection => ({
  pattern: folded,
  rules: verdict,
  isPublic: route.check === null,
  upstream: route.upstream,
})

function slashLeads(root: Root, tablePath: TablePath): boolean {
  const slashed = otherSlash(tablePath.folded, true)
  return root.tablePaths.some(
    (other) =>
      other !== tablePath &&
      overlap(slashed, other.folded) &&
      (!isWithin(tablePath.folded, other.folded) || isWithin(other.folded, tablePath.folded)),
  )
}

/** The most specific table paths that the folded segments reach. `lastAt`: the index of the last segment as it was sent. */
function foldedTablePaths(root: Root, segments: readonly string[], lastAt: number): readonly TablePath[] {
  const found = findFolded(root, segments, { at: 0, lastAt })
  const crossing = found.flatMap((tablePath) => {
    tablePath.foldedCrossing ??= root.tablePaths.filter((other) => cross(tablePath.folded, other.folded))
    return tablePath.foldedCrossing.filter(({ folded }) => mayMatch(folded, segments))
  })
  if (crossing.length === 0) return found
  const rivals = mayBeEmpty(segments) ? crossing : narrowest(crossing, ({ folded }) => folded)
  return [...new Set([...found, ...rivals])]
}

/** The most specific table paths for each spelling of a literal, and those that Fastify matches with an empty value. */
function findFolded(
  node: Node,
  folded: readonly string[],
  { at, lastAt }: { readonly at: number; readonly lastAt: number },
): TablePath[] {
  const segment = folded[at]
  if (segment === undefined) return node.end === null ? [] : [node.end]
  const next = { at: at + 1, lastAt }
  const literals = (node.folded.get(segment) ?? []).flatMap((child) => findFolded(child, folded, next))
  if (literals.length > 0) return literals
  const found: TablePath[] = []
  const taken: Parameter[] = []
  const empty: TablePath[] = []
  const mayEnd = segment === '' && at === lastAt && at > 0 && folded.length === at + 1
  for (const { folded: one, node: child } of node.parameters) {
    if (!hasText(one, segment)) {
      if (mayEnd && child.end !== null && isWhole(one)) empty.push(child.end)
      else if (!isWhole(one) && segment === one.before + one.after) empty.push(...findFolded(child, folded, next))
      continue
    }
    if (taken.some((narrow) => isSegmentWithin(narrow, one) && !isSegmentWithin(one, narrow))) continue
    const tablePaths = findFolded(child, folded, next)
    if (tablePaths.length > 0) taken.push(one)
    found.push(...tablePaths)
  }
  return [...empty, ...(found.length > 0 || node.rest === null ? found : [node.rest])]
}

// Methods that `*` does not include: TRACE echoes credentials, CONNECT opens a tunnel.
const NEVER = new Set(['TRACE', 'CONNECT'])

function select({ methods }: TablePath, method: string): Entry | undefined {
  const entry = methods.get(method) ?? (method === 'HEAD' ? methods.get('GET') : undefined)
  return entry ?? (NEVER.has(method) ? undefined : methods.get('*'))
}

function allowedMethods(tablePaths: readonly TablePath[]): readonly string[] {
  const names = new Set(tablePaths.flatMap(({ methods }) => [...methods.keys()]).filter((name) => name !== '*'))
  if (names.has('GET')) names.add('HEAD')
  return [...names.add('OPTIONS')].sort()
}
