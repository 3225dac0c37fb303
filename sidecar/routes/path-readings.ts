/**
 * Finds the other ways in which a service could read a path. Routers differ in what they ignore: case, a slash at the end,
 * a format such as `.json`, path parameters, the name of a script. The path is forwarded unchanged, so if another reading
 * leads to a route with other checks, the request is refused.
 */
import { PAGE_DATA_ENDS } from '../frameworks/page-frameworks.ts'
import { foldText } from '../http/folding.ts'
import { addedNames, type MovedPaths, serviceOf, strippedCount, type UpstreamEntry } from '../http/upstream-entry.ts'
import { RequestError } from '../request/errors.ts'
import { SEGMENTS_MAX, tooManySegments } from '../request/target.ts'
import type { Check } from './checks.ts'
import { isWhole, isWithin, mayMatch, otherSlash, type Pattern } from './patterns.ts'
import type { PathSegments, Route } from './route.ts'
import { type Format, isScript, namesScript, pagesOfData, type ScriptReading, scriptReadings } from './script-paths.ts'

/** One way in which a service could read a path: its folded segments, and the route's pattern changed alike. */
export type Reading = {
  readonly segments: readonly string[]
  readonly pattern: Pattern
  /** True if parameters stand at the same positions as in the path itself. */
  readonly aligned: boolean
  /** The script in the path on which this reading depends; null: it depends on none. */
  readonly script: ScriptReading | null
  /** True if the reading is no path of the request's own route: another page, whose data the path names, or another path. */
  readonly isElsewhere: boolean
}

