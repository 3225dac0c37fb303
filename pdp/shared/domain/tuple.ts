/** Relationship tuples as they are stored. */
import type { JsonObject } from './json.ts'

/** The most bytes of a stored context as JSON. */
export const CONTEXT_BYTES_MAX = 32 * 1024

/** `context`: values of parameters, which take precedence over those of a question. */
export type TupleCondition = { readonly name: string; readonly context: JsonObject }
/**
 * `object` is `type:id`; `subject` is `type:id`, `type:id#relation` or `type:*`. `expiresAtMs`: epoch, null for never.
 * A tuple with a condition counts only where the relation's model allows that condition, and while it holds. An object, a
 * relation and a subject make one tuple, whatever its condition.
 */
export type Tuple = {
  readonly object: string
  readonly relation: string
  readonly subject: string
  readonly expiresAtMs: number | null
  readonly condition?: TupleCondition
}
/** The parts that tell a tuple from all others. */
export type TupleKey = Pick<Tuple, 'object' | 'relation' | 'subject'>
/** A source of names that may be items of a list. */
export type NameSource =
  /** Objects of tuples; subjects of tuples, usersets (`type:id#relation`) and `type:*` among them; subjects of role grants. */
  | { readonly kind: 'objects' | 'subjects' | 'grantees'; readonly type: string }
  /** Members of any status, as `user:id`. */
  | { readonly kind: 'members' }
