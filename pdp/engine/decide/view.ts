/** The rows for an evaluation: one state of the store, read synchronously. A row that is not loaded yet counts as missing. */
import type { JournalId } from '../../shared/domain/journal.ts'
import type { StoredManifest } from '../../shared/domain/manifest.ts'
import type { Membership } from '../../shared/domain/membership.ts'
import type { Organization } from '../../shared/domain/organization.ts'
import type { OrganizationRole, RoleGrant } from '../../shared/domain/role.ts'
import type { TupleCondition } from '../../shared/domain/tuple.ts'
import type { Userset } from './usersets.ts'

export const FALSE = 0
export const TRUE = 1
/** Rows are missing. The view has noted which; after their load the evaluation begins again. */
export const UNKNOWN = -1
export type Truth = typeof FALSE | typeof TRUE | typeof UNKNOWN

/** How many groups above one subject are followed, however they are nested. */
export const GROUPS_MAX = 100_000

/** All groups above a subject. `truncated`: there are more than `GROUPS_MAX`, so `groups` is incomplete. */
export type Closure = { readonly groups: ReadonlySet<string>; readonly truncated: boolean }

/** A tuple with a condition, without its object and relation. */
export type ConditionalSubject = { readonly subject: string; readonly condition: TupleCondition }

/**
 * Reads rows synchronously, all of one moment. Only `conditionOf`, `conditional` and `namedBy` show tuples with a condition. Expired rows
 * are absent. `undefined` and UNKNOWN: rows are not loaded yet. A view notes the earliest expiry of the rows that it showed, for
 * `valid_until`.
 */
export interface View {
  /** True if a tuple object#relation@subject has exactly this subject. */
  has(log: JournalId, object: string, relation: string, subject: string): Truth
  /** Usersets (`type:id#relation`) and wildcards (`type:*`) of object#relation. Null when there are more than `countMax`. */
  usersets(log: JournalId, object: string, relation: string, countMax: number): readonly Userset[] | null | undefined
  /** Plain objects of object#relation: the parents of `x from y`. Null when there are more than `countMax`. */
  objects(log: JournalId, object: string, relation: string, countMax: number): readonly string[] | null | undefined
  /**
   * Tuples with the subject `name`, as `object#relation`: of one type and relation, or all. They only may count: some have a condition, and
   * some may have expired. Null: too many.
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
  /** Limits the answer's validity to this instant, for example the expiry of a row. */
  noteUntil(instantMs: number): void
  /** Groups (as `group:x#member`) that name the subject directly. */
  groups(log: JournalId, subject: string): readonly string[] | undefined
  /** True if the subject is in a group of `usersets`, at any depth. Null: not in the known GROUPS_MAX groups, but there are more. */
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

/** True if a closure has the group; null: it does not, but it is truncated. */
export function truthIn(closure: Closure | undefined, group: Userset): Truth | null {
  if (closure === undefined) return UNKNOWN
  if (closure.groups.has(group.text)) return TRUE
  return closure.truncated ? null : FALSE
}
