/** The rows that an evaluation may read: one state of the store, answered synchronously; a row may be unknown yet. */
import type { JournalId } from '../../shared/domain/journal.ts'
import type { StoredManifest } from '../../shared/domain/manifest.ts'
import type { Membership } from '../../shared/domain/membership.ts'
import type { Organization } from '../../shared/domain/organization.ts'
import type { OrganizationRole, RoleGrant } from '../../shared/domain/role.ts'
import type { TupleCondition } from '../../shared/domain/tuple.ts'
import type { Userset } from './usersets.ts'

export const FALSE = 0
export const TRUE = 1
/** Rows are missing; the view has noted which, and the evaluation starts over once they are loaded. */
export const UNKNOWN = -1
export type Truth = typeof FALSE | typeof TRUE | typeof UNKNOWN

/** Groups above one subject that are followed at most, however they are nested. */
export const GROUPS_MAX = 100_000

/** `truncated`: there are more than `GROUPS_MAX` groups, and `groups` has not all of them. */
export type Closure = { readonly groups: ReadonlySet<string>; readonly truncated: boolean }

/** A tuple with a condition, of which the object and the relation are known. */
export type ConditionalSubject = { readonly subject: string; readonly condition: TupleCondition }

/**
 * Tuples with a condition are shown by `conditionOf` and `conditional` alone: to everything else they are not there.
 * All methods are synchronous and see one moment. Expired rows are absent. `undefined` and UNKNOWN: not loaded yet.
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
   * The tuples that name the name, as `object#relation`: those of this type and relation, or all. Those with a condition are
   * among them, and those that expire may be after that, so that it says no more than what may count. Null: too many.
   */
  namedBy(
    log: JournalId,
    name: string,
    where: { readonly type: string; readonly relation: string } | null,
  ): readonly string[] | null | undefined
  /** The condition of the tuple object#relation@subject; null where there is no such tuple with a condition. */
  conditionOf(log: JournalId, object: string, relation: string, subject: string): TupleCondition | null | undefined
  /** Tuples of object#relation with a condition: those of usersets and wildcards, or those of plain objects. Null past `countMax`. */
  conditional(
    log: JournalId,
    object: string,
    relation: string,
    wanted: { readonly kind: 'usersets' | 'objects'; readonly countMax: number },
  ): readonly ConditionalSubject[] | null | undefined
  /** The moment's clock, in milliseconds. */
  clockMs(): number
  /** A row that was shown holds only until then, like one that expires. */
  noteUntil(instantMs: number): void
  /** Groups (as `group:x#member`) that name the subject directly. */
  groups(log: JournalId, subject: string): readonly string[] | undefined
  /** Is the subject in a group that `usersets` showed, through any nesting? Null past GROUPS_MAX groups. */
  inGroup(log: JournalId, subject: string, group: Userset): Truth | null
  /** Groups that hold the subject, through any nesting. */
  closure(log: JournalId, subject: string): Closure | undefined
  /** Null for a person who is not a member, and for every subject that is not `user:id`. */
  membership(log: JournalId, subject: string): Membership | null | undefined
  grants(log: JournalId, subject: string): readonly RoleGrant[] | undefined
  organization(id: string): Organization | null | undefined
  manifests(): readonly StoredManifest[] | undefined
  roles(): readonly OrganizationRole[] | undefined
  /** Revocations of tokens, by their keys. */
  revocations(): { revokes(key: string, issuedAtMs: number): boolean } | undefined
}

/** Whether a closure has the group: null when the closure was cut and does not show it. */
export function truthIn(closure: Closure | undefined, group: Userset): Truth | null {
  if (closure === undefined) return UNKNOWN
  if (closure.groups.has(group.text)) return TRUE
  return closure.truncated ? null : FALSE
}
