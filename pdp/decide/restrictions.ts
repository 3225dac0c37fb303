/** Type restrictions: which tuples a model lets count, and what to say of one that it does not. */
import { isWildcard, typeOf } from '../domain/names.ts'
import type { Tuple } from '../domain/tuple.ts'
import type { Direct, Expression, Model } from './model.ts'

/** Tuples of one type and relation whose subjects are of one kind: `user`, `user:*` or `group#member`. */
export type Shape = { readonly type: string; readonly relation: string; readonly subject: string }

/** Why the model does not let such tuples count, or null. A type without a model takes every relation and subject. */
export function shapeIssue(model: Model, { type, relation, subject }: Shape): string | null {
  const relations = model.get(type)
  if (relations === undefined) return null
  const expression = relations.get(relation)
  if (expression === undefined) return `type "${type}" has no relation "${relation}"`
  const allowed = directOf(expression)
  if (allowed !== null && takes(allowed, subject)) return null
  return `relation "${relation}" of type "${type}" does not allow ${subject}`
}

export function shapeOf({ object, relation, subject }: Omit<Tuple, 'expiresAtMs'>): Shape {
  const hash = subject.indexOf('#')
  const kind = hash < 0 ? typeOf(subject) : `${typeOf(subject)}${subject.slice(hash)}`
  return { type: typeOf(object), relation, subject: isWildcard(subject) ? subject : kind }
}

function takes({ types, wildcards, usersets }: Direct, subject: string): boolean {
  if (subject.endsWith(':*')) return wildcards.has(subject.slice(0, -2))
  return types.has(subject) || usersets.has(subject)
}

/** A relation has one list of subjects that its tuples may name, wherever it stands in the expression. */
export function directOf(expression: Expression): Direct | null {
  switch (expression.kind) {
    case 'direct':
      return expression.allowed
    case 'computed':
    case 'from':
      return null
    case 'exclusion':
      return directOf(expression.base) ?? directOf(expression.subtract)
    default:
      return expression.parts.map(directOf).find((found) => found !== null) ?? null
  }
}
