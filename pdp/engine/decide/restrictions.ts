/** Type restrictions: whether a tuple counts under a model, and the message when it does not. */

import { didYouMean } from '../../shared/base/nearest.ts'
import type { ContextualTuple } from '../../shared/domain/decision.ts'
import type { ValidationIssue } from '../../shared/domain/errors.ts'
import { MEMBERSHIP_RELATIONS } from '../../shared/domain/membership.ts'
import { isWildcard, typeOf } from '../../shared/domain/names.ts'
import { delegationIssue, isDelegation } from '../../shared/domain/subjects.ts'
import { Condition } from './conditions/condition.ts'
import type { PlaceOf } from './language/places.ts'
import type { Direct, Expression, Model } from './model.ts'
import { subjectType } from './usersets.ts'

/** A kind of tuple: its type, its relation, and its subjects in a model's form: `user`, `user:*` or `group#member`. */
export type Shape = {
  readonly type: string
  readonly relation: string
  readonly subject: string
  /** The name of the condition; null: no condition. */
  readonly condition: string | null
}

const ON_AN_APP = 'what is held on an app comes from roles only; grant a role of the app instead'

/** The reason why such tuples do not count, or null. A type without a model has every relation, with any subject but wildcards. */
export function shapeIssue(model: Model, { type, relation, subject, condition }: Shape): string | null {
  if (isDelegation({ object: `${type}:`, relation })) return null
  const relations = model.get(type)
  // Apps have no relations: reservedTypeIssues refuses a model that gives them some.
  if (type === 'app' && (relations === undefined || relations.size === 0)) return ON_AN_APP
  if (relations === undefined) {
    if (isWildcard(subject))
      return `type "${type}" has no model, so ${subject} would never count: it needs a model that says define ${relation}: [${subject}]`
    return condition === null
      ? null
      : `type "${type}" has no model, so that its tuples cannot have condition "${condition}"`
  }
  const expression = relations.get(relation)
  if (expression === undefined)
    return `type "${type}" has no relation "${relation}"${didYouMean(relation, relations.keys())}`
  const allowed = directOf(expression)
  const refused = `relation "${relation}" of type "${type}" does not allow ${subject}`
  if (allowed === null) return refused
  const named = allowed.conditional?.get(subject)
  const plain = takes(allowed, subject)
  if (condition === null) {
    if (plain) return null
    return named === undefined ? refused : `${refused} without a condition: it needs ${[...named.keys()].join(' or ')}`
  }
  if (named?.has(condition) === true) return null
  return plain || named !== undefined ? `${refused} with condition "${condition}"` : refused
}

/** Does what shapeIssue does, for a tuple with its stored context. */
export function restrictionIssue(model: Model, tuple: ContextualTuple): string | null {
  if (isDelegation(tuple)) return delegationIssue(tuple)
  const shape = shapeOf(tuple)
  const issue = shapeIssue(model, shape)
  if (issue !== null || tuple.condition === undefined) return issue
  const expression = model.get(shape.type)?.get(shape.relation)
  const allowed = expression === undefined ? null : directOf(expression)
  const definition = allowed?.conditional?.get(shape.subject)?.get(tuple.condition.name)
  if (definition === undefined) return null
  const condition = Condition.of(tuple.condition.name, definition)
  const unknown = Object.keys(tuple.condition.context).find((name) => !condition.parameters.has(name))
  if (unknown !== undefined) return `condition "${condition.name}" has no parameter ${JSON.stringify(unknown)}`
  const [mismatch] = Object.values(condition.argumentsOf(tuple.condition.context).mismatches)
  return mismatch === undefined ? null : `the context of condition "${condition.name}" does not fit: ${mismatch}`
}

export function shapeOf({ object, relation, subject, condition }: ContextualTuple): Shape {
  return {
    type: typeOf(object),
    relation,
    subject: isWildcard(subject) ? subject : subjectType(subject),
    condition: condition?.name ?? null,
  }
}

function takes({ types, wildcards, usersets }: Direct, subject: string): boolean {
  if (subject.endsWith(':*')) return wildcards.has(subject.slice(0, -2))
  return types.has(subject) || usersets.has(subject)
}

/** The kinds of subjects that the list allows, written as in a model's brackets: `user`, `user:*`, `team#member`. */
export function kindsOf({ types, wildcards, usersets, conditional }: Direct): readonly string[] {
  const all = [...types, ...[...wildcards].map((type) => `${type}:*`), ...usersets, ...(conditional?.keys() ?? [])]
  return [...new Set(all)]
}

/** The subjects that the relation's own tuples may name; the expression has at most one such list. */
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
 * Issues of a model that redefines types to which we give a meaning, each with its position and a renaming. A model is checked when it is
 * written, not when it is already in force.
 */
export function reservedTypeIssues(model: Model, placeOf: PlaceOf): readonly ValidationIssue[] {
  const issues: ValidationIssue[] = []
  const app = model.get('app')
  if (app !== undefined && app.size > 0)
    issues.push({
      place: placeOf({ type: 'app' }),
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
      place: placeOf({ type: 'organization', relation }),
      message: `relation "${relation}" of type "organization" comes from memberships, so that its brackets must be [user] (more may follow after "or"); rename the type, for example to "org", or the relation`,
    })
  }
  return issues
}
