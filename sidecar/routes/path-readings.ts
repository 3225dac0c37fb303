/**
 * Finds the other ways in which a service could read a path. Routers differ in what they ignore: case, a slash at the end,
 * a format such as `.json`, path parameters, the name of a script. The path is forwarded unchanged, so if another reading
 * leads to a route with other checks, the request is refused.
 */
import { foldText } from '../http/folding.ts'
import type { Check } from './checks.ts'
import { isWithin, otherSlash, type Pattern } from './patterns.ts'
import type { PathSegments, Route } from './route.ts'
import { namesScript, pagesOfData, type ScriptReading, scriptReadings } from './script-paths.ts'

/** One way to read a path, folded, and the pattern of its route under the same reading. */
export type Reading = {
  readonly segments: readonly string[]
  readonly pattern: Pattern
  /** True if the parameters keep their positions. */
  readonly aligned: boolean
  /** It depends on a script in the path; null: it does not. */
  readonly script: ScriptReading | null
  /** It is the page whose data the path names. */
  readonly isPageOfData: boolean
}

/** No character that folding changes, no `;` and no `/`. */
const UNCHANGED = /^[\x20-\x2e\x30-\x3a\x3c-\x40\x5b-\x7e]*$/
/** What a reader could drop from the end of a name, or take for a script. */
const MARKED = /[. :?#(]|^_payload|^f?cgi-bin$/

/** True if the only other reading of the path is the same path with a slash at its end. */
export const isPlain = ({ segments, written }: PathSegments): boolean => {
  return (
    segments.at(-1) !== '' &&
    written === segments &&
    segments.every((text) => UNCHANGED.test(text) && !MARKED.test(text))
  )
}

/** What routes have. `indexFiles`: names of index files. `formatted`: names with a format, by the name without it. */
type RouteNames = {
  readonly indexFiles: ReadonlySet<string>
  readonly formatted: ReadonlyMap<string, readonly string[]>
}

/** All readings. The first one is the path itself, folded. `pattern`: that of the path's route. */
export function readingsOf(
  { segments }: PathSegments,
  { pattern, indexFiles, formatted }: RouteNames & { readonly pattern: Pattern },
): readonly Reading[] {
  const folded = segments.map((text) => foldText(text).replace(SLASH_ALIKE, '/'))
  const first: Reading = { segments: folded, pattern, aligned: true, script: null, isPageOfData: false }
  const bases: Reading[] = [first]
  if (folded.some((text) => text.includes(';')))
    bases.push({ ...first, segments: folded.map((text) => text.split(';', 1)[0] ?? '') })
  const end = folded.findIndex((text) => QUERY_ALIKE.test(text))
  // Servers that fold compatibility characters end a path at a full-width question mark.
  if (end >= 0)
    bases.push({ ...first, segments: [...folded.slice(0, end), (folded[end] ?? '').replace(QUERY_ALIKE, '')] })
  if (folded.some((text) => text.includes('/')))
    bases.push({ ...first, segments: folded.flatMap((text) => text.split('/')), aligned: false })
  const pieces = folded.flatMap((text) => text.split(/[/\\]/).map((piece) => piece.trim()))
  // A name in the middle is empty when folding leaves nothing of it, and servers drop such a name.
  if (pieces.length !== folded.length || pieces.some(isDots) || pieces.slice(0, -1).includes(''))
    bases.push({ ...first, segments: withoutDots(pieces), aligned: false })
  bases.push(...withoutSession(folded).map((segments) => ({ ...first, segments, aligned: false })))
  if (folded.some((text) => WINDOWS_END.test(text)))
    bases.push({ ...first, segments: folded.map((text) => text.replace(WINDOWS_END, '') || text) })
  bases.push(...bases.flatMap(withoutCompression), ...bases.flatMap((reading) => withFormat(reading, formatted)))
  const read = bases.flatMap((reading) => [reading, ...withoutScript(reading), ...pageReadings(reading)])
  const slashed = read.flatMap((reading) => [reading, ...withOtherSlash(reading)])
  const pages = slashed.flatMap((reading) => [reading, ...withIndexFile(reading, indexFiles)])
  return pages.flatMap((reading) => [reading, ...withoutFormat(reading)])
}

const isDots = (text: string): boolean => text === '.' || text === '..'

/** Such a path has its dots or slashes in compatibility characters: U+2025 is `..` and U+FF0F is `/` when they are folded. */
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

/** What ASP.NET takes out of a path, wherever it stands: session and sign-in of browsers without cookies. */
const SESSION = /\((?:[a-z]\([^()/]*\))+\)/g

/** The path without it: as a segment of its own, and with what is around it in one name. */
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

const QUERY_ALIKE = /[?#].*$/
/** Windows takes the fraction slash and the division slash for a slash where a code page has neither. */
const SLASH_ALIKE = /[\u2044\u2215]/g

/** Windows drops dots and spaces at the end of a name, and reads `name::$DATA` as the name. */
const WINDOWS_END = /(?:[. ]+|:.*\$.*)$/

const COMPRESSED = /.\.(?:gz|br|zst)$/

/** Servers have a compressed copy beside a file. A literal of the route file is exact. */
function withoutCompression(reading: Reading): Reading[] {
  const { segments, pattern } = reading
  const at = segments.length - 1
  const name = segments[at] ?? ''
  if (!COMPRESSED.test(name) || pattern.segments[at]?.kind === 'literal') return []
  return [{ ...reading, segments: segments.with(at, name.slice(0, name.lastIndexOf('.'))) }]
}

function withoutScript(reading: Reading): Reading[] {
  if (!namesScript(reading.segments)) return []
  return scriptReadings(reading.segments).map((script) => ({
    ...reading,
    segments: script.segments,
    aligned: reading.aligned && script.aligned,
    script,
  }))
}

const pageReadings = (reading: Reading): Reading[] =>
  pagesOfData(reading.segments).map((segments) => ({ ...reading, segments, aligned: false, isPageOfData: true }))

/** A route that names what follows the script, such as `/files/{name}/raw`, knows the script as a value. */
export function isForeseen({ script }: Reading, { ours, theirs }: { ours: Pattern; theirs: Pattern }): boolean {
  if (script === null || script.scriptAt === null) return false
  return ours.segments[script.scriptAt + 1] !== undefined && theirs.segments[script.decisiveAt]?.kind !== 'literal'
}

function withIndexFile(reading: Reading, names: ReadonlySet<string>): Reading[] {
  if (names.size === 0 || reading.segments.at(-1) !== '') return []
  return [...names].map((name) => ({ ...reading, segments: reading.segments.with(-1, name) }))
}

function withOtherSlash(reading: Reading): Reading[] {
  const { segments, pattern } = reading
  const put = segments.at(-1) !== ''
  if (!put && segments.length === 1) return []
  // The rest of a pattern stays, unless the rest of the path was only that slash.
  const isOfRest = pattern.rest && (put || segments.length - 1 > pattern.segments.length)
  const toggled = put ? [...segments, ''] : segments.slice(0, -1)
  return [{ ...reading, segments: toggled, pattern: isOfRest ? pattern : otherSlash(pattern, put) }]
}

/**
 * Web servers serve `/admin.html` for `/admin` (clean URLs, MultiViews), and Rails answers `/users` as `/users.json` when the Accept
 * field says so. A literal of the route file is exact.
 */
function withFormat(reading: Reading, formatted: RouteNames['formatted']): Reading[] {
  if (formatted.size === 0) return []
  const { segments, pattern, aligned } = reading
  const isExact = (at: number): boolean => aligned && pattern.segments[at]?.kind === 'literal'
  return segments.flatMap((text, at) =>
    isExact(at) ? [] : (formatted.get(text) ?? []).map((name) => ({ ...reading, segments: segments.with(at, name) })),
  )
}

/** Data of pages: of `/admin` in React Router 7, and of `/report.html` in SvelteKit. */
const ROOT_DATA = /_root\.rsc$/
const HTML_DATA = /(?<=\.html)__data\.json$/

/** Rails and Spring read `/admin.json` as `/admin`. A literal of the route file is exact. */
function withoutFormat(reading: Reading): Reading[] {
  const { segments, pattern } = reading
  const at = segments.at(-1) === '' ? segments.length - 2 : segments.length - 1
  const name = segments[at]
  if (name === undefined || pattern.segments[at]?.kind === 'literal') return []
  // Rails ends a name at its last dot, Spring at any.
  const ends = [/\.[^.]*$/, /\..*$/, /[. ]+$/, ROOT_DATA, HTML_DATA]
  const stems = new Set(ends.map((end) => name.replace(end, '')))
  stems.delete(name)
  stems.delete('')
  return [...stems].map((stem) => ({ ...reading, segments: segments.with(at, stem) }))
}

/** How a route protects its paths: its folded pattern, and its rules as comparable text. */
export type Protection = { readonly pattern: Pattern; readonly rules: string; readonly isPublic: boolean }

/**
 * True if a request of route `ours` must not reach the route at `path`, because its protection differs. `theirs` is that
 * route; null: none has the method. `read`: the pattern of `ours` under this reading.
 */
export function protectsOtherwise(
  ours: Protection,
  theirs: Protection | null,
  { path, read, isPageOfData = false }: { path: Pattern; read: Pattern; isPageOfData?: boolean },
): boolean {
  // A public route needs no protection.
  if (theirs !== null && (theirs.isPublic || theirs.rules === ours.rules)) return false
  // The operator made this exception from a wider route. The page of some data is elsewhere, so the exception is not about it.
  if (!isPageOfData && isWithin(ours.pattern, path) && !isWithin(path, ours.pattern)) return false
  // Two spellings of one path, of which only ours has the method.
  return theirs !== null || !isWithin(read, path) || !isWithin(path, read)
}

/** True if the rules depend on parameters of the path, or on all of it. */
export const usesPlaces = (rules: string): boolean => rules.includes('{"place":') || rules.includes(WHOLE_PATH)

/** True if the rules depend on anything in the request but its token. */
export const usesRequest = (rules: string): boolean =>
  usesPlaces(rules) || /"from":"(?:path|query|header|body|request)"/.test(rules)

const WHOLE_PATH = '"from":"request","name":"path"'

/** The rules of a route as text: equal texts mean equal protection. Parameters are compared by position in the path. */
export function rulesOf({ check, context, stepUp, shadow, websocket, origins, pattern }: Route): string {
  const places = pattern.segments.flatMap((segment, at) => (segment.kind === 'parameter' ? [at] : []))
  const place = (_: string, value: unknown): unknown =>
    typeof value === 'object' && value !== null && 'from' in value && value.from === 'path' && 'index' in value
      ? { place: places[Number(value.index)] }
      : value
  const shown: { readonly check: Check | null } & { readonly [name: string]: unknown } = {
    check,
    context,
    stepUp,
    shadow,
    socket: websocket ? [...origins].sort() : null,
  }
  return JSON.stringify(shown, place)
}
