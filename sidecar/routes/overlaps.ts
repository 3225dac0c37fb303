/** Compares overlapping routes: some path matches both, and neither pattern is the more specific. They must agree about such a path. */
import type { MatchedRoute } from './route.ts'
import type { Source } from './template.ts'

/** All that the route demands or allows, as a text with the path's values. Routes with equal texts judge a request alike. */
export function judgementOf({ route, parameters }: MatchedRoute): string {
  const { id: _id, host: _host, hostParameter: _label, method: _method, pattern: _pattern, ...demands } = route
  return JSON.stringify(demands, (_name, value: unknown) => {
    if (value instanceof Set) return [...value].sort()
    if (isTemplate(value)) return { ...value, id: filled(value.id, parameters) }
    return isPathSource(value) ? { value: parameters[value.index] } : value
  })
}

const isObject = (value: unknown): value is { readonly [name: string]: unknown } =>
  typeof value === 'object' && value !== null

const isPathSource = (value: unknown): value is Extract<Source, { from: 'path' }> =>
  isObject(value) && value.from === 'path' && typeof value.index === 'number'

const isTemplate = (value: unknown): value is { readonly id: readonly unknown[] } =>
  isObject(value) && value.kind === 'relation' && Array.isArray(value.id)

/** The template with its parameters replaced: `doc:{x}` becomes `doc:7`. */
function filled(template: readonly unknown[], parameters: readonly string[]): readonly unknown[] {
  const parts: unknown[] = []
  for (const part of template) {
    const text = isPathSource(part) ? parameters[part.index] : part
    const last = parts.at(-1)
    if (typeof text === 'string' && typeof last === 'string') parts[parts.length - 1] = last + text
    else parts.push(text)
  }
  return parts
}
