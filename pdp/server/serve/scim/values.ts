/** Compares the values of a multi-valued attribute, and finds the primary one. */
import { isJsonObject, type JsonObject, type JsonValue } from '../../../shared/domain/json.ts'

export const keyOf = (value: JsonValue): string =>
  JSON.stringify(isJsonObject(value) && value.value !== undefined ? value.value : value)

/** RFC 7644 section 3.5.2.1: a value that exists is not added again. Two values are the same if their `value` is. */
export function merged(before: readonly JsonValue[], added: readonly JsonValue[]): readonly JsonValue[] {
  const seen = new Map(before.map((value) => [keyOf(value), value]))
  for (const value of added) {
    const known = seen.get(keyOf(value))
    seen.set(keyOf(value), isJsonObject(known) && isJsonObject(value) ? { ...known, ...value } : value)
  }
  return [...seen.values()]
}

export function without(before: readonly JsonValue[], removed: readonly JsonValue[]): readonly JsonValue[] {
  const gone = new Set(removed.map(keyOf))
  return before.filter((value) => !gone.has(keyOf(value)))
}

/** RFC 7643 section 2.4: at most one value is primary. The last one that became primary stays so. */
export function onePrimary(before: readonly JsonValue[], after: readonly JsonValue[]): readonly JsonValue[] {
  const primary = after.filter((value) => objectOr(value).primary === true)
  if (primary.length < 2) return after
  const was = new Set(before.filter((value) => objectOr(value).primary === true).map(keyOf))
  const kept = primary.findLast((value) => !was.has(keyOf(value))) ?? primary.at(-1)
  return after.map((value) =>
    value === kept || objectOr(value).primary !== true ? value : { ...objectOr(value), primary: false },
  )
}

export const objectOr = (value: JsonValue | undefined): JsonObject => (isJsonObject(value) ? value : {})
export const listOf = (value: JsonValue): readonly JsonValue[] =>
  value === null ? [] : Array.isArray(value) ? value : [value]
