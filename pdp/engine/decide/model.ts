/**
 * Relation models: the OpenFGA language (schema 1.1) compiled into what the evaluator walks. A relation may lead back to
 * itself, through `but not` too: what is subtracted is worked out completely before it is subtracted. A question whose
 * answer would depend on its own absence (`a` holds if and only if it does not) fails with `evaluation_limit`. Only tuples can
 * show this, so each question finds out by itself, and no model is refused for it.
 */
import type { ConditionDefinition } from './conditions/condition.ts'

/** Which subjects a relation's own tuples may name. A stored tuple that is not allowed does not count. */
export type Direct = {
  /** Subjects by type, such as `user`. */
  readonly types: ReadonlySet<string>
  /** Wildcards, such as `user:*`. */
  readonly wildcards: ReadonlySet<string>
  /** Usersets, such as `group#member`. */
  readonly usersets: ReadonlySet<string>
  /** Conditions by subject in the forms above: a tuple of the subject counts only with one of them; null: there are no conditions. */
  readonly conditional: ReadonlyMap<string, ReadonlyMap<string, ConditionDefinition>> | null
}
export type Expression =
  | { readonly kind: 'direct'; readonly allowed: Direct }
  | { readonly kind: 'union' | 'intersection'; readonly parts: readonly Expression[] }
  | { readonly kind: 'exclusion'; readonly base: Expression; readonly subtract: Expression }
  | { readonly kind: 'computed'; readonly relation: string }
  /** Everybody with `relation` of an object that `tupleset` names. */
  | { readonly kind: 'from'; readonly tupleset: string; readonly relation: string; readonly parents: Direct }
/** A rule `relation from tupleset`. */
export type From = Extract<Expression, { kind: 'from' }>
/** type -> relation -> expression. A type that is absent has every relation, with direct tuples and usersets. */
export type Model = ReadonlyMap<string, ReadonlyMap<string, Expression>>

export const NO_MODEL: Model = new Map()

/** Types that all models may name. An app whose model defines relations of one, such as `group`, owns this type. */
export const SUBJECT_TYPES: ReadonlySet<string> = new Set(['user', 'service', 'group', 'organization'])

/** Merges all apps' models. Only one app may declare a type; naming a subject type without relations declares nothing. */
export function mergeModels(models: readonly Model[]): Model {
  const declared = models.flatMap((model) => [...model])
  return new Map(declared.filter(([type, relations]) => relations.size > 0 || !SUBJECT_TYPES.has(type)))
}
