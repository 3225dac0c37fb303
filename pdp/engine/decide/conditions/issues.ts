/** Mistakes in the conditions of a model, each with its place. */
import type { ValidationIssue } from '../../../shared/domain/errors.ts'
import { Condition, type ConditionDefinition } from './condition.ts'
import { ExpressionMistake } from './expression.ts'

/** The most that one model may have. */
const CONDITIONS_MAX = 100

/** `used`: names that relations refer to. `text`: of the model in the OpenFGA language; null when it was not written so. */
export function conditionIssues(
  definitions: { readonly [name: string]: ConditionDefinition },
  used: ReadonlySet<string>,
  text: string | null,
): readonly ValidationIssue[] {
  const defined = Object.entries(definitions)
  if (defined.length > CONDITIONS_MAX)
    return [{ place: '1:1', message: `the model has more than ${CONDITIONS_MAX} conditions` }]
  const missing = [...used].filter((name) => !Object.hasOwn(definitions, name))
  return [
    ...missing.map((name) => ({
      place: placeOf(text, name, /\bwith\s+([^\s,\]]+)/g),
      message: `condition "${name}" is not defined`,
    })),
    ...defined.flatMap(([name, definition]) => {
      const message = expressionIssue(name, definition)
      const place = placeOf(text, name, /^[ \t]*condition\s+([^\s(]+)/gm)
      return message === null ? [] : [{ place, message: `condition "${name}" ${message}` }]
    }),
  ]
}

function expressionIssue(name: string, definition: ConditionDefinition): string | null {
  try {
    Condition.of(name, definition)
    return null
  } catch (err) {
    if (err instanceof ExpressionMistake) return err.message
    throw err
  }
}

/** `pattern` finds every such name. */
function placeOf(text: string | null, name: string, pattern: RegExp): string {
  for (const { 1: found, index } of text?.matchAll(pattern) ?? []) {
    if (found !== name) continue
    const before = text?.slice(0, index).split('\n') ?? []
    return `${before.length}:${(before.at(-1)?.length ?? 0) + 1}`
  }
  return '1:1'
}
