/** Kubernetes selectors: of labels, and of the resources of an admission rule. */
import { type Json, type JsonObject, listAt, objectAt, ShapeError, textAt, textsAt } from '../pod/json.ts'

/** True if the labels match. An empty selector matches everything. Throws ShapeError, also for an unknown operator. */
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

/** True for a selector that is absent or has no condition: it matches everything. Throws ShapeError. */
export function isEmptySelector(selector: Json | undefined): boolean {
  const { matchLabels, matchExpressions } = objectAt(selector, 'selector')
  return textsAt(matchLabels, 'matchLabels').size === 0 && listAt(matchExpressions, 'matchExpressions').length === 0
}

/** A resource, perhaps with its subresource, and an operation, as in admission rules. */
export type Resource = { readonly group: string; readonly resource: string; readonly operation: string }

/** True if the admission rules cover each of the resources in v1, whatever the object's name. Throws ShapeError. */
export function coversResources(rules: Json | undefined, resources: readonly Resource[]): boolean {
  const given = listAt(rules, 'rules').map((rule) => objectAt(rule, 'rules'))
  return resources.every((resource) => given.some((rule) => covers(rule, resource)))
}

function covers(rule: JsonObject, { group, resource, operation }: Resource): boolean {
  const [parent, part] = resource.split('/')
  const has = (name: string, ...values: readonly string[]): boolean =>
    listAt(rule[name], name).some((value) => values.some((wanted) => value === wanted))
  const wide = part === undefined ? ['*', '*/*'] : ['*/*', `${parent}/*`, `*/${part}`]
  // Namespaces belong to no namespace; all other resources here do.
  const scopes: readonly Json[] = ['*', parent === 'namespaces' ? 'Cluster' : 'Namespaced']
  return (
    has('apiGroups', '*', group) &&
    has('apiVersions', '*', 'v1') &&
    has('operations', '*', operation) &&
    has('resources', resource, ...wide) &&
    scopes.includes(rule.scope ?? '*') &&
    listAt(rule.resourceNames, 'resourceNames').length === 0
  )
}
