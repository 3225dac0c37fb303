/** The rows that an evaluation reads: one state of the store, read synchronously. Rows may be missing until they are loaded. */
import type { JournalId } from '../../shared/domain/journal.ts'
import type { StoredManifest } from '../../shared/domain/manifest.ts'
import type { Membership } from '../../shared/domain/membership.ts'
import type { Organization } from '../../shared/domain/organization.ts'
import type { OrganizationRole, RoleGrant } from '../../shared/domain/role.ts'
import type { TupleCondition } from '../../shared/domain/tuple.ts'
import type { Userset } from './usersets.ts'

export const FALSE = 0
export const TRUE = 1
/** Rows are missing. The view has noted which, and the evaluation starts again once they are loaded. */
export const UNKNOWN = -1
export type Truth = typeof FALSE | typeof TRUE | typeof UNKNOWN

/** How many groups above one subject are followed, however they are nested. */
export const GROUPS_MAX = 100_000

/** All groups above a subject. `truncated`: there are more than `GROUPS_MAX`, and `groups` lacks some. */
export type Closure = { readonly groups: ReadonlySet<string>; readonly truncated: boolean }

/** A tuple with a condition, without its object and relation. */
export type ConditionalSubject = { readonly subject: string; readonly condition: TupleCondition }

/**
 * All methods are synchronous and see one moment. Only `conditionOf`, `conditional` and `namedBy` show tuples with a condition.
 * Expired rows are absent. `undefined` and UNKNOWN: rows are not loaded yet.
 * A view notes the earliest expiry among the rows that it showed, for `valid_until`.
 */
export interface View {
  /** Is there a tuple object#relation@subject, with exactly this subject? */
  has(log: JournalId, object: string, relation: string, subject: string): Truth
  /** Usersets (`type:id#relation`) and wildcards (`type:*`) of object#relation. Null when there are more than `countMax`. */
  usersets(log: JournalId, object: string, relation: string, countMax: number): readonly Userset[] | null | undefined
  /** Plain objects of object#relation: the parents of `x from y`. Null when there are more than `countMax`. */
  objects(log: JournalId, object: string, relation: string, countMax: number): readonly string[] | null | undefined
  /**
   * Tuples whose subject is `name`, as `object#relation`: of this type and relation, or all. Tuples with a condition are among
   * them, and expired tuples may be, so they show only what may count. Null: too many.
   */
  namedBy(
    log: JournalId,
    name: string,
    where: { readonly type: string; readonly relation: string } | null,
  ): readonly string[] | null | undefined
  /** The condition of the tuple object#relation@subject; null where there is no such tuple with a condition. */
  conditionOf(log: JournalId, object: string, relation: string, subject: string): TupleCondition | null | undefined
  /** Tuples of object#relation with a condition that name usersets and wildcards, or plain objects. Null for more than `countMax`. */
  conditional(
    log: JournalId,
    object: string,
    relation: string,
    wanted: { readonly kind: 'usersets' | 'objects'; readonly countMax: number },
  ): readonly ConditionalSubject[] | null | undefined
  /** The clock at the view's moment, in milliseconds. */
  clockMs(): number
  /** Notes that an answer may hold only until this instant, as for a row that expires. */
  noteUntil(instantMs: number): void
  /** Groups (as `group:x#member`) that name the subject directly. */
  groups(log: JournalId, subject: string): readonly string[] | undefined
  /** Is the subject in a group that `usersets` showed, through any nesting? Null: not among GROUPS_MAX groups, and there are more. */
  inGroup(log: JournalId, subject: string, group: Userset): Truth | null
  /** Groups that hold the subject, through any nesting. */
  closure(log: JournalId, subject: string): Closure | undefined
  /** The membership; null for a user who is no member, and for every subject that is not `user:id`. */
  membership(log: JournalId, subject: string): Membership | null | undefined
  grants(log: JournalId, subject: string): readonly RoleGrant[] | undefined
  organization(id: string): Organization | null | undefined
  manifests(): readonly StoredManifest[] | undefined
  roles(): readonly OrganizationRole[] | undefined
  /** Revocations of tokens, by their keys. */
  revocations(): { revokes(key: string, issuedAtMs: number): boolean } | undefined
}

/** Whether a closure has the group; null when it does not but is truncated. */
export function truthIn(closure: Closure | undefined, group: Userset): Truth | null {
  if (closure === undefined) return UNKNOWN
  if (closure.groups.has(group.text)) return TRUE
  return closure.truncated ? null : FALSE
}
