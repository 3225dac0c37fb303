/** Relationship tuples as they are stored. */

/** `object` is `type:id`; `subject` is `type:id`, `type:id#relation` or `type:*`. `expiresAtMs`: epoch, null for never. */
export type Tuple = {
  readonly object: string
  readonly relation: string
  readonly subject: string
  readonly expiresAtMs: number | null
}
/** Where names are that may be the answer to a list. */
export type NameSource =
  /** Objects of tuples; subjects of tuples, usersets (`type:id#relation`) and `type:*` among them; subjects of role grants. */
  | { readonly kind: 'objects' | 'subjects' | 'grantees'; readonly type: string }
  /** As `user:id`, whatever the status. */
  | { readonly kind: 'members' }
