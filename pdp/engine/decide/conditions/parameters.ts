/** Parameters of conditions: reads their types from models, and converts JSON values for the expression. */
import { type CelInput, celList, celMap, celUint } from '@bufbuild/cel'
import type { JsonValue } from '../../../shared/domain/json.ts'
import { addressValue } from './addresses.ts'
import { parseDuration, parseInstant } from './times.ts'

const SCALARS = ['bool', 'string', 'int', 'uint', 'double', 'duration', 'timestamp', 'ipaddress', 'any'] as const
/** `element`: the type of the elements of a list, or of the values of a map, whose keys are strings. */
export type ParameterType =
  | { readonly kind: (typeof SCALARS)[number] }
  | { readonly kind: 'list' | 'map'; readonly element: ParameterType }

/** A type in the JSON form of a model. */
export type ParameterReference = {
  readonly type_name?: string
  readonly generic_types?: readonly ParameterReference[]
}

/** The bounds of one value, from which the highest cost of an expression is computed. */
export const VALUE_BOUNDS = { elements: 1_000, characters: 4_096, depth: 16 } as const
/** The largest counts among the values converted so far. */
export type Size = { elements: number; characters: number }

/** @returns the type, or a message about what is wrong. */
export function parseParameterType(reference: ParameterReference): ParameterType | string {
  const name = (reference.type_name ?? '').replace(/^TYPE_NAME_/, '').toLowerCase()
  const scalar = SCALARS.find((kind) => kind === name)
  const [generic, ...more] = reference.generic_types ?? []
  if (scalar !== undefined) return generic === undefined ? { kind: scalar } : `type ${name} takes no <…>`
  if (name !== 'list' && name !== 'map') return `type ${name === '' ? 'of the parameter' : name} is not known`
  if (generic === undefined || more.length > 0) return `type ${name} needs one type in <…>`
  const element = parseParameterType(generic)
  return typeof element === 'string' ? element : { kind: name, element }
}

export const typeName = (type: ParameterType): string =>
  'element' in type ? `${type.kind}<${typeName(type.element)}>` : type.kind

/** A value has not its parameter's type; the message says which values have. */
export class ValueMismatch extends Error {
  override readonly name = 'ValueMismatch'
}

/** @throws ValueMismatch. */
export function celValueOf(type: ParameterType, value: JsonValue, size: Size, depth = 0): CelInput {
  switch (type.kind) {
    case 'bool':
      if (typeof value !== 'boolean') throw new ValueMismatch('is not true or false')
      return value
    case 'string':
      return textOf(value, size)
    case 'int':
      return integerOf(value, -(2n ** 63n), 2n ** 63n - 1n)
    case 'uint':
      return celUint(integerOf(value, 0n, 2n ** 64n - 1n))
    case 'double':
      return doubleOf(value)
    case 'duration':
      return durationOf(value)
    case 'timestamp':
      return timestampOf(value)
    case 'ipaddress': {
      const address = typeof value === 'string' ? addressValue(value) : null
      if (address === null) throw new ValueMismatch('is not an IP address')
      return address
    }
    case 'any':
      return anyOf(value, size, depth)
    default:
      return collectionOf(type, value, size, depth)
  }
}

function textOf(value: JsonValue, size: Size): string {
  if (typeof value !== 'string') throw new ValueMismatch('is not a string')
  if (!value.isWellFormed()) throw new ValueMismatch('has half of a character (a lone surrogate)')
  if (value.length > VALUE_BOUNDS.characters)
    throw new ValueMismatch(`has more than ${VALUE_BOUNDS.characters} characters`)
  size.characters = Math.max(size.characters, value.length)
  return value
}

function collectionOf(
  { kind, element }: Extract<ParameterType, { element: ParameterType }>,
  value: JsonValue,
  size: Size,
  depth: number,
): CelInput {
  if (kind === 'list') {
    if (!isArray(value)) throw new ValueMismatch('is not a list')
    assertBounds(value.length, size, depth)
    return celList(value.map((item) => celValueOf(element, item, size, depth + 1)))
  }
  if (value === null || typeof value !== 'object' || isArray(value)) throw new ValueMismatch('is not an object')
  const entries = Object.entries(value)
  assertBounds(entries.length, size, depth)
  return celMap(new Map(entries.map(([key, item]) => [textOf(key, size), celValueOf(element, item, size, depth + 1)])))
}

