/**
 * Finds the other ways in which a service could read a path. Routers differ in what they ignore: case, a slash at the end,
 * a format such as `.json`, path parameters. The path is forwarded unchanged, so if another reading leads to a route with
 * other checks, the request is refused.
 */
import { foldText } from '../http/folding.ts'
import type { Check } from './checks.ts'
import { isWithin, otherSlash, type Pattern } from './patterns.ts'
import type { PathSegments, Route } from './route.ts'

/** One way to read a path, folded, and the pattern of its route under the same reading. */
export type Reading = {
  readonly segments: readonly string[]
  readonly pattern: Pattern
  /** True if the parameters keep their positions. */
  readonly aligned: boolean
}

/** No character that folding changes, no `;` and no `/`. */
const UNCHANGED = /^[\x20-\x2e\x30-\x3a\x3c-\x40\x5b-\x7e]*$/

/** True if the only other reading of the path is the same path with a slash at its end. */
export const isPlain = ({ segments, written }: PathSegments): boolean => {
  const last = segments.at(-1) ?? ''
  return last !== '' && !/[. ]/.test(last) && written === segments && segments.every((text) => UNCHANGED.test(text))
}

/** All readings. The first one is the path itself, folded. */
export function readingsOf({ segments }: PathSegments, pattern: Pattern): readonly Reading[] {
  const folded = segments.map(foldText)
  const bases: Reading[] = [{ segments: folded, pattern, aligned: true }]
  if (folded.some((text) => text.includes(';')))
    bases.push({ segments: folded.map((text) => text.split(';', 1)[0] ?? ''), pattern, aligned: true })
  if (folded.some((text) => text.includes('/')))
    bases.push({ segments: folded.flatMap((text) => text.split('/')), pattern, aligned: false })
  const slashed = bases.flatMap((reading) => [reading, ...withOtherSlash(reading)])
  return slashed.flatMap((reading) => [reading, ...withoutFormat(reading)])
}

function withOtherSlash({ segments, pattern, aligned }: Reading): Reading[] {
  const put = segments.at(-1) !== ''
  if (!put && segments.length === 1) return []
  // The rest of a pattern stays, unless the rest of the path was only that slash.
  const isOfRest = pattern.rest && (put || segments.length - 1 > pattern.segments.length)
  const toggled = put ? [...segments, ''] : segments.slice(0, -1)
  return [{ segments: toggled, pattern: isOfRest ? pattern : otherSlash(pattern, put), aligned }]
}

/** Rails and Spring read `/admin.json` as `/admin`; Windows drops final dots and spaces. A literal of the route file is exact. */
function withoutFormat({ segments, pattern, aligned }: Reading): Reading[] {
  const at = segments.at(-1) === '' ? segments.length - 2 : segments.length - 1
  const name = segments[at]
  if (name === undefined || pattern.segments[at]?.kind === 'literal') return []
  const stems = new Set([name.replace(/\.[a-z0-9]{1,8}$/, ''), name.replace(/[. ]+$/, '')])
  stems.delete(name)
  stems.delete('')
  return [...stems].map((stem) => ({ segments: segments.with(at, stem), pattern, aligned }))
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
  { path, read }: { path: Pattern; read: Pattern },
): boolean {
  // A public route needs no protection.
  if (theirs !== null && (theirs.isPublic || theirs.rules === ours.rules)) return false
  // The operator made this exception from a wider route.
  if (isWithin(ours.pattern, path) && !isWithin(path, ours.pattern)) return false
  // Two spellings of one path, of which only ours has the method.
  return theirs !== null || !isWithin(read, path) || !isWithin(path, read)
}

/** The rules of a route as text: equal texts mean equal protection. Parameters are compared by position in the path. */
export function rulesOf({ check, stepUp, shadow, websocket, origins, pattern }: Route): string {
  const places = pattern.segments.flatMap((segment, at) => (segment.kind === 'parameter' ? [at] : []))
  const place = (_: string, value: unknown): unknown =>
    typeof value === 'object' && value !== null && 'from' in value && value.from === 'path' && 'index' in value
      ? { place: places[Number(value.index)] }
      : value
  const shown: { readonly check: Check | null } & { readonly [name: string]: unknown } = {
    check,
    stepUp,
    shadow,
    socket: websocket ? [...origins].sort() : null,
  }
  return JSON.stringify(shown, place)
}
