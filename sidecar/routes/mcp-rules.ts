/** The rules of a route of the kind MCP: who may call each tool, prompt and resource of its server, and to whom it is listed. */
import { type Check, NOBODY, sourcesOf } from './checks.ts'
import type { StepUp } from './step-up.ts'
import type { Source, Template } from './template.ts'

export type McpRule = {
  /** The check for a call. */
  readonly check: Check
  /** Decides about lists: the parts of `check` that need no argument of a call. */
  readonly listed: Check
  /** The check `listed` with relations to arguments of a call, each of which must hold on some resource; null: no list asks for that. */
  readonly some: Check | null
  /** The sign-in that a call needs; null: what the route requires. */
  readonly stepUp: StepUp | null
}
export type McpResource = McpRule & {
  /** The URI template as the route file writes it, such as `crm://customers/{id}`. */
  readonly template: string
  readonly uri: UriPattern
}
/** The rules by name. A tool, prompt or resource without a rule is denied and not listed. The objects have no prototype. */
export type McpRules = {
  readonly tools: { readonly [name: string]: McpRule }
  readonly prompts: { readonly [name: string]: McpRule }
  readonly resources: readonly McpResource[]
}

/** Texts and names of parameters alternate, as in the URI; a text comes first. `first`: the index of its first parameter in checks. */
export type UriPattern = {
  readonly texts: readonly string[]
  readonly names: readonly string[]
  readonly first: number
}

/** A check that any active token passes. */
export const ANYBODY: Check = { kind: 'signed_in' }

const NAME = /^[A-Za-z][A-Za-z0-9_]*$/
const PLACES_MAX = 8

/** The pattern, or an error message that continues "the resource …". */
export function parseUriPattern(template: string, first: number): UriPattern | string {
  const [before = '', ...rest] = template.split('{')
  if (!/^[A-Za-z][A-Za-z0-9+.-]*:/.test(before)) return 'must begin with a scheme, such as crm://'
  const texts = [before]
  const names: string[] = []
  for (const part of rest) {
    const close = part.indexOf('}')
    const name = part.slice(0, Math.max(0, close))
    if (!NAME.test(name)) return `has a placeholder that is not a name in braces, such as {id}`
    if (names.includes(name)) return `names {${name}} twice`
    const text = part.slice(close + 1)
    if (text === '' && names.length + 1 < rest.length) return 'has two adjacent placeholders'
    names.push(name)
    texts.push(text)
  }
  if (names.length > PLACES_MAX) return `has more than ${PLACES_MAX} placeholders`
  if (texts.some((text) => !PLAIN.test(text))) return 'has a character that is not plain in a URI'
  return { texts, names, first }
}

/** Excludes percent-encoding, braces and backslash, which parsers of URIs read in different ways. */
const PLAIN = /^[A-Za-z0-9._~:/?#[\]@!$&'()*+,;=-]*$/
const VALUE = /^[^/?#\\%\s]+$/
const URI_CHARS_MAX = 2_048

/** The values of the parameters; null: the URI does not match. A value never contains the character that ends it. */
function matchUri({ texts, names }: UriPattern, uri: string): readonly string[] | null {
  if (uri.length > URI_CHARS_MAX || !uri.startsWith(texts[0] ?? '')) return null
  const values: string[] = []
  let at = texts[0]?.length ?? 0
  for (let place = 0; place < names.length; place += 1) {
    const text = texts[place + 1] ?? ''
    const end = text === '' ? uri.length : uri.indexOf(text.charAt(0), at)
    const value = uri.slice(at, end)
    if (end < 0 || !VALUE.test(value) || value === '.' || value === '..' || !uri.startsWith(text, end)) return null
    values.push(value)
    at = end + text.length
  }
  return at === uri.length ? values : null
}

/**
 * The rule of a URI, with its values in place of parameters. A URI that the file lists decides alone; of templates, all that match must
 * agree. Null: no rule matches.
 */
export function resourceRule({ resources }: McpRules, uri: string): McpRule | null {
  const found = resources.flatMap((resource) => {
    const values = matchUri(resource.uri, uri)
    return values === null ? [] : [{ resource, values }]
  })
  const whole = found.find(({ values }) => values.length === 0)
  const deciding = whole === undefined ? found : [whole]
  if (deciding.length === 0) return null
  const of = deciding.map(({ resource, values }) => bind(resource.check, resource.uri.first, values))
  const stepUp = deciding.map(({ resource }) => resource.stepUp).find((one) => one !== null) ?? null
  return { check: { kind: 'all', of }, listed: { kind: 'all', of }, some: null, stepUp }
}

/** The check after the values of a URI have replaced its parameters. */
function bind(check: Check, first: number, values: readonly string[]): Check {
  const boundTo = (source: Source): string | null =>
    source.from === 'path' && source.index >= first ? (values[source.index - first] ?? '') : null
  if (check.kind === 'all' || check.kind === 'any')
    return { kind: check.kind, of: check.of.map((part) => bind(part, first, values)) }
  if (check.kind === 'equals') {
    const wanted = check.as === undefined ? null : boundTo(check.as)
    if (wanted !== null) return wanted === '' || wanted !== wanted.normalize('NFKC') ? NOBODY : fixed(check, wanted)
    // `starts_with` and `ends_with` compare claims only, never a value of the URI.
    const value = check.part === undefined ? boundTo(check.source) : null
    return value === null ? check : value === check.value ? ANYBODY : NOBODY
  }
  return check.kind === 'relation' ? boundRelation(check, boundTo) : check
}

function fixed({ as: _, ...check }: Extract<Check, { kind: 'equals' }>, value: string): Check {
  return { ...check, value }
}

function boundRelation(check: Extract<Check, { kind: 'relation' }>, boundTo: (source: Source) => string | null): Check {
  const id: Template[number][] = []
  for (const [at, part] of check.id.entries()) {
    const value = typeof part === 'string' ? part : boundTo(part)
    const next = check.id[at + 1]
    // A value must not contain the character that ends it, as in other requests: two different pairs of values could give one id.
    const isUnclear = typeof part === 'object' && typeof next === 'string' && check.id.length > 2
    if (isUnclear && value?.includes(next.charAt(0)) === true) return NOBODY
    if (typeof part === 'object' && value !== null && value !== value.normalize('NFKC')) return NOBODY
    id.push(value ?? part)
  }
  return { ...check, id }
}

/**
 * The check without parts that need an argument of a call, since some argument may satisfy them. `asksSome`: a relation to one such
 * argument must hold on some resource.
 */
export function listedPart(check: Check, isOfCall: (source: Source) => boolean, asksSome: boolean): Check {
  switch (check.kind) {
    case 'all':
    case 'any':
      return { kind: check.kind, of: check.of.map((part) => listedPart(part, isOfCall, asksSome)) }
    case 'relation': {
      if (!check.id.some((part) => typeof part === 'object' && isOfCall(part))) return check
      const { relation, type, id } = check
      return asksSome && id.length === 1 ? { kind: 'some', relation, type } : ANYBODY
    }
    case 'equals':
      return sourcesOf(check).some(isOfCall) ? ANYBODY : check
    default:
      return check
  }
}
