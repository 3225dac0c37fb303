/** Kubernetes label selectors: matchLabels and matchExpressions. */
import { type Json, listAt, objectAt, ShapeError, textAt, textsAt } from './json.ts'

/** An empty selector takes everything. Throws ShapeError, also for an operator that it does not know. */
export function matchesLabels(selector: Json | undefined, labels: ReadonlyMap<string, string>): boolean {
  const { matchLabels, matchExpressions } = objectAt(selector, 'selector')
  for (const [name, value] of textsAt(matchLabels, 'matchLabels')) if (labels.get(name) !== value) return false
  return listAt(matchExpressions, 'matchExpressions').every((item) => matchesExpression(item, labels))
}

function matchesExpression(item: Json, labels: ReadonlyMap<string, string>): boolean {
  const { key, operator, values } = objectAt(item, 'matchExpressions')
  const value = labels.get(textAt(key, 'key') ?? '')
  const listed = value !== undefined && listAt(values, 'values').includes(value)
  if (operator === 'In') return listed
  if (operator === 'NotIn') return !listed
  if (operator === 'Exists') return value !== undefined
  if (operator === 'DoesNotExist') return value === undefined
  throw new ShapeError(`operator ${JSON.stringify(operator)} is unknown`)
}
