/** Type restrictions: which tuples a model lets count, and what to say of one that it does not. */
import type { ValidationIssue } from '../domain/errors.ts'
import { MEMBERSHIP_RELATIONS } from '../domain/membership.ts'
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

/**
 * What a model may not say of the types that mean something here: each with its line of the text, and what to rename.
 * Judged when a model is written, never when it is in force.
 */
export function reservedTypeIssues(model: Model, text: string): readonly ValidationIssue[] {
  const issues: ValidationIssue[] = []
  const app = model.get('app')
  if (app !== undefined && app.size > 0)
    issues.push({
      place: placeOf(text, 'app', null),
      message:
        'type "app" cannot have relations, since what is held on an app comes from roles; rename the type, for example to "application"',
    })
  for (const [relation, expression] of model.get('organization') ?? []) {
    if (!MEMBERSHIP_RELATIONS.has(relation)) continue
    const direct = directOf(expression)
    const isOurs =
      direct !== null &&
      direct.types.size === 1 &&
      direct.types.has('user') &&
      direct.wildcards.size + direct.usersets.size === 0
    if (isOurs) continue
    issues.push({
      place: placeOf(text, 'organization', relation),
      message: `relation "${relation}" of type "organization" comes from memberships, so that its brackets must be [user] (more may follow after "or"); rename the type, for example to "org", or the relation`,
    })
  }
  return issues
}

/** `line:column`, from 1. */
function placeOf(text: string, type: string, relation: string | null): string {
  const lines = text.split('\n')
  const start = lines.findIndex((line) => new RegExp(`^\\s*(?:extend\\s+)?type\\s+${type}\\s*(?:#.*)?$`).test(line))
  const at =
    relation === null
      ? start
      : lines.findIndex((line, i) => i > start && new RegExp(`^\\s*define\\s+${relation}\\s*:`).test(line))
  const line = lines[at] ?? ''
  return `${Math.max(at, 0) + 1}:${line.length - line.trimStart().length + 1}`
}
