/** JSON values of Kubernetes objects: read without trust, compared, and addressed by pointers. */
import { isJsonObject as isObject, type JsonObject, type JsonValue } from '../../../pdp/shared/domain/json.ts'

export type Json = JsonValue
export { isObject, type JsonObject }

/** An object lacks the form that the API server promises. The message names the wrong member. */
export class ShapeError extends Error {
  override readonly name = 'ShapeError'
}

/** The members of an object; {} when absent or null, as Kubernetes reads it. Throws ShapeError. */
export function objectAt(value: Json | undefined, place: string): JsonObject {
  if (value === undefined || value === null) return {}
  if (isObject(value)) return value
  throw new ShapeError(`${place} must be an object`)
}

/** The items of a list; [] when absent or null. Throws ShapeError. */
export function listAt(value: Json | undefined, place: string): readonly Json[] {
  if (value === undefined || value === null) return []
  if (Array.isArray(value)) return value
  throw new ShapeError(`${place} must be a list`)
}

/** The text of a member; null if absent or null. Throws ShapeError. */
export function textAt(value: Json | undefined, place: string): string | null {
  if (value === undefined || value === null) return null
  if (typeof value === 'string') return value
  throw new ShapeError(`${place} must be text`)
}

/** The number of a member; null if absent or null. Throws ShapeError. */
export function numberAt(value: Json | undefined, place: string): number | null {
  if (value === undefined || value === null) return null
  if (typeof value === 'number') return value
  throw new ShapeError(`${place} must be a number`)
}

/** The boolean of a member; false if absent or null. Throws ShapeError. */
export function flagAt(value: Json | undefined, place: string): boolean {
  if (value === undefined || value === null) return false
  if (typeof value === 'boolean') return value
  throw new ShapeError(`${place} must be true or false`)
}

/** A map of text to text, such as labels. Throws ShapeError. */
export function textsAt(value: Json | undefined, place: string): ReadonlyMap<string, string> {
  const entries = Object.entries(objectAt(value, place))
  return new Map(entries.map(([name, text]) => [name, textAt(text, `${place}.${name}`) ?? '']))
}

/** True if the values are deeply equal. The depth is bounded by `expected`, which is ours. */
export function equalJson(actual: Json | undefined, expected: Json): boolean {
  if (Array.isArray(expected)) {
    if (!Array.isArray(actual) || actual.length !== expected.length) return false
    return expected.every((item, index) => equalJson(actual[index], item))
  }
  if (!isObject(expected)) return actual === expected
  if (!isObject(actual) || Object.keys(actual).length !== Object.keys(expected).length) return false
  return Object.entries(expected).every(
    ([name, value]) => Object.hasOwn(actual, name) && equalJson(actual[name], value),
  )
}

/** Joins parts to a JSON Pointer (RFC 6901). */
export function pointer(...parts: readonly (string | number)[]): string {
  return parts.map((part) => `/${String(part).replaceAll('~', '~0').replaceAll('/', '~1')}`).join('')
}
