/**
 * Relation models: the OpenFGA language (schema 1.1) compiled into what the evaluator walks. A relation may lead back to
 * itself, through `but not` too: what is subtracted is worked out completely before it is subtracted. A question whose
 * answer would depend on its own absence (`a` holds if and only if it does not) has none, and is `evaluation_limit`; that
 * is judged on the tuples, question by question, and never on the model.
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
  /** Subjects as above whose tuples count with one of these conditions; null where there are none. */
  readonly conditional: ReadonlyMap<string, ReadonlyMap<string, ConditionDefinition>> | null
}
export type Expression =
  | { readonly kind: 'direct'; readonly allowed: Direct }
  | { readonly kind: 'union' | 'intersection'; readonly parts: readonly Expression[] }
  | { readonly kind: 'exclusion'; readonly base: Expression; readonly subtract: Expression }
  | { readonly kind: 'computed'; readonly relation: string }
  /** `relation from tupleset` */
  | { readonly kind: 'from'; readonly tupleset: string; readonly relation: string; readonly parents: Direct }
/** type -> relation -> expression. A type that is not in it has direct tuples and usersets for any relation. */
export type Model = ReadonlyMap<string, ReadonlyMap<string, Expression>>

export const NO_MODEL: Model = new Map()

/** Models name these without saying anything about them; an app that does say something, as about its groups, owns them. */
export const SUBJECT_TYPES: ReadonlySet<string> = new Set(['user', 'service', 'group', 'organization'])

/** The models of all apps as one: a type is declared by one app only, and merely naming a type of subjects declares nothing. */
export function mergeModels(models: readonly Model[]): Model {
  const declared = models.flatMap((model) => [...model])
  return new Map(declared.filter(([type, relations]) => relations.size > 0 || !SUBJECT_TYPES.has(type)))
}
