/** The context of a route's questions: parameters of conditions, each a constant or one typed value of the request. */
import { malformed } from '../request/errors.ts'
import { describeSource, type Source } from './template.ts'

export const VALUE_TYPES = ['string', 'int', 'double', 'bool', 'list'] as const
export type ValueType = (typeof VALUE_TYPES)[number]
/** `flag`: a boolean of JSON; a text such as "true" is refused. */
export type ReadType = ValueType | 'flag'
type Scalar = string | number | boolean
export type ContextValue = Scalar | readonly Scalar[]
export type ContextEntry = { readonly name: string } & (
  | { readonly constant: ContextValue }
  | { readonly source: Source; readonly type: ValueType }
)
export type RouteContext = readonly ContextEntry[]
/** The values that a request offers for conditions. A missing claim is null; any other missing value throws RequestError. */
export type ContextValues = {
  readonly readTyped: (source: Source, type: ReadType) => string | null
  readonly claim: (name: string) => unknown
}

/** The same bound as the PDP has for values of conditions. */
export const VALUE_CHARACTERS_MAX = 4_096
const LIST_MAX = 1_000
const CONTEXT_BYTES_MAX = 32 * 1024

/** The context for the PDP as JSON text. `missing`: a parameter whose claim the token lacks, so that the PDP cannot be asked; else null. */
export type ReadContext = { readonly text: string; readonly missing: string | null }
const NO_CONTEXT: ReadContext = { text: '', missing: null }

/** The context as JSON. Throws RequestError. */
export function readContext(context: RouteContext, values: ContextValues): ReadContext {
  if (context.length === 0) return NO_CONTEXT
  const members: { [name: string]: ContextValue } = Object.create(null)
  for (const entry of context) {
    const value = 'constant' in entry ? entry.constant : requestValue(entry, values)
    if (value === null) return { text: '', missing: entry.name }
    members[entry.name] = value
  }
  const text = JSON.stringify(members)
  if (Buffer.byteLength(text) > CONTEXT_BYTES_MAX)
    throw malformed(`The values for the conditions of this route take more than ${CONTEXT_BYTES_MAX} bytes`)
  return { text, missing: null }
}

function requestValue(
  { source, type }: Extract<ContextEntry, { readonly source: Source }>,
  { readTyped, claim }: ContextValues,
): ContextValue | null {
  if (source.from === 'claims') return claimValue(claim(source.name), type)
  const text = readTyped(source, type)
  if (text === null) return null
  const value = parsed(text, type)
  if (value === null) throw malformed(`The value of ${describeSource(source)} ${NOT[type]}`)
  return value
}

const NOT: { readonly [type in ValueType]: string } = {
  string: 'is too long, or has characters that some servers read as others',
  int: 'is not an integer',
  double: 'is not a number',
  bool: 'is neither true nor false',
  list: 'is not a list',
}
const INTEGER = /^(?:0|-?[1-9]\d{0,14})$/
const NUMBER = /^-?(?:0|[1-9]\d{0,14})(?:\.\d{1,15})?$/

function parsed(text: string, type: ValueType): ContextValue | null {
  switch (type) {
    case 'string':
      return isText(text) && isReadAlike(text) ? text : null
    case 'int':
      return INTEGER.test(text) ? Number(text) : null
    case 'double':
      return NUMBER.test(text) ? Number(text) : null
    case 'bool':
      return text === 'true' || text === 'false' ? text === 'true' : null
    case 'list':
      return null
  }
}

/** The claim as a value of the type. A claim in another form counts as missing, as in a check. */
function claimValue(value: unknown, type: ValueType): ContextValue | null {
  switch (type) {
    case 'string':
      if (typeof value === 'string') return isText(value) ? value : null
      return Number.isSafeInteger(value) ? String(value) : null
    case 'int':
      if (typeof value === 'number') return Number.isSafeInteger(value) ? value : null
      return typeof value === 'string' ? parsed(value, type) : null
    case 'double':
      return typeof value === 'number' && Number.isFinite(value) ? value : null
    case 'bool':
      return typeof value === 'boolean' ? value : null
    case 'list':
      return Array.isArray(value) && value.length <= LIST_MAX && value.every(isListed) ? value : null
  }
}

const isListed = (item: unknown): item is string => typeof item === 'string' && isText(item)
const isText = (text: string): boolean =>
  text.length <= VALUE_CHARACTERS_MAX && text.isWellFormed() && !/\p{Cc}/u.test(text)

/** True if all services read the text alike: some read a full-width 4 as 4, or an accent and its letter as one character. */
export const isReadAlike = (text: string): boolean => text === text.normalize('NFKC')
