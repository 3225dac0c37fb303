/** Finds the issues in the conditions of a model. */
import { Condition, type ConditionDefinition } from './condition.ts'
import { ExpressionMistake } from './expression.ts'

/** The most conditions of one model. */
const CONDITIONS_MAX = 100

type ConditionIssue = { readonly spot: { readonly condition?: string }; readonly message: string }

export function conditionIssues(definitions: {
  readonly [name: string]: ConditionDefinition
}): readonly ConditionIssue[] {
  const defined = Object.entries(definitions)
  if (defined.length > CONDITIONS_MAX)
    return [{ spot: {}, message: `the model has more than ${CONDITIONS_MAX} conditions` }]
  return defined.flatMap(([condition, definition]) => {
    const message = expressionIssue(condition, definition)
    return message === null ? [] : [{ spot: { condition }, message: `condition "${condition}" ${message}` }]
  })
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
