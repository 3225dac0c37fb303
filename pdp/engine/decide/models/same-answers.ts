/** Decides whether a relation has the same answers under two models: it does if everything that it reaches is defined the same. */
import { MEMBERSHIP_RELATIONS } from '../../../shared/domain/membership.ts'
import type { Direct, Expression, Model } from '../model.ts'

export type TypeRelation = { readonly type: string; readonly relation: string }

/** False also if the answers may be equal but the models alone do not show it. */
export function hasSameAnswers(before: Model, after: Model, place: TypeRelation): boolean {
  if (before.has('group') !== after.has('group')) return false
  const seen = new Set<string>()
  const waiting: TypeRelation[] = [place]
  for (let at = waiting.pop(); at !== undefined; at = waiting.pop()) {
    const name = `${at.type}#${at.relation}`
    if (seen.has(name)) continue
    seen.add(name)
    const [was, is] = [before, after].map((model) => expressionAt(model, at))
    if (was === undefined || is === undefined) {
      if (was !== is || !isOfNoModel(at, before, after)) return false
    } else if (textOf(was) !== textOf(is)) return false
    else waiting.push(...reachedFrom(is, at.type))
  }
  return true
}

const expressionAt = (model: Model, { type, relation }: TypeRelation): Expression | undefined =>
  model.get(type)?.get(relation)

/** Equal texts for equal definitions. JSON.stringify alone would leave out maps and sets. */
const textOf = (expression: Expression): string =>
  JSON.stringify(expression, (_, value) => (value instanceof Map || value instanceof Set ? [...value] : value))

/**
 * True if a relation that neither model defines answers alike. Two models with the type: yes, nobody has it. A group's members and an
 * organization's tiers: yes, models do not define them. Other types without a model: no, tuples may lead to anything.
 */
function isOfNoModel({ type, relation }: TypeRelation, before: Model, after: Model): boolean {
  if (before.has(type) && after.has(type)) return true
  if (before.has(type) || after.has(type)) return false
  return type === 'organization' ? MEMBERSHIP_RELATIONS.has(relation) : type === 'group' && relation === 'member'
}

function reachedFrom(expression: Expression, type: string): readonly TypeRelation[] {
  switch (expression.kind) {
    case 'direct':
      return usersetsOf(expression.allowed)
    case 'union':
    case 'intersection':
      return expression.parts.flatMap((part) => reachedFrom(part, type))
    case 'exclusion':
      return [...reachedFrom(expression.base, type), ...reachedFrom(expression.subtract, type)]
    case 'computed':
      return [{ type, relation: expression.relation }]
    case 'from': {
      const parents = [...expression.parents.types, ...(expression.parents.conditional?.keys() ?? [])]
      const { tupleset, relation } = expression
      return [{ type, relation: tupleset }, ...parents.map((parent) => ({ type: parent, relation }))]
    }
  }
}

function usersetsOf({ usersets, conditional }: Direct): readonly TypeRelation[] {
  return [...usersets, ...(conditional?.keys() ?? [])].flatMap((name) => {
    const hash = name.indexOf('#')
    return hash < 0 ? [] : [{ type: name.slice(0, hash), relation: name.slice(hash + 1) }]
  })
}
