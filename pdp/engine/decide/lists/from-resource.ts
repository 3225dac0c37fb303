/** Finds the candidates of a list of subjects by following tuples down from the resource, instead of taking every subject. */
import type { ListSubjectsRequest } from '../../../shared/domain/decision.ts'
import { typeOf } from '../../../shared/domain/names.ts'
import type { Expression, Model } from '../model.ts'
import type { View } from '../view.ts'

/** How many tuples may be visited; beyond it, every subject is a candidate instead. */
const TUPLES_MAX = 20_000

/**
 * All subjects to which tuples lead from the resource, with or without a condition. The list can contain no others; a check decides about
 * each. Null when this fails: roles or memberships answer, a wildcard may name everybody, or too many tuples are below the resource.
 * Undefined while rows are missing.
 */
export function subjectsFromResource(
  view: View,
  model: Model,
  { organization: log, resource, relation, type, subjectRelation }: ListSubjectsRequest,
): readonly string[] | null | undefined {
  if (subjectRelation !== undefined) return null
  const subjects = new Set<string>()
  const reached = new Set<string>()
  const waiting = [`${resource}#${relation}`]
  let [left, missing] = [TUPLES_MAX, false]
  const take = (subject: string): void => {
    if (subject.startsWith(`${type}:`)) subjects.add(subject)
  }
  for (let name = waiting.pop(); name !== undefined; name = waiting.pop()) {
    if (reached.has(name)) continue
    reached.add(name)
    const [object = '', of = ''] = name.split('#')
    // Relations on these also come from roles and memberships, which are not tuples.
    if (/^(?:organization|app):/.test(object)) return null
    const relations = model.get(typeOf(object))
    const expression = relations?.get(of)
    if (relations !== undefined && expression === undefined) continue
    for (const part of expression === undefined ? [DIRECT] : partsOf(expression)) {
      const at = part.kind === 'from' ? part.tupleset : of
      if (part.kind === 'computed') {
        waiting.push(`${object}#${part.relation}`)
        continue
      }
      const plain = view.objects(log, object, at, left)
      const usersets = part.kind === 'from' ? [] : view.usersets(log, object, at, left)
      const [conditional, conditionalUsersets] = (['objects', 'usersets'] as const).map((kind) =>
        part.kind === 'from' && kind === 'usersets' ? [] : view.conditional(log, object, at, { kind, countMax: left }),
      )
      if (plain === null || usersets === null || conditional === null || conditionalUsersets === null) return null
      if (plain === undefined || usersets === undefined || !conditional || !conditionalUsersets) {
        missing = true
        continue
      }
      left -= plain.length + usersets.length + conditional.length + conditionalUsersets.length + 1
      if (left <= 0) return null
      const named = [...plain, ...conditional.map(({ subject }) => subject)]
      if (part.kind === 'from') waiting.push(...named.map((parent) => `${parent}#${part.relation}`))
      else named.forEach(take)
      for (const userset of [
        ...usersets.map(({ text }) => text),
        ...conditionalUsersets.map(({ subject }) => subject),
      ]) {
        if (userset.includes('#')) waiting.push(userset)
        else if (userset === `${type}:*`) return null
      }
    }
  }
  return missing ? undefined : [...subjects]
}

type Part = Extract<Expression, { kind: 'computed' | 'from' }> | { readonly kind: 'direct' }
const DIRECT: Part = { kind: 'direct' }

/** The parts of which each subject of the relation has at least one: all parts of a union or intersection, and the base of an exclusion. */
function partsOf(expression: Expression): readonly Part[] {
  switch (expression.kind) {
    case 'union':
    case 'intersection':
      return expression.parts.flatMap(partsOf)
    case 'exclusion':
      return partsOf(expression.base)
    default:
      return [expression]
  }
}