function anyOf(value: JsonValue, size: Size, depth: number): CelInput {
  if (typeof value === 'string') return textOf(value, size)
  if (typeof value === 'number') return finite(value)
  if (value === null || typeof value !== 'object') return value
  return collectionOf({ kind: isArray(value) ? 'list' : 'map', element: { kind: 'any' } }, value, size, depth)
}

function assertBounds(elements: number, size: Size, depth: number): void {
  if (elements > VALUE_BOUNDS.elements) throw new ValueMismatch(`has more than ${VALUE_BOUNDS.elements} elements`)
  if (depth >= VALUE_BOUNDS.depth) throw new ValueMismatch(`is nested more than ${VALUE_BOUNDS.depth} levels deep`)
  size.elements = Math.max(size.elements, elements)
}

// Matches a decimal. The exponent is bounded: else a short text could stand for a number of a million digits.
const DECIMAL = /^([+-]?)(\d{1,400})(?:\.(\d{1,400}))?(?:[eE]([+-]?\d{1,3}))?$/

/** The value of a decimal text as a fraction, exactly; null for anything else. */
function fractionOf(text: string): { readonly over: bigint; readonly under: bigint } | null {
  const [matched, sign, whole = '', decimals = '', exponent = '0'] = DECIMAL.exec(text) ?? []
  if (matched === undefined) return null
  const digits = BigInt(`${whole}${decimals}`) * (sign === '-' ? -1n : 1n)
  const shift = Number(exponent) - decimals.length
  return shift >= 0
    ? { over: digits * 10n ** BigInt(shift), under: 1n }
    : { over: digits, under: 10n ** BigInt(-shift) }
}

function integerOf(value: JsonValue, min: bigint, max: bigint): bigint {
  const fits = typeof value === 'number' && Number.isInteger(value)
  if (fits && !Number.isSafeInteger(value)) throw new ValueMismatch('is beyond 2^53: write it as a string of digits')
  const fraction = typeof value === 'string' ? fractionOf(value) : null
  const found = fits
    ? BigInt(value)
    : fraction !== null && fraction.over % fraction.under === 0n
      ? fraction.over / fraction.under
      : null
  if (found === null) throw new ValueMismatch('is not a whole number')
  if (found < min || found > max) throw new ValueMismatch(`is not between ${min} and ${max}`)
  return found
}

/** Reads a double. A text is accepted only when it is exactly a double: `"0.5"`, but not `"0.1"`. */
function doubleOf(value: JsonValue): number {
  if (typeof value === 'number') return finite(value)
  const fraction = typeof value === 'string' ? fractionOf(value) : null
  const double = Number(value)
  if (fraction === null || !Number.isFinite(double)) throw new ValueMismatch('is not a number')
  const { over, under } = exactly(double)
  if (over * fraction.under !== fraction.over * under) throw new ValueMismatch('is not exactly a double')
  return double
}

/** Refuses an infinite number: JSON can express numbers larger than every double. */
function finite(value: number): number {
  if (!Number.isFinite(value)) throw new ValueMismatch('is beyond what a double can hold')
  return value
}

/** The exact value of a double, which is an integer divided by a power of two. */
function exactly(double: number): { readonly over: bigint; readonly under: bigint } {
  let [over, under] = [double, 1n]
  while (!Number.isInteger(over)) {
    over *= 2
    under *= 2n
  }
  return { over: BigInt(over), under }
}

function durationOf(value: JsonValue): CelInput {
  const duration = typeof value === 'string' ? parseDuration(value) : null
  if (duration === null) throw new ValueMismatch('is not a duration such as 1h30m')
  return duration
}

function timestampOf(value: JsonValue): CelInput {
  // OpenFGA accepts the comma that ISO 8601 allows as decimal sign.
  const instant = typeof value === 'string' ? parseInstant(value.replace(',', '.')) : null
  if (instant === null) throw new ValueMismatch('is not an instant such as 2026-01-31T12:00:00Z')
  return instant
}

const isArray = (value: JsonValue): value is readonly JsonValue[] => Array.isArray(value)
