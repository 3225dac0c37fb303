/** JSON values, pointers into them, and the reasons that forbid storing a value. */

export type JsonValue = null | boolean | number | string | readonly JsonValue[] | JsonObject
export type JsonObject = { readonly [key: string]: JsonValue }

const JSON_DEPTH_MAX = 32

/** True for an object, in a value that was parsed as JSON. */
export const isJsonObject = (value: unknown): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/**
 * The reason why a JSON value cannot be stored as jsonb, or null: NUL, half a surrogate pair, too deep nesting, or what only a
 * caller without a compiler can pass, such as a bigint or a function.
 */
export function storageIssue(value: JsonValue, depth = 0): string | null {
  if (typeof value === 'string') return textIssue(value)
  if (typeof value === 'number') return Number.isFinite(value) ? null : 'is not JSON'
  if (value === null || typeof value === 'boolean') return null
  if (typeof value !== 'object') return 'is not JSON'
  if (depth >= JSON_DEPTH_MAX) return `is nested deeper than ${JSON_DEPTH_MAX} levels`
  for (const [name, member] of Object.entries(value)) {
    const issue = textIssue(name) ?? storageIssue(member, depth + 1)
    if (issue !== null) return issue
  }
  return null
}

/** The reason why a text cannot be stored, or null. */
export function textIssue(text: string): string | null {
  if (text.includes('\0')) return 'contains the character U+0000'
  return text.isWellFormed() ? null : 'contains half of a surrogate pair'
}

/** A JSON pointer (RFC 6901) with further steps. */
export function pointer(base: string, ...steps: readonly (string | number)[]): string {
  return steps.reduce<string>(
    (path, step) => `${path}/${String(step).replaceAll('~', '~0').replaceAll('/', '~1')}`,
    base,
  )
}

/** The value as text; null for a value that is not JSON, such as a bigint or a cycle, which an untyped caller may pass. */
export function jsonText(value: JsonObject): string | null {
  try {
    return JSON.stringify(value)
  } catch {
    return null
  }
}
