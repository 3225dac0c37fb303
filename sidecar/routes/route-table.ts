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
/** One path of the table: its pattern and its routes by method. */
type TablePath = {
  readonly pattern: Pattern
  /** The folded pattern. */
  readonly folded: Pattern
  readonly methods: Map<string, Entry>
  /** True if a slash at the end of its paths could lead to another route; null: not computed yet. */
  slashLeads: boolean | null
  /** Places that have some of its paths, and neither is the more specific; null: not computed yet. */
  crossing: readonly TablePath[] | null
  /** The same of folded paths. */
  foldedCrossing: readonly TablePath[] | null
}
type Node = {
  readonly literals: Map<string, Node>
  /** Like `literals`, by folded text. */
  readonly folded: Map<string, Node[]>
  /** Those with the longest texts around the value first. */
  readonly parameters: { readonly segment: Parameter; readonly folded: Parameter; readonly node: Node }[]
  rest: TablePath | null
  end: TablePath | null
}
type Root = Node & {
  readonly places: TablePath[]
  /** No literal below changes by folding. */
  unfolded: boolean
  /** Literals below, folded, that are names of index files. */
  readonly indexFiles: Set<string>
  /** Literals below, folded, that end a path or name a script, by what they are without their formats. */
  readonly formatted: Map<string, string[]>
  /** Formats behind parameters, folded. */
  readonly formats: Format[]
  /** The texts around parameters, folded: to Fastify, `/v/x` is `/v{n}/x` with an empty value. */
  readonly emptied: Set<string>
}

type Roots = Map<string | null, Root>

/** `routes` must be free of conflicts. */
export function createRouteTable(routes: readonly Route[]): RouteTable {
  const roots: Roots = new Map()
  for (const route of routes) insert(rootOf(roots, route.host), route)
  return tableOver(roots)
}

/** Each takes some microseconds. */
const INSERTED_IN_TURN = 100

