/** A relation model as TypeScript types: code with a wrong relation does not compile. `portcullis types` prints them from a model. */

/**
 * Types, their relations, and for each relation the subjects that its tuples may name (`never`: it is only computed).
 *
 * @example
 * ```ts
 * type Model = {
 *   user: Record<never, never>
 *   invoice: { owner: `user:${string}`; can_view: never }
 * }
 * const typed: EmbeddedPdp<Model> = createPdp<Model>({ store: memoryStore() })
 * ```
 */
export type RelationModel = { readonly [type: string]: { readonly [relation: string]: string } }

/** True for the default, which means any model. */
type IsAny<M extends RelationModel> = string extends keyof M ? true : false
/** Resources for permission keys; no model declares them. */
type Keyed = `app:${string}` | `organization:${string}`

/** A relation and a resource whose type has the relation. */
export type CheckArguments<M extends RelationModel> =
  IsAny<M> extends true
    ? [relation: string, resource: string]
    :
        | { [T in keyof M & string]: [relation: keyof M[T] & string, resource: `${T}:${string}`] }[keyof M & string]
        | [relation: string, resource: Keyed]

/** The same pair as members of an object. */
export type CheckOf<M extends RelationModel> =
  IsAny<M> extends true
    ? { readonly relation: string; readonly resource: string }
    :
        | {
            [T in keyof M & string]: { readonly relation: keyof M[T] & string; readonly resource: `${T}:${string}` }
          }[keyof M & string]
        | { readonly relation: string; readonly resource: Keyed }

type Parts<O extends string, R extends string, S extends string> = {
  readonly object: O
  readonly relation: R
  readonly subject: S
  /** The instant from which the tuple no longer counts (RFC 3339). */
  readonly expires_at?: string | null
}

/** A tuple as text or in parts. */
export type TupleOf<M extends RelationModel> =
  IsAny<M> extends true
    ? string | Parts<string, string, string>
    :
        | {
            [T in keyof M & string]: {
              [R in keyof M[T] & string]: M[T][R] extends never
                ? never
                : `${T}:${string}#${R}@${M[T][R]}` | Parts<`${T}:${string}`, R, M[T][R]>
            }[keyof M[T] & string]
          }[keyof M & string]
        // Groups are tuples of a type that every model has.
        | `group:${string}#member@${string}`
        | Parts<`group:${string}`, 'member', string>
