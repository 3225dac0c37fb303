/**
 * Relation models: the OpenFGA language (schema 1.1) compiled into what the evaluator walks. A relation may lead back to
 * itself, through `but not` too: what is subtracted is worked out completely before it is subtracted. A question whose
 * answer would depend on its own absence (`a` holds if and only if it does not) fails with `evaluation_limit`. Only tuples can
 * show this, so each question finds out by itself, and no model is refused for it.
 */
import type { ConditionDefinition } from './conditions/condition.ts'

/** Which subjects a relation's own tuples may name. A stored tuple that is not allowed does not count. */
export type Direct = {
  /** `user` */
  readonly types: ReadonlySet<string>
  /** `user:*` */
  readonly wildcards: ReadonlySet<string>
  /** `group#member` */
  readonly usersets: ReadonlySet<string>
  /** Subjects, written as above, whose tuples count with one of these conditions; null when there are none. */
  readonly conditional: ReadonlyMap<string, ReadonlyMap<string, ConditionDefinition>> | null
}
export type Expression =
  | { readonly kind: 'direct'; readonly allowed: Direct }
  | { readonly kind: 'union' | 'intersection'; readonly parts: readonly Expression[] }
  | { readonly kind: 'exclusion'; readonly base: Expression; readonly subtract: Expression }
  | { readonly kind: 'computed'; readonly relation: string }
  /** `relation from tupleset` */
  | { readonly kind: 'from'; readonly tupleset: string; readonly relation: string; readonly parents: Direct }
/** A rule `relation from tupleset`. */
export type From = Extract<Expression, { kind: 'from' }>
/** type -> relation -> expression. A type that is absent has every relation, with direct tuples and usersets. */
export type Model = ReadonlyMap<string, ReadonlyMap<string, Expression>>

export const NO_MODEL: Model = new Map()

/** Types that any model may name. An app whose model defines relations for one of them, such as `group`, owns that type. */
export const SUBJECT_TYPES: ReadonlySet<string> = new Set(['user', 'service', 'group', 'organization'])

/** Merges the models of all apps. Each type is declared by one app only; naming a subject type without relations declares nothing. */
export function mergeModels(models: readonly Model[]): Model {
  const declared = models.flatMap((model) => [...model])
  return new Map(declared.filter(([type, relations]) => relations.size > 0 || !SUBJECT_TYPES.has(type)))
}