/** Matches a segment without `;` and `/` that folding leaves as it is. */
const UNCHANGED = /^[\x20-\x2e\x30-\x3a\x3c-\x40\x5b-\x7e]*$/
/** Matches endings that a server could drop from a name, and names that it could take for a script. */
const MARKED = /[. :?#(]|^_payload|^f?cgi-bin$/

/** True if the only other reading of the path is the same path with a slash at its end. */
export const isPlain = ({ segments, written }: PathSegments): boolean => {
  return (
    segments.at(-1) !== '' &&
    written === segments &&
    segments.every((text) => UNCHANGED.test(text) && !MARKED.test(text))
  )
}

/** Names in routes. `indexFiles`: names of index files. `formatted`: names with a format such as `.json`, by the name without it. */
type RouteNames = {
  readonly indexFiles: ReadonlySet<string>
  readonly formatted: ReadonlyMap<string, readonly string[]>
  /** Formats that may follow a parameter, such as `.json`. */
  readonly formats: readonly Format[]
}

/** How many segments may be scripts, or names that a route has with a format: each such segment multiplies the number of readings. */
const MARKED_MAX = 8
const READINGS_MAX = 1_000

/**
 * Yields the readings of a path one by one, beginning with the folded path itself. `pattern`: the pattern of its route. Throws RequestError
 * `path_too_complex`.
 */
export function* readingsOf(path: PathSegments, names: ReadingNames): Generator<Reading, void, undefined> {
  let count = 0
  for (const reading of allReadings(path, names)) {
    count += 1
    if (count > READINGS_MAX) throw tooComplex()
    yield reading
  }
}

/**
 * The readings for a service behind `strip_path`, which does not get the first `count` names: it reads the rest as a path of its own,
 * where `/app` and `/app/` are one path.
 */
export function* readingsBelow(
  count: number,
  { segments, written }: PathSegments,
  names: ReadingNames,
): Generator<Reading, void, undefined> {
  const isBare = segments.length === count
  const pattern = isBare ? otherSlash(names.pattern, true) : names.pattern
  const above = segments.slice(0, count).map(foldText)
  const first = pattern.segments.slice(0, count)
  const rest = isBare ? BARE : { segments: segments.slice(count), written: written.slice(count) }
  const below = { ...pattern, segments: pattern.segments.slice(count) }
  for (const reading of readingsOf(rest, { ...names, pattern: below })) {
    const { script } = reading
    yield {
      ...reading,
      segments: [...above, ...reading.segments],
      pattern: { ...reading.pattern, segments: [...first, ...reading.pattern.segments] },
      script: script && {
        ...script,
        scriptAt: script.scriptAt === null ? null : script.scriptAt + count,
        decisiveAt: script.decisiveAt + count,
      },
    }
  }
  if (rest.segments.length === 1 && rest.segments[0] === '')
    yield { segments: above, pattern: otherSlash(pattern, false), aligned: true, script: null, isElsewhere: false }
}

/** The names of the path that the service gets. */
export const namesSent = ({ stripPath, addPath }: MovedPaths, segments: readonly string[]): readonly string[] => [
  ...addedNames(addPath),
  ...segments.slice(strippedCount(stripPath)),
]

/** Throws RequestError if a service could read the path as one outside of `add_path`. */
export function refuseOutside(moved: MovedPaths, segments: readonly string[]): void {
  if (moved.addPath === null) return
  const above = addedNames(moved.addPath).map(foldText)
  const sent = namesSent(moved, segments).map((text) => foldText(text).replace(SLASH_ALIKE, '/'))
  const pieces = sent.flatMap((text) => text.split(/[/\\]/).map((piece) => (piece.split(';', 1)[0] ?? '').trim()))
  const isBelow = (names: readonly string[]): boolean => above.every((name, at) => names[at] === name)
  if (!climbs(pieces, above.length) && pagesOfData(sent).every(isBelow)) return
  const message = 'Some servers would read this path as another path'
  throw new RequestError(
    'request_invalid',
    message,
    `${message}, which is not below ${moved.addPath}, the add_path of the service`,
  )
}

/** True if `..` leaves the folder of the first `count` names, even for a moment: `/a/../a/x` does. */
function climbs(names: readonly string[], count: number): boolean {
  let depth = 0
  return names.some((name, at) => {
    if (name === '..') depth -= 1
    else if (name !== '.' && name !== '') depth += 1
    return at >= count && depth < count
  })
}

const BARE: PathSegments = { segments: [''], written: [''] }

function* allReadings(path: PathSegments, names: ReadingNames): Generator<Reading, void, undefined> {
  for (const base of basesOf(path, names))
    for (const read of withoutScript(base))
      for (const slashed of withOtherSlash(read))
        for (const page of withIndexFile(slashed, names.indexFiles)) {
          yield page
          yield* withoutFormat(page)
        }
}

const tooComplex = (): RequestError =>
  new RequestError('path_too_complex', 'The path has too many names that servers read in several ways')

type ReadingNames = RouteNames & { readonly pattern: Pattern }

/** Readings that differ in any segment. `allReadings` then varies scripts, slashes, index files and formats. */
function* basesOf(
  { segments }: PathSegments,
  { pattern, formatted, formats }: ReadingNames,
): Generator<Reading, void, undefined> {
  const folded = segments.map((text) => foldText(text).replace(SLASH_ALIKE, '/'))
  const first: Reading = { segments: folded, pattern, aligned: true, script: null, isElsewhere: false }
  const bases: Reading[] = [first]
  if (folded.some((text) => text.includes(';')))
    bases.push({ ...first, segments: folded.map((text) => text.split(';', 1)[0] ?? '') })
  const end = folded.findIndex((text) => QUERY_ALIKE.test(text))
  // Servers that fold compatibility characters end a path at a full-width question mark.
  if (end >= 0)
    bases.push({ ...first, segments: [...folded.slice(0, end), (folded[end] ?? '').split(QUERY_ALIKE, 1)[0] ?? ''] })
  if (folded.some((text) => text.includes('/')))
    bases.push({ ...first, segments: folded.flatMap((text) => text.split('/')), aligned: false })
  const pieces = folded.flatMap((text) => text.split(/[/\\]/).map((piece) => piece.trim()))
  // Servers drop a name in the middle of the path that folding leaves empty.
  if (pieces.length !== folded.length || pieces.some(isDots) || pieces.slice(0, -1).includes(''))
    bases.push({ ...first, segments: withoutDots(pieces), aligned: false })
  bases.push(...withoutSession(folded).map((segments) => ({ ...first, segments, aligned: false })))
  const windows = folded.map(withoutWindowsEnd)
  if (windows.some((text, at) => text !== folded[at])) bases.push({ ...first, segments: windows })
  for (const base of bases) refuseComplex(base, formatted)
  const placed = bases.map((base) =>
    base === first ? base : { ...base, isElsewhere: !mayMatch(pattern, base.segments) },
  )
  yield* placed
  for (const base of placed) yield* withoutCompression(base)
  for (const base of placed) yield* withFormat(base, formatted)
  for (const base of placed) yield* withFormatOfParameter(base, formats)
}

/** Throws RequestError early for a path that would have too many readings. */
function refuseComplex(base: Reading, formatted: RouteNames['formatted']): void {
  const { segments } = base
  if (segments.length > SEGMENTS_MAX) throw tooManySegments()
  const marked = segments.filter((_, at) => isScript(segments, at) || hasFormat(base, at, formatted))
  if (marked.length > MARKED_MAX) throw tooComplex()
}

const isDots = (text: string): boolean => text === '.' || text === '..'

/** The path without dot segments and empty names. They appear when compatibility characters are folded: U+2025 is `..`, U+FF0F is `/`. */
function withoutDots(segments: readonly string[]): readonly string[] {
  const left: string[] = []
  for (const text of segments) {
    if (text === '..') left.pop()
    else if (text !== '.' && text !== '') left.push(text)
  }
  // RFC 3986 section 5.2.4: the path of a folder ends in a slash.
  const last = segments.at(-1) ?? ''
  return last === '' || isDots(last) || left.length === 0 ? [...left, ''] : left
}

/** Session and sign-in of browsers without cookies, which ASP.NET takes out of a path wherever they stand: `(S(…))`. */
const SESSION = /\((?:[a-z]\([^()/]*\))+\)/g

/** The path without its session parts; and once more without the slash before them, which joins the names around. */
function withoutSession(segments: readonly string[]): readonly (readonly string[])[] {
  const path = `/${segments.join('/')}`
  if (path.search(SESSION) < 0) return []
  const read = (text: string): readonly string[] =>
    text
      .replace(/\/{2,}/g, '/')
      .slice(1)
      .split('/')
  return [
    read(path.replace(SESSION, '')),
    read(`/${path.replaceAll(new RegExp(`/${SESSION.source}`, 'g'), '').replace(/^\//, '')}`),
  ]
}

const QUERY_ALIKE = /[?#]/
/** Matches the fraction slash and the division slash, which Windows turns into a slash in code pages that lack them. */
const SLASH_ALIKE = /[\u2044\u2215]/g

/** Windows drops dots and spaces at the end of a name, and reads `name::$DATA` as the name. */
function withoutWindowsEnd(text: string): string {
  const stream = text.indexOf(':')
  return (stream >= 0 && text.includes('$', stream) ? text.slice(0, stream) : withoutEnd(text)) || text
}

/** The text without dots and spaces at its end. A regular expression would try a match at each of them. */
function withoutEnd(text: string): string {
  let end = text.length
  while (end > 0 && (text[end - 1] === '.' || text[end - 1] === ' ')) end -= 1
  return text.slice(0, end)
}

const COMPRESSED = /.\.(?:gz|br|zst)$/

/** Servers keep a compressed copy `a.js.gz` beside a file. A literal of the route file is not changed. */
function* withoutCompression(reading: Reading): Generator<Reading, void, undefined> {
  const { segments, pattern } = reading
  const at = segments.length - 1
  const name = segments[at] ?? ''
  if (!COMPRESSED.test(name) || pattern.segments[at]?.kind === 'literal') return
  yield { ...reading, segments: segments.with(at, name.slice(0, name.lastIndexOf('.'))) }
}

/** The reading itself; the readings in which a server finds a script; and the pages whose data the path names. */
function* withoutScript(reading: Reading): Generator<Reading, void, undefined> {
  yield reading
  if (namesScript(reading.segments))
    for (const script of scriptReadings(reading.segments))
      yield { ...reading, segments: script.segments, aligned: reading.aligned && script.aligned, script }
  for (const segments of pagesOfData(reading.segments))
    yield { ...reading, segments, aligned: false, isElsewhere: true }
}

/** True for a route such as `/files/{name}/raw`: it has a segment after the script, so it expects a script's name as a value. */
export function isForeseen({ script }: Reading, { ours, theirs }: { ours: Pattern; theirs: Pattern }): boolean {
  if (script === null || script.scriptAt === null) return false
  const decisive = theirs.segments[script.decisiveAt]
  return ours.segments[script.scriptAt + 1] !== undefined && (decisive === undefined || isWhole(decisive))
}

function* withIndexFile(reading: Reading, names: ReadonlySet<string>): Generator<Reading, void, undefined> {
  yield reading
  if (reading.segments.at(-1) !== '') return
  for (const name of names) yield { ...reading, segments: reading.segments.with(-1, name) }
}

function* withOtherSlash(reading: Reading): Generator<Reading, void, undefined> {
  yield reading
  const { segments, pattern } = reading
  const put = segments.at(-1) !== ''
  if (!put && segments.length === 1) return
  // A pattern that ends in `**` still matches, unless only the removed slash was left for `**`.
  const isOfRest = pattern.rest && (put || segments.length - 1 > pattern.segments.length)
  const toggled = put ? [...segments, ''] : segments.slice(0, -1)
  yield { ...reading, segments: toggled, pattern: isOfRest ? pattern : otherSlash(pattern, put) }
}

/** True if some route has the name with a format added. A literal of the path's own route is not changed. */
const hasFormat = ({ segments, pattern, aligned }: Reading, at: number, formatted: RouteNames['formatted']): boolean =>
  formatted.has(segments[at] ?? '') && !(aligned && pattern.segments[at]?.kind === 'literal')

/**
 * Adds or removes a format: web servers serve `/admin.html` for `/admin` (clean URLs, MultiViews), and Rails answers `/users` as
 * `/users.json` if the Accept field says so.
 */
function* withFormat(reading: Reading, formatted: RouteNames['formatted']): Generator<Reading, void, undefined> {
  const { segments } = reading
  for (const [at, text] of segments.entries())
    if (hasFormat(reading, at, formatted))
      for (const name of formatted.get(text) ?? []) yield { ...reading, segments: segments.with(at, name) }
}

/** The same for names after parameters: `/files/report` as `/files/{file}.csv`. */
function* withFormatOfParameter(reading: Reading, formats: readonly Format[]): Generator<Reading, void, undefined> {
  const { segments, pattern } = reading
  const at = segments.at(-1) === '' ? segments.length - 2 : segments.length - 1
  const name = segments[at] ?? ''
  if (name === '' || pattern.segments[at] !== undefined) return
  for (const { stem, added } of formats)
    if (name.endsWith(stem)) yield { ...reading, segments: segments.with(at, name + added) }
}

/** Rails and Spring read `/admin.json` as `/admin`. A literal of the route file is not changed. */
function* withoutFormat(reading: Reading): Generator<Reading, void, undefined> {
  const { segments, pattern } = reading
  const at = segments.at(-1) === '' ? segments.length - 2 : segments.length - 1
  const name = segments[at]
  if (name === undefined || pattern.segments[at]?.kind === 'literal') return
  const dot = name.indexOf('.')
  const dotted = dot < 0 ? [] : [name.slice(0, name.lastIndexOf('.')), name.slice(0, dot)]
  // Rails ends a name at its last dot, Spring at any.
  const pages = PAGE_DATA_ENDS.map((end) => name.replace(end, ''))
  const stems = new Set([...dotted, withoutEnd(name), ...pages])
  stems.delete(name)
  stems.delete('')
  for (const stem of stems) yield { ...reading, segments: segments.with(at, stem) }
}

/** How a route protects its paths: its folded pattern, and its rules as comparable text. */
export type Protection = {
  readonly pattern: Pattern
  readonly rules: string
  readonly isPublic: boolean
  /** The service of these paths; null: the whole file's service. */
  readonly upstream: UpstreamEntry | null
}

/**
 * True if a request of route `ours` must not reach the route at `path`, because its protection differs. `theirs`: the protection of
 * that route; null: no route there has the method. `read`: the pattern of `ours` under this reading.
 */
export function protectsOtherwise(
  ours: Protection,
  theirs: Protection | null,
  { path, read, isElsewhere = false }: { path: Pattern; read: Pattern; isElsewhere?: boolean },
): boolean {
  // A public route needs no protection. The same path of another service is another page.
  const isPublic = theirs?.isPublic === true && theirs.upstream === ours.upstream
  if (isPublic || theirs?.rules === ours.rules) return false
  // The operator wrote `ours` as an exception to a wider route; but the exception is not about paths outside of `ours`.
  if (!isElsewhere && isWithin(ours.pattern, path) && !isWithin(path, ours.pattern)) return false
  // Two spellings of one path need no refusal where only our route has the method.
  return theirs !== null || !isWithin(read, path) || !isWithin(path, read)
}

/** True if the rules depend on a parameter of the path, or on the whole path. */
export const usesPlaces = (rules: string): boolean => rules.includes('{"place":') || rules.includes(WHOLE_PATH)

/** True if the rules depend on anything in the request except its token. */
export const usesRequest = (rules: string): boolean =>
  usesPlaces(rules) || /"from":"(?:path|query|header|body|request)"/.test(rules)

const WHOLE_PATH = '"from":"request","name":"path"'

/** The rules of a route as text: equal texts mean equal protection. Parameters are compared by their position in the path. */
export function rulesOf({
  check,
  context,
  stepUp,
  guests,
  issuers,
  audience,
  shadow,
  websocket,
  origins,
  pattern,
  mcp,
  answer,
  upstream,
}: Route): string {
  const places = pattern.segments.flatMap((one, at) => {
    if (one.kind === 'literal') return []
    // A value within a segment (`{id}.csv`) is another value than the whole segment.
    return [isWhole(one) ? { place: at } : { place: at, before: one.before, after: one.after }]
  })
  const place = (_: string, value: unknown): unknown =>
    typeof value === 'object' && value !== null && 'from' in value && value.from === 'path' && 'index' in value
      ? // The label of the host comes after the parameters of the path.
        (places[Number(value.index)] ?? { place: 'host' })
      : value
  const shown: { readonly check: Check | null } & { readonly [name: string]: unknown } = {
    check,
    context,
    guests,
    stepUp,
    issuers,
    audience,
    shadow,
    ...(mcp !== null && { mcp }),
    ...(answer !== null && { answer }),
    ...(upstream !== null && { upstream: serviceOf(upstream) }),
    socket: websocket ? [...origins].sort() : null,
  }
  return JSON.stringify(shown, place)
}
