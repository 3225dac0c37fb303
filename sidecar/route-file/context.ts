/** Parses the `context` of a route file: constants, and values of the request such as `{client.address}`. */
import { isMap, isScalar, isSeq, type Node } from 'yaml'
import {
  type ContextEntry,
  type ContextValue,
  type RouteContext,
  VALUE_CHARACTERS_MAX,
  VALUE_TYPES,
} from '../routes/context.ts'
import { parseSource, type Source } from '../routes/template.ts'
import type { Entry, YamlReader } from './words/yaml-reader.ts'

export const PARAMETERS_MAX = 32
export const CONSTANTS_MAX = 100
/** Matches names of parameters as conditions write them. */
export const PARAMETER = /^(?!__proto__$)[A-Za-z_][A-Za-z0-9_]{0,127}$/
const SOURCE_TEXT = /^\s*\{([^{}]*)\}\s*$/

export type ContextReading = {
  readonly reader: YamlReader
  /** The names of the parameters in the route's path. */
  readonly parameters: readonly string[]
  /** Reports a source that is not allowed for a parameter. */
  readonly note: (node: Node | null, source: Source) => void
}

/** Reads a `context` and reports its errors. */
export function parseContext(reading: ContextReading, node: Node | null): RouteContext {
  if (node === null) return []
  const { reader } = reading
  const entries = reader.entries(node, 'context')
  if (entries === null) return []
  if (entries.length === 0) reader.report(node, 'context must have at least one value')
  if (entries.length > PARAMETERS_MAX) reader.report(node, `context has more than ${PARAMETERS_MAX} values`)
  return entries.map((entry) => parseEntry(reading, entry)).filter((entry) => entry !== null)
}

function parseEntry(reading: ContextReading, { key: name, keyNode, value: given }: Entry): ContextEntry | null {
  const { reader } = reading
  const refuse = (at: Node | null, message: string): null => {
    reader.report(at ?? keyNode, message)
    return null
  }
  if (!PARAMETER.test(name))
    return refuse(keyNode, `${JSON.stringify(name)} is not the name of a parameter of a condition`)
  if (name === 'now') return refuse(keyNode, 'now is the clock of the PDP, which a route cannot set')
  const value = reader.resolve(given)
  if (isMap(value)) {
    const [entry, ...more] = reader.entries(value, name) ?? []
    if (entry === undefined || more.length > 0)
      return refuse(given, `${name} must be one value of the request, such as {client.address} or {query.limit: int}`)
    const source = parseValue(reading, entry)
    return source === null ? null : { name, ...source }
  }
  const constant = constantOf(reader, value)
  if (typeof constant === 'object' && 'issue' in constant) return refuse(given, `${name} ${constant.issue}`)
  return { name, constant }
}

/** The value of one entry: `{source}` or `{source: type}`, which YAML reads as a map of one entry. */
function parseValue(
  { reader, parameters, note }: ContextReading,
  { key, keyNode, value }: Entry,
): { readonly source: Source; readonly type: (typeof VALUE_TYPES)[number] } | null {
  const source = parseSource(key, parameters)
  if (typeof source === 'string') {
    reader.report(keyNode, source)
    return null
  }
  note(keyNode, source)
  const untyped = value === null || (isScalar(value) && value.value === null)
  const type = untyped ? 'string' : reader.choice(value, `the type of {${key}}`, VALUE_TYPES)
  if (type === 'list' && source.from !== 'claims') {
    reader.report(keyNode, `{${key}} cannot be a list: only a claim can`)
    return null
  }
  return type === null ? null : { source, type }
}

export function constantOf(reader: YamlReader, given: Node | null): ContextValue | { readonly issue: string } {
  const node = reader.resolve(given)
  if (!isSeq<Node | null>(node)) return scalarOf(isScalar(node) ? node.value : null)
  if (node.items.length > CONSTANTS_MAX) return { issue: `has more than ${CONSTANTS_MAX} items` }
  const items: (string | number | boolean)[] = []
  for (const item of node.items) {
    const resolved = reader.resolve(item)
    const value = scalarOf(isScalar(resolved) ? resolved.value : null)
    if (typeof value === 'object') return { issue: `has an item that ${value.issue}` }
    items.push(value)
  }
  return items
}

function scalarOf(value: unknown): string | number | boolean | { readonly issue: string } {
  if (typeof value === 'boolean') return value
  if (typeof value === 'number')
    return Number.isSafeInteger(value) || (Number.isFinite(value) && !Number.isInteger(value))
      ? value
      : { issue: 'is a number that cannot be kept exactly; write it in quotes' }
  if (typeof value !== 'string') return { issue: 'is neither text, a number, true, false nor a list of these' }
  if (value.length > VALUE_CHARACTERS_MAX) return { issue: `has more than ${VALUE_CHARACTERS_MAX} characters` }
  const source = SOURCE_TEXT.exec(value)?.[1]
  return source === undefined ? value : { issue: `is text with braces; write {${source}} without quotes` }
}
