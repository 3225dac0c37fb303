/** Values to try for the parameters of conditions: those that the expressions mention, and values near them. */
import type { ConditionDefinition } from '../../engine/decide/conditions/condition.ts'
import {
  type ParameterReference,
  type ParameterType,
  parseParameterType,
} from '../../engine/decide/conditions/parameters.ts'
import type { JsonObject, JsonValue } from '../../shared/domain/json.ts'

const CONTEXTS_MAX = 256
const VALUES_MAX = 12

/** Contexts to try, at least one: without parameters an empty one. */
export function* contextsFor(definitions: readonly ConditionDefinition[]): Generator<JsonObject> {
  const mentioned = mentionedIn(definitions.map(({ expression = '' }) => expression).join('\n'))
  const parameters = new Map<string, readonly JsonValue[]>()
  for (const definition of definitions)
    for (const [name, reference] of Object.entries(definition.parameters ?? {}))
      parameters.set(name, valuesOf(reference, mentioned))
  const names = [...parameters]
  const count = names.reduce((all, [, values]) => Math.min(all * values.length, CONTEXTS_MAX), 1)
  for (let at = 0; at < count; at += 1) {
    let rest = at
    const context: { [name: string]: JsonValue } = {}
    for (const [name, values] of names) {
      context[name] = values[rest % values.length] ?? null
      rest = Math.floor(rest / values.length)
    }
    yield context
  }
}

type Mentioned = { readonly numbers: readonly number[]; readonly texts: readonly string[] }

function mentionedIn(expression: string): Mentioned {
  const texts = [...expression.matchAll(/"((?:\\.|[^"\\])*)"|'((?:\\.|[^'\\])*)'/g)].map(
    ([, double, single]) => double ?? single ?? '',
  )
  const numbers = [...expression.matchAll(/(?<![\w."'])-?\d+(?:\.\d+)?/g)].map(([number]) => Number(number))
  return { numbers: [...new Set(numbers)], texts: [...new Set(texts)] }
}

function valuesOf(reference: ParameterReference, mentioned: Mentioned): readonly JsonValue[] {
  const type = parseParameterType(reference)
  return typeof type === 'string' ? [null] : [...new Set(candidates(type, mentioned))].slice(0, VALUES_MAX)
}

function candidates(type: ParameterType, mentioned: Mentioned): readonly JsonValue[] {
  const { numbers, texts } = mentioned
  switch (type.kind) {
    case 'bool':
      return [true, false]
    case 'int':
      return [...numbers.flatMap((n) => [n, n + 1, n - 1]).map(Math.trunc), 0, 1]
    case 'uint':
      return [...numbers.flatMap((n) => [n, n + 1, n - 1]).map(Math.trunc), 0, 1].filter((n) => n >= 0)
    case 'double':
      return [...numbers.flatMap((n) => [n, n + 0.5, n - 0.5]), 0]
    case 'timestamp': {
      const instants = texts.map((text) => Date.parse(text)).filter((ms) => !Number.isNaN(ms))
      return [...instants.flatMap((ms) => [ms, ms + 1_000, ms - 1_000]), 0, 4_102_444_800_000].map((ms) =>
        new Date(ms).toISOString(),
      )
    }
    case 'duration':
      return [...texts.filter((text) => /^[\d.hmsu]+$/.test(text)), '0s', '1s', '100h']
    case 'ipaddress':
      return [...texts.map((text) => text.split('/')[0] ?? ''), '192.0.2.1'].filter((text) =>
        /^[\da-f.:]+$/i.test(text),
      )
    case 'list': {
      const items = candidates(type.element, mentioned)
      return [...items.map((item) => [item]), [...items], []]
    }
    case 'map': {
      const values = candidates(type.element, mentioned)
      return [...texts.flatMap((key) => values.map((value) => ({ [key]: value }))), {}]
    }
    default:
      return [...texts, 'other', '']
  }
}
