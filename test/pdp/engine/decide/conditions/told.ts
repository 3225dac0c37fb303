/** Conditions that a test compiles and evaluates by themselves. */
import { Condition, type Evaluation } from '../../../../../pdp/engine/decide/conditions/condition.ts'
import type { ParameterReference } from '../../../../../pdp/engine/decide/conditions/parameters.ts'
import type { JsonObject } from '../../../../../pdp/shared/domain/json.ts'

export type Types = { readonly [name: string]: string }
export const NOW_MS = Date.parse('2026-03-29T00:30:00Z')

/** `list<int>` as models in JSON write it. */
const typed = (text: string): ParameterReference => {
  const [, outer = text, inner] = /^(\w+)<(.+)>$/.exec(text) ?? []
  return {
    type_name: `TYPE_NAME_${outer.toUpperCase()}`,
    ...(inner === undefined ? {} : { generic_types: [typed(inner)] }),
  }
}

export const compile = (expression: string, types: Types = {}): Condition =>
  new Condition('c', {
    expression,
    parameters: Object.fromEntries(Object.entries(types).map(([name, type]) => [name, typed(type)])),
  })

export function evaluation(condition: Condition, asked: JsonObject, stored: JsonObject = {}): Evaluation {
  const moment = { nowMs: () => NOW_MS, spend: () => true }
  return condition.evaluate(condition.argumentsOf(stored), condition.argumentsOf(asked), moment)
}

/** True, false, or what is said of why it cannot be told. */
export function told(condition: Condition, asked: JsonObject, stored?: JsonObject): boolean | string {
  const result = evaluation(condition, asked, stored)
  return result.ok ? result.holds : result.message
}
