/**
 * How else a service could read a path that the route table has found a route for. Routers differ in what they fold: the
 * case, a slash at the end, a format such as `.json`, path parameters. The bytes are forwarded as they are, so what
 * another reading leads to must be judged alike, or the request is refused.
 */
import { foldText } from '../http/folding.ts'
import type { Check } from './checks.ts'
import { isWithin, otherSlash, type Pattern } from './patterns.ts'
import type { PathSegments, Route } from './route.ts'

/** A path as somebody may read it, folded, and what becomes of the pattern of its route. */
export type Reading = {
  readonly segments: readonly string[]
  readonly pattern: Pattern
  /** Parameters stand where the route of the path has them. */
  readonly aligned: boolean
}

/** Neither case nor what `foldText` folds, no `;` and no `/`. */
const UNCHANGED = /^[\x20-\x2e\x30-\x3a\x3c-\x40\x5b-\x7e]*$/

/** True when a slash at the end is all that a reader could add to the path, and nothing all that one could take away. */
export const isPlain = ({ segments, written }: PathSegments): boolean => {
  const last = segments.at(-1) ?? ''
  return last !== '' && !/[. ]/.test(last) && written === segments && segments.every((text) => UNCHANGED.test(text))
}

/** The path itself, folded, is the first. */
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
  // The rest of a pattern goes on as it is, unless it was nothing but that slash.
  const isOfRest = pattern.rest && (put || segments.length - 1 > pattern.segments.length)
  const toggled = put ? [...segments, ''] : segments.slice(0, -1)
  return [{ segments: toggled, pattern: isOfRest ? pattern : otherSlash(pattern, put), aligned }]
}

/** Rails and Spring took `/admin.json` for `/admin`; Windows drops dots and spaces. A name that the file has is meant so. */
function withoutFormat({ segments, pattern, aligned }: Reading): Reading[] {
  const at = segments.at(-1) === '' ? segments.length - 2 : segments.length - 1
  const name = segments[at]
  if (name === undefined || pattern.segments[at]?.kind === 'literal') return []
  const stems = new Set([name.replace(/\.[a-z0-9]{1,8}$/, ''), name.replace(/[. ]+$/, '')])
  stems.delete(name)
  stems.delete('')
  return [...stems].map((stem) => ({ segments: segments.with(at, stem), pattern, aligned }))
}

/** A route as it judges: the pattern that it is found by, folded, and what it says. */
export type Protection = { readonly pattern: Pattern; readonly rules: string; readonly isPublic: boolean }

/**
 * True when a request that `ours` judges must not be served by a route at `path`. `theirs` is that route; null: there is
 * none for the method. `read`: the pattern of `ours` as its path is read.
 */
export function protectsOtherwise(
  ours: Protection,
  theirs: Protection | null,
  { path, read }: { path: Pattern; read: Pattern },
): boolean {
  // What anybody may have is no secret of the other route.
  if (theirs !== null && (theirs.isPublic || theirs.rules === ours.rules)) return false
  // The operator's exception from a wider route.
  if (isWithin(ours.pattern, path) && !isWithin(path, ours.pattern)) return false
  // Of two spellings of one path, the method is only here.
  return theirs !== null || !isWithin(read, path) || !isWithin(path, read)
}

/** One text for routes that judge alike: parameters count by where they stand in the path. */
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
