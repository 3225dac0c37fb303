/** Path patterns of routes, and which of two patterns is more specific. */
import { foldText } from '../http/folding.ts'

export type Segment =
  | { readonly kind: 'literal'; readonly text: string }
  /** A segment with one parameter: a non-empty value between two texts, which are usually empty. */
  | Parameter
export type Parameter = {
  readonly kind: 'parameter'
  readonly name: string
  readonly before: string
  readonly after: string
}
/** A path's pattern. `rest`: it ends in `**`, which matches anything after the slash, even nothing: `/a/**` matches `/a/`, not `/a`. */
export type Pattern = { readonly segments: readonly Segment[]; readonly rest: boolean }

const SEGMENTS_MAX = 64
const PARAMETER = /^([^{}]*)\{([a-zA-Z][a-zA-Z0-9_]*)\}([^{}]*)$/
const LITERAL = /^[^\p{Cc}{}*?#\\%\s]*$/u

/** The pattern, or an error message that continues the sentence "the path …". */
export function parsePattern(path: string): Pattern | string {
  if (!path.startsWith('/')) return 'must start with /'
  const texts = path.slice(1).split('/')
  if (texts.length > SEGMENTS_MAX) return `has more than ${SEGMENTS_MAX} segments`
  const rest = texts.at(-1) === '**'
  if (rest) texts.pop()
  const segments: Segment[] = []
  for (const [at, text] of texts.entries()) {
    const segment = parseSegment(text, { last: at === texts.length - 1 && !rest })
    if (typeof segment === 'string') return segment
    if (segment.kind === 'parameter' && parameterNames({ segments, rest }).includes(segment.name))
      return `names {${segment.name}} twice`
    segments.push(segment)
  }
  return { segments, rest }
}

function parseSegment(text: string, { last }: { last: boolean }): Segment | string {
  const [, before = '', name, after = ''] = PARAMETER.exec(text) ?? []
  if (name !== undefined && !/[*%]/.test(text))
    return LITERAL.test(before + after)
      ? { kind: 'parameter', name, before, after }
      : `has ${text}, which has a character that a path cannot have`
  if (text === '**') return 'has ** before its end'
  if (text === '' && !last) return 'has an empty segment'
  if (text === '.' || text === '..') return 'has a dot segment'
  const elsewhere = /^(?:<(?:\w+:)?(\w*)[^<>]*>|\{(\w+):.*\})$/.exec(text)
  if (elsewhere !== null)
    return `has ${text}; a parameter is a name alone, {${elsewhere[1] || elsewhere[2] || 'id'}}, and is one name of the path`
  if (/^[:{*][{}\w]*(?:\*|\+|\.\.\.)\}?$|^\{\*\w+\}$/.test(text))
    return `has ${text}; the rest of a path is written ** at its end`
  if (text.startsWith(':')) return `has ${text}; a parameter is written {${text.slice(1)}}`
  if (text.includes('*')) return `has ${text}; only ** as the last segment matches more than one name`
  if (text.includes('%')) return `has ${text}; write the character itself instead of its percent-encoding`
  if (text.includes('{') || text.includes('}'))
    return `has ${text}; a segment has one parameter at most, such as {id} or {id}:cancel`
  if (!LITERAL.test(text)) return `has ${text}, which has a character that a path cannot have`
  return { kind: 'literal', text }
}

export const parameterNames = ({ segments }: Pattern): string[] =>
  segments.flatMap((segment) => (segment.kind === 'parameter' ? [segment.name] : []))

const segmentText = (segment: Segment): string =>
  segment.kind === 'literal' ? segment.text : `${segment.before}{${segment.name}}${segment.after}`

/** The pattern as a route file writes it. */
export const patternText = ({ segments, rest }: Pattern): string =>
  `/${[...segments.map(segmentText), ...(rest ? ['**'] : [])].join('/')}`

/** True if the parameter takes the whole segment. */
export const isWhole = (segment: Segment | undefined): boolean =>
  segment?.kind === 'parameter' && segment.before === '' && segment.after === ''

/** True if the segment matches this text. `mayBeEmpty`: so does an empty value, as Fastify allows at the end of a path. */
export function hasText(segment: Segment, text: string, { mayBeEmpty = false } = {}): boolean {
  if (segment.kind === 'literal') return segment.text === text
  const { before, after } = segment
  const least = before.length + after.length + (mayBeEmpty ? 0 : 1)
  return text.length >= least && text.startsWith(before) && text.endsWith(after)
}

/** True if `other` matches every text that `one` matches. */
export function isSegmentWithin(one: Segment, other: Segment): boolean {
  if (one.kind === 'literal') return hasText(other, one.text)
  return other.kind === 'parameter' && one.before.startsWith(other.before) && one.after.endsWith(other.after)
}

/** A segment that matches the texts which both match; null: no text. */
export function commonSegment(one: Segment, other: Segment): Segment | null {
  if (one.kind === 'literal') return hasText(other, one.text) ? one : null
  if (other.kind === 'literal') return hasText(one, other.text) ? other : null
  const [before, shortBefore] = byLength(one.before, other.before)
  const [after, shortAfter] = byLength(one.after, other.after)
  return before.startsWith(shortBefore) && after.endsWith(shortAfter) ? { ...one, before, after } : null
}

const byLength = (a: string, b: string): readonly [longer: string, shorter: string] =>
  a.length >= b.length ? [a, b] : [b, a]

/** True if `b` matches every path that `a` matches. */
export function isWithin(a: Pattern, b: Pattern): boolean {
  for (let at = 0; ; at += 1) {
    const [mine, other] = [a.segments[at], b.segments[at]]
    if (other === undefined) return b.rest ? mine !== undefined || a.rest : mine === undefined && !a.rest
    if (mine === undefined) return false
    if (!isSegmentWithin(mine, other)) return false
  }
}

/** True if all paths of the pattern begin with the names of `path`. */
export const beginsWith = ({ segments }: Pattern, path: string | null): boolean =>
  path === null ||
  path
    .slice(1)
    .split('/')
    .every((text, at) => isLiteral(segments[at], text))

/** True if some path matches both. */
export function overlap(a: Pattern, b: Pattern): boolean {
  for (let at = 0; ; at += 1) {
    const [one, two] = [a.segments[at], b.segments[at]]
    if (one === undefined && two === undefined) return a.rest === b.rest
    if (one === undefined) return a.rest
    if (two === undefined) return b.rest
    if (commonSegment(one, two) === null) return false
  }
}

/** True if the patterns overlap and neither is within the other, so that none is the more specific. */
export const cross = (a: Pattern, b: Pattern): boolean => overlap(a, b) && !isWithin(a, b) && !isWithin(b, a)

/**
 * True if a service could match the path to the pattern; to Fastify, the last parameter may be empty. `written`: the segments to
 * compare with literals, where they differ from `path`.
 */
export function mayMatch(
  { segments, rest }: Pattern,
  path: readonly string[],
  written: readonly string[] = path,
): boolean {
  if (rest ? path.length <= segments.length : path.length !== segments.length) return false
  return segments.every((one, at) => isAt(one, { path, written, at, mayBeEmpty: true }))
}

/** True if the segment of the pattern matches the path at `at`. Texts around a value are compared as literals are. */
export function isAt(
  segment: Segment,
  { path, written, at, mayBeEmpty = false }: PathPlace & { readonly mayBeEmpty?: boolean },
): boolean {
  const text = path[at] ?? ''
  const asWritten = written[at] ?? text
  if (segment.kind === 'literal') return segment.text === asWritten
  return hasText(segment, text, { mayBeEmpty }) && (text === asWritten || hasText(segment, asWritten, { mayBeEmpty }))
}
type PathPlace = { readonly path: readonly string[]; readonly written: readonly string[]; readonly at: number }

/** The values of the parameters in the order of the pattern, which must match the path. */
export function parametersOf({ segments }: Pattern, values: readonly string[]): readonly string[] {
  const found: string[] = []
  for (let at = 0; at < segments.length; at += 1) {
    const segment = segments[at]
    const text = values[at] ?? ''
    if (segment?.kind === 'parameter') found.push(text.slice(segment.before.length, text.length - segment.after.length))
  }
  return found
}

/** The items of `found` with the narrowest patterns: no other item's pattern is within theirs. */
export const narrowest = <T>(found: readonly T[], patternOf: (one: T) => Pattern): T[] =>
  found.filter((one) =>
    found.every((other) => !isWithin(patternOf(other), patternOf(one)) || isWithin(patternOf(one), patternOf(other))),
  )

/** The pattern of the same paths with a slash added at their end (`put`) or removed. */
export function otherSlash({ segments, rest }: Pattern, put: boolean): Pattern {
  const last = segments.at(-1)
  const ends = last !== undefined && isLiteral(last, '')
  if (put) return ends || rest ? { segments, rest } : { segments: [...segments, { kind: 'literal', text: '' }], rest }
  return { segments: ends && !rest ? segments.slice(0, -1) : segments, rest: false }
}

/** The pattern with folded literals, to compare paths as lenient servers do. */
export const foldPattern = ({ segments, rest }: Pattern): Pattern => ({
  segments: segments.map((one) =>
    one.kind === 'literal' ? { kind: 'literal', text: foldText(one.text) } : foldSegment(one),
  ),
  rest,
})

export const foldSegment = (one: Parameter): Parameter => ({
  ...one,
  before: foldText(one.before),
  after: foldText(one.after),
})

export const isLiteral = (segment: Segment | undefined, text: string): boolean =>
  segment?.kind === 'literal' && segment.text === text
