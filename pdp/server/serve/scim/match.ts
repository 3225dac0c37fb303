/** Tests resources against a filter (RFC 7644 section 3.4.2.2). */
import { lowerAscii } from '../../../shared/base/blanks.ts'
import { isJsonObject, type JsonObject, type JsonValue } from '../../../shared/domain/json.ts'
import { named, type ResourceType } from './attributes.ts'
import { ScimError } from './errors.ts'
import type { AttributePath, Comparison, Filter, FilterValue } from './filter.ts'

/** Attributes that are compared with case; all others are compared without. */
const EXACT: ReadonlySet<string> = new Set(['id', 'externalid', 'meta'])

/** True if the resource matches. Throws ScimError `invalidFilter` for a comparison that the attribute's type excludes. */
export function matches(filter: Filter, resource: JsonObject, type: ResourceType): boolean {
  return satisfies(filter, { of: (path) => valuesAt(resource, path, type) })
}

/** True if a value of a complex attribute satisfies the filter in square brackets. */
export function matchesValue(filter: Filter, value: JsonValue): boolean {
  return satisfies(filter, {
    // A value that is no object is itself its `value`.
    of: ({ attribute, sub }) => {
      const whole = isJsonObject(value) ? memberOf(value, attribute) : attribute === 'value' ? value : undefined
      return sub === null ? present(whole) : isJsonObject(whole) ? present(memberOf(whole, sub)) : []
    },
  })
}

function satisfies(filter: Filter, values: { of(path: AttributePath): readonly JsonValue[] }): boolean {
  switch (filter.kind) {
    case 'and':
      return satisfies(filter.left, values) && satisfies(filter.right, values)
    case 'or':
      return satisfies(filter.left, values) || satisfies(filter.right, values)
    case 'not':
      return !satisfies(filter.of, values)
    case 'some':
      return values.of(filter.path).some((value) => matchesValue(filter.of, value))
    case 'present':
      return values.of(filter.path).some(isPresent)
    case 'compare':
      return compares(filter, values.of(filter.path))
  }
}

function compares(filter: Filter & { kind: 'compare' }, found: readonly JsonValue[]): boolean {
  const { op, value, path } = filter
  // A complex value is compared by its `value`.
  const plain = found
    .map((one) => (isJsonObject(one) ? (memberOf(one, 'value') ?? null) : one))
    .filter((one) => one !== null)
  if (value === null) {
    if (op === 'eq') return plain.length === 0
    if (op === 'ne') return plain.length > 0
    throw new ScimError('invalidFilter', `${op} cannot be asked of null`)
  }
  const isExact = EXACT.has(path.attribute)
  if (op === 'ne') return !plain.some((one) => compare('eq', one, value, isExact))
  return plain.some((one) => compare(op, one, value, isExact))
}

function compare(op: Exclude<Comparison, 'ne'>, found: JsonValue, value: FilterValue, isExact: boolean): boolean {
  if (typeof found === 'boolean' || typeof value === 'boolean') {
    if (op !== 'eq') throw new ScimError('invalidFilter', `${op} cannot be asked of true and false`)
    return String(found).toLowerCase() === String(value).toLowerCase()
  }
  const fold = (text: unknown): string => (isExact ? String(text) : String(text).toLowerCase())
  const [a, b] = inOneForm(fold(found), fold(value))
  switch (op) {
    case 'eq':
      return a === b
    case 'co':
      return a.includes(b)
    case 'sw':
      return a.startsWith(b)
    case 'ew':
      return a.endsWith(b)
    case 'gt':
      return a > b
    case 'ge':
      return a >= b
    case 'lt':
      return a < b
    case 'le':
      return a <= b
  }
}

const INSTANT = /^\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(?:\.\d+)?(?:[Zz]|[+-]\d\d:\d\d)$/

export const isInstant = (text: string): boolean => INSTANT.test(text)

/** Two instants in one form, so that equal times have equal texts. Other texts are unchanged. */
function inOneForm(a: string, b: string): readonly [string, string] {
  if (!isInstant(a) || !isInstant(b)) return [a, b]
  const [first, second] = [new Date(a), new Date(b)]
  if (Number.isNaN(first.getTime()) || Number.isNaN(second.getTime())) return [a, b]
  return [first.toISOString(), second.toISOString()]
}

function valuesAt(resource: JsonObject, path: AttributePath, type: ResourceType): readonly JsonValue[] {
  const { attribute, sub } = path
  const holder = holderOf(resource, path, type)
  if (holder === null) return []
  const whole = present(memberOf(holder, attribute)).flatMap((value) => (Array.isArray(value) ? value : [value]))
  return sub === null ? whole : whole.flatMap((value) => (isJsonObject(value) ? present(memberOf(value, sub)) : []))
}

/** The object that holds the attribute: the resource or its extension. */
function holderOf(resource: JsonObject, { schema, attribute }: AttributePath, type: ResourceType): JsonObject | null {
  const { extension } = type
  if (schema === null || schema === type.schema.toLowerCase()) return resource
  if (extension === null) return null
  if (schema === extension.schema.toLowerCase()) {
    const found = memberOf(resource, extension.schema)
    return isJsonObject(found) && named(extension.attributes, attribute) !== null ? found : null
  }
  return null
}

/** The member with this name, compared without case as SCIM does. */
export function memberOf(holder: JsonObject, name: string): JsonValue | undefined {
  const wanted = lowerAscii(name)
  const key = Object.keys(holder).find((one) => lowerAscii(one) === wanted)
  return key === undefined ? undefined : holder[key]
}

const present = (value: JsonValue | undefined): readonly JsonValue[] =>
  value === undefined || value === null ? [] : [value]
const isPresent = (value: JsonValue): boolean =>
  value !== null && value !== '' && !(Array.isArray(value) && value.length === 0)