/** The same for a process that serves: requests get their turns meanwhile. */
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
      const place = find(root, path, 0)
      if (place === null) return { kind: 'none' }
      const others = asSpecific(root, place, path)
      if (others.length > 0) return withLabel(matchSeveral(root, [place, ...others], { method, path }), host)
      const entry = select(place, method)
      if (entry === undefined) return { kind: 'method', allow: allowedMethods([place]) }
      const other = otherRoute(root, { place, entry, method, path })
      if (other !== null) return { kind: 'ambiguous', route: entry.route, other }
      return withLabel({ kind: 'route', ...matchedRoute(place, entry, path), alike: NONE }, host)
    },
    guarded({ host, route, names }) {
      const ours = rulesOf(route)
      for (const { folded, methods } of (rootFor(roots, host) ?? shared).places) {
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

/** The routes of the very host, else those of its name with `*` in place of the first label. */
const rootFor = (roots: Roots, host: string): Root | undefined =>
  roots.get(host) ?? roots.get(host.replace(/^[^.]+/, '*'))

/** With the first label of the host as the last value where a route names it. */
function withLabel(match: Match, host: string): Match {
  if (match.kind !== 'route' || (match.route.hostParameter === null && match.alike.length === 0)) return match
  const labelled = (one: MatchedRoute): MatchedRoute =>
    one.route.hostParameter === null ? one : { ...one, parameters: [...one.parameters, host.split('.', 1)[0] ?? ''] }
  return { ...match, ...labelled(match), alike: match.alike.map(labelled) }
}

function rootOf(roots: Roots, host: string | null): Root {
  const root = roots.get(host) ?? {
    ...createNode(),
    places: [],
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
  let place = pattern.rest ? node.rest : node.end
  if (place === null) {
    place = { pattern, folded: foldPattern(pattern), methods: new Map(), ...NOT_COMPUTED }
    root.places.push(place)
    if (pattern.rest) node.rest = place
    else node.end = place
  }
  place.methods.set(route.method, { route, rules: rulesOf(route) })
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

/** Each once: a reading is made for each. */
function addFormats({ formats }: Root, found: readonly Format[]): void {
  for (const one of found)
    if (!formats.some(({ stem, added }) => stem === one.stem && added === one.added)) formats.push(one)
}

/** Depth first, literal before parameter before rest, so that no place is more specific than the first find. */
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

/** Other places that services may take the path for, and that are as specific as `place`. */
function asSpecific({ places }: Root, place: TablePath, { segments, written }: PathSegments): readonly TablePath[] {
  place.crossing ??= places.filter((other) => cross(place.pattern, other.pattern))
  if (place.crossing.length === 0) return NONE
  const found = place.crossing.filter(({ pattern }) => mayMatch(pattern, segments, written))
  return mayBeEmpty(segments) ? found : narrowest(found, ({ pattern }) => pattern)
}

/** Then what is the narrowest to one service does not match to another. */
const mayBeEmpty = (segments: readonly string[]): boolean => segments.at(-1) === ''

/** Those that match must agree. */
function matchSeveral(
  root: Root,
  places: readonly TablePath[],
  { method, path }: { readonly method: string; readonly path: PathSegments },
): Match {
  const chosen = places.flatMap((place) => {
    const entry = select(place, method)
    return entry === undefined ? [] : [{ place, entry }]
  })
  const [first] = chosen
  if (first === undefined) return { kind: 'method', allow: allowedMethods(places) }
  // Where a place lacks the method, each of its routes says how its paths are protected.
  const could = places.flatMap((place) => {
    const entry = select(place, method)
    const entries = entry === undefined ? [...place.methods.values()] : [entry]
    return entries.map((one) => matchedRoute(place, one, path))
  })
  if (new Set(could.map(judgementOf)).size > 1) return { kind: 'overlap', routes: could.map(({ route }) => route) }
  for (const { place, entry } of chosen) {
    const other = otherRoute(root, { place, entry, method, path, alike: places })
    if (other !== null) return { kind: 'ambiguous', route: entry.route, other }
  }
  const { route } = first.entry
  return {
    kind: 'route',
    ...matchedRoute(first.place, first.entry, path),
    alike: could.filter((one) => one.route !== route),
  }
}

const matchedRoute = (place: TablePath, { route }: Entry, { segments }: PathSegments): MatchedRoute => ({
  route,
  parameters: parametersOf(place.pattern, segments),
})

const NONE: readonly never[] = []

type MatchedEntry = {
  readonly place: TablePath
  readonly entry: Entry
  /** Places that match the path itself and protect it in the same way. */
  readonly alike?: readonly TablePath[]
  readonly method: string
  readonly path: PathSegments
}

/** A route with other rules that some service could run for the request; null: no such route. */
function otherRoute(root: Root, { place, entry, method, path, alike = NONE }: MatchedEntry): Route | null {
  refuseOutside(entry.route, path.segments)
  // The fast path of most requests: no other reading exists.
  const { unfolded, indexFiles, formatted, formats, emptied } = root
  const hasFormats =
    (place.pattern.rest && formats.length > 0) || path.segments.some((text) => formatted.has(text) || emptied.has(text))
  if (unfolded && indexFiles.size === 0 && !hasFormats && isPlain(path)) {
    place.slashLeads ??= slashLeads(root, place)
    if (!place.slashLeads) return null
  }
  const names = { pattern: place.folded, indexFiles, formatted, formats }
  const count = strippedCount(entry.route.stripPath)
  for (const reading of count === 0 ? readingsOf(path, names) : readingsBelow(count, path, names)) {
    for (const other of foldedPlaces(root, reading.segments, path.segments.length - 1)) {
      if (other === place || alike.includes(other)) continue
      const theirs = select(other, method)
      // Fastify has no such route either.
      if (theirs === undefined && !mayMatchWhole(other, reading.segments)) continue
      if (isForeseen(reading, { ours: place.pattern, theirs: other.pattern })) continue
      const plain = protectionOf(place, entry)
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

/** False where only a value that is empty leads to the place. */
const mayMatchWhole = ({ folded: { segments, rest } }: TablePath, path: readonly string[]): boolean =>
  rest || segments.every((one, at) => hasText(one, path[at] ?? ''))

const protectionOf = ({ folded }: TablePath, { route, rules: verdict }: Entry): Protection => ({
  pattern: folded,
  rules: verdict,
  isPublic: route.check === null,
  upstream: route.upstream,
})

function slashLeads(root: Root, place: TablePath): boolean {
  const slashed = otherSlash(place.folded, true)
  return root.places.some(
    (other) =>
      other !== place &&
      overlap(slashed, other.folded) &&
      (!isWithin(place.folded, other.folded) || isWithin(other.folded, place.folded)),
  )
}

/** The most specific places that the folded segments reach. `lastAt`: where the path ends as it was sent. */
function foldedPlaces(root: Root, segments: readonly string[], lastAt: number): readonly TablePath[] {
  const found = findFolded(root, segments, { at: 0, lastAt })
  const crossing = found.flatMap((place) => {
    place.foldedCrossing ??= root.places.filter((other) => cross(place.folded, other.folded))
    return place.foldedCrossing.filter(({ folded }) => mayMatch(folded, segments))
  })
  if (crossing.length === 0) return found
  const rivals = mayBeEmpty(segments) ? crossing : narrowest(crossing, ({ folded }) => folded)
  return [...new Set([...found, ...rivals])]
}

/** Finds, for each spelling of a literal, the most specific places, and those that Fastify runs with an empty value: at the end, but for `/`, and within texts. */
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
    const places = findFolded(child, folded, next)
    if (places.length > 0) taken.push(one)
    found.push(...places)
  }
  return [...empty, ...(found.length > 0 || node.rest === null ? found : [node.rest])]
}

// Methods that a `*` does not cover: TRACE echoes credentials, CONNECT opens a tunnel.
const NEVER = new Set(['TRACE', 'CONNECT'])

function select({ methods }: TablePath, method: string): Entry | undefined {
  const entry = methods.get(method) ?? (method === 'HEAD' ? methods.get('GET') : undefined)
  return entry ?? (NEVER.has(method) ? undefined : methods.get('*'))
}

function allowedMethods(places: readonly TablePath[]): readonly string[] {
  const names = new Set(places.flatMap(({ methods }) => [...methods.keys()]).filter((name) => name !== '*'))
  if (names.has('GET')) names.add('HEAD')
  return [...names.add('OPTIONS')].sort()
}
