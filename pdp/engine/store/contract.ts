/** The contract of storage for the evaluator, the identity service and the transports. Implementations pass test/conformance. */
import type { Change, Precondition, WriteContext } from '../../shared/domain/change.ts'
import type { Entitlement } from '../../shared/domain/entitlement.ts'
import type { JournalId, JournalPosition, Vector } from '../../shared/domain/journal.ts'
import type { StoredManifest } from '../../shared/domain/manifest.ts'
import type { Membership } from '../../shared/domain/membership.ts'
import type { Organization } from '../../shared/domain/organization.ts'
import type { Revocation } from '../../shared/domain/revocation.ts'
import type { OrganizationRole, RoleGrant } from '../../shared/domain/role.ts'
import type { NameSource, Tuple, TupleCondition } from '../../shared/domain/tuple.ts'
import type { Lock } from './journal-lock.ts'

/** Names one row set: a part of a journal that is read as a whole. */
export type RowKey =
  /**
   * Subjects of object#relation. `chain`: where a subject is of the object's own type (`folder:b` or `folder:b#viewer`), its set of
   * the same relation is returned too, and so on: at most `CHAIN_SETS_MAX` sets, the nearest first, each complete.
   */
  | {
      readonly log: JournalId
      readonly kind: 'set'
      readonly object: string
      readonly relation: string
      readonly chain?: true
    }
  /** One tuple or its absence, for sets that are too wide to load. */
  | {
      readonly log: JournalId
      readonly kind: 'tuple'
      readonly object: string
      readonly relation: string
      readonly subject: string
    }
  /** Tuples with the subject `name`, also with a condition. `where`: their objects' type and their relation; null: all. */
  | {
      readonly log: JournalId
      readonly kind: 'named'
      readonly name: string
      readonly where: { readonly type: string; readonly relation: string } | null
    }
  /** Groups that name the subject (`user:a`, `group:b#member`) directly. A set for each group above them is returned too. */
  | { readonly log: JournalId; readonly kind: 'groups'; readonly subject: string }
  | { readonly log: JournalId; readonly kind: 'membership'; readonly user: string }
  /** Role grants to exactly this subject. The groups above it are returned too, with the grants to each of them. */
  | { readonly log: JournalId; readonly kind: 'grants'; readonly subject: string }
  /** An organization's node of the tree, in ENVIRONMENT like `manifests` and `roles`. Its ancestors are returned, too. */
  | { readonly log: JournalId; readonly kind: 'organization'; readonly id: string }
  | { readonly log: JournalId; readonly kind: 'manifests' }
  /** Every revocation that may concern an unexpired token. In TOKENS only. */
  | { readonly log: JournalId; readonly kind: 'revocations' }
  | { readonly log: JournalId; readonly kind: 'roles' }

export type SubjectRow = {
  readonly subject: string
  readonly expiresAtMs: number | null
  readonly condition?: TupleCondition
}
export type RowSet =
  /**
   * `complete` false: there are more than `SET_ROWS_MAX` rows; `subjects` then holds only the usersets and wildcards.
   * `usersetsComplete` false: there are more than `SET_ROWS_MAX` of these too; `subjects` is then empty.
   */
  | {
      readonly key: RowKey & { kind: 'set' }
      readonly subjects: readonly SubjectRow[]
      readonly complete: boolean
      readonly usersetsComplete: boolean
    }
  /** `subject` of each row: a tuple's `object#relation`. `complete` false: more than `NAMED_BY_MAX` tuples, and `sets` is empty. */
  | { readonly key: RowKey & { kind: 'named' }; readonly sets: readonly SubjectRow[]; readonly complete: boolean }
  | { readonly key: RowKey & { kind: 'tuple' }; readonly row: SubjectRow | null }
  /** The groups; `subject` of a row is a group as `group:x#member`. Tuples with a condition make no members here. */
  | { readonly key: RowKey & { kind: 'groups' }; readonly groups: readonly SubjectRow[] }
  | { readonly key: RowKey & { kind: 'membership' }; readonly membership: Membership | null }
  | { readonly key: RowKey & { kind: 'grants' }; readonly grants: readonly RoleGrant[] }
  | { readonly key: RowKey & { kind: 'organization' }; readonly organization: Organization | null }
  | { readonly key: RowKey & { kind: 'manifests' }; readonly manifests: readonly StoredManifest[] }
  | { readonly key: RowKey & { kind: 'roles' }; readonly roles: readonly OrganizationRole[] }
  | { readonly key: RowKey & { kind: 'revocations' }; readonly revocations: readonly Revocation[] }
export const SET_ROWS_MAX = 1_000
export const NAMED_BY_MAX = 100_000
/** The most sets that one statement adds because of `chain`. */
export const CHAIN_SETS_MAX = 200

/** Row sets and positions of one moment. `rows` has a set for each key, and those that RowKey promises in addition. */
export type Reading = { readonly vector: Vector; readonly rows: readonly RowSet[] }
export type JournalEntry = {
  readonly log: JournalId
  readonly revision: number
  readonly writeId: string
  readonly change: Change
  readonly actor: string
  readonly requestId: string
  readonly atMs: number
}

/** Reads of one moment: writes that commit meanwhile do not show in any of its answers. */
export interface Snapshot {
  /**
   * Distinct names of a type in ascending order, after `after` (exclusive), at most `countMax`. Names of expired tuples are
   * included. `after` is null or a name of the same type.
   */
  names(
    log: JournalId,
    source: NameSource,
    page: { after: string | null; countMax: number },
  ): Promise<readonly string[]>
  rows(logs: readonly JournalId[], keys: readonly RowKey[]): Promise<Reading>
}

/** Values of one moment during the call, with their version and its write id; 0 and '' for an unknown organization. */
export type EntitlementReading = {
  readonly version: number
  readonly writeId: string
  readonly values: ReadonlyMap<string, Entitlement>
}

export type JournaledGrant = { readonly log: JournalId } & RoleGrant
export type GrantFilter = {
  readonly log?: JournalId
  readonly id?: string
  /** The apps whose roles are wanted; null among them: organization-wide roles. */
  readonly apps?: readonly (string | null)[]
  readonly role?: string
  readonly subject?: string
}
/** Selects all organizations; `within`: this one and all below it; `parent`: those directly below this one. */
export type OrganizationFilter =
  | { readonly [none in never]: never }
  | { readonly within: string }
  | { readonly parent: string }
export type HeldRole = { readonly app: string | null; readonly role: string }
/** A kind of tuple: its type, its relation, and its subjects in the form `user`, `user:*` or `group#member`. */
export type TupleShape = {
  readonly type: string
  readonly relation: string
  readonly subject: string
  /** The condition's name; null: no condition. */
  readonly condition: string | null
  readonly tuplesCount: number
  readonly example: { readonly organization: string; readonly tuple: Omit<Tuple, 'expiresAtMs'> }
}

/** Questions of management across journals. No decision depends on them. Each answer is of one moment. */
export interface ReportingQueries {
  /** Role grants in the order of journal and id, after `after` (exclusive), at most `countMax`. */
  roleGrants(
    filter: GrantFilter,
    page: { after: { readonly log: JournalId; readonly id: string } | null; countMax: number },
  ): Promise<readonly JournaledGrant[]>
  /** The different sets of roles that subjects hold directly, in all journals together, for all subjects with one of `roles`. */
  roleSets(roles: readonly HeldRole[]): Promise<readonly (readonly HeldRole[])[]>
  /** Every shape in which tuples of these types are stored, in any organization. */
  tupleShapes(types: readonly string[]): Promise<readonly TupleShape[]>
}

/**
 * A connection of the application's own, as `pg` makes it (`Client`, `PoolClient`), with a transaction that the application
 * has begun and will end.
 *
 * @example
 * ```ts
 * import pg from 'pg'
 * const connection = await new pg.Pool({ connectionString: process.env.DATABASE_URL }).connect()
 * const client: TransactionClient = connection
 * await connection.query('begin')
 * await pdp.write('acme', { write: ['invoice:42#owner@user:alice'] }, { client })
 * await connection.query('commit')
 * ```
 */
export type TransactionClient = {
  query(statement: {
    text: string
    values: unknown[]
    types: { getTypeParser(): (value: string) => string }
  }): Promise<{ rows: readonly unknown[] }>
}

/** The result of a write. `position`: the journal's afterwards. `changed`: false if nothing had to change and the journal did not move. */
export type Written = { readonly position: JournalPosition; readonly changed: boolean }
/** `appliedCount`: how many of the changes altered something. */
export type AppliedWrite = Written & { readonly appliedCount: number }

/**
 * Everything that decisions depend on. Every read sees all writes that resolved before it was called.
 * All methods throw PdpError `store_unavailable` when the store cannot answer.
 *
 * @example
 * ```ts
 * const store: Store = memoryStore()
 * const inMemory = createPdp({ store })
 * ```
 */
export interface Store extends ReportingQueries {
  /** Reads positions by one statement, sent after the call. */
  vector(logs: readonly JournalId[]): Promise<Vector>
  /** The positions at this moment from memory, for that many questions; null: ask. Absent where the store has no lease. */
  leased?(logs: readonly JournalId[], questions: number): Vector | null
  /**
   * Entries with `from < revision <= to` in order, after the first entry of `from`, whose write id shows whether the reader's history still
   * holds. At most `entriesMax` in all; revisions are never split.
   */
  entries(
    ranges: readonly { log: JournalId; from: number; to: number }[],
    entriesMax: number,
  ): Promise<readonly JournalEntry[]>
  /** Row sets and the positions of `logs`, in one statement of one snapshot. */
  rows(logs: readonly JournalId[], keys: readonly RowKey[]): Promise<Reading>
  /** Runs `use` with reads that are all of one moment. */
  snapshot<T>(use: (at: Snapshot) => Promise<T>): Promise<T>
  /**
   * Applies all changes or none, and returns the journal's position after them, read in the same transaction. A write that
   * changes nothing leaves the position as it is. Throws `organization_unknown`, `conflict`, `precondition_failed`, and
   * `request_invalid` for a change that does not belong to the journal. `keepsSuspension`: also throws `conflict` when it would end
   * a membership that is suspended or invited while the user holds tuples or role grants here, which would count again.
   */
  write(
    log: JournalId,
    changes: readonly Change[],
    options: { context: WriteContext; preconditions?: readonly Precondition[]; keepsSuspension?: boolean },
  ): Promise<AppliedWrite>
  /**
   * Runs `work` in one transaction under these locks; its writes are undone when it throws.
   * `lengthy`: `work` reads or deletes whole tables. Absent where no other process writes.
   */
  atomically?<T>(
    locks: { readonly logs: readonly Lock[]; readonly lengthy?: boolean },
    work: (at: Store) => Promise<T>,
  ): Promise<T>
  /**
   * Does what `write` does, for tuples of an organization, inside the transaction of `client`: the tuples are visible once that
   * transaction commits. Until then other writes to the organization wait. Absent where there are no transactions. After any
   * error but PdpError `request_invalid`, `precondition_failed` or `organization_unknown`, the transaction can only be rolled back.
   */
  writeWithin?(
    client: TransactionClient,
    organization: string,
    changes: readonly (Change & { readonly kind: 'tuple' })[],
    options: { context: WriteContext; preconditions?: readonly Precondition[] },
  ): Promise<Written>
  /** Stored tuples in ascending order, after `after` (exclusive), at most `countMax`. Expired tuples may be among them. */
  tuples(
    organization: string,
    filter: { object?: string; relation?: string; subject?: string },
    page: { after: Tuple | null; countMax: number },
  ): Promise<readonly Tuple[]>
  entitlements(organization: string, keys: readonly string[] | 'all'): Promise<EntitlementReading>
  /**
   * The keys in the token journal by which a token of our identity service is revoked, besides those that follow from its claims.
   * `keyId`: the `kid` of its header. Empty for a token of another issuer; null for a token that is known to be revoked.
   * Absent where no identity service runs.
   */
  tokenKeys?(token: { readonly jti: string; readonly keyId: string | null }): Promise<readonly string[] | null>
  /** The app's present manifest; null: the app has none. */
  manifest(app: string): Promise<StoredManifest | null>
  /** Organizations in the order of their ids, after `after` (exclusive), at most `countMax`. */
  organizations(
    filter: OrganizationFilter,
    page: { after: string | null; countMax: number },
  ): Promise<readonly Organization[]>
  members(
    organization: string,
    page: { after: string | null; countMax: number },
  ): Promise<readonly ({ readonly user: string } & Membership)[]>
  close(): Promise<void>
}

/**
 * The owner of the values of entitlements; their versions are the store's. All methods throw PdpError `store_unavailable`.
 *
 * @example
 * ```ts
 * const source: EntitlementSource = httpEntitlements({ url: 'https://billing.example.com/entitlements', secret: 's', store: memoryStore(), fetch })
 * ```
 */
export interface EntitlementSource {
  /** `store`: management writes the values. Caches keep the values of each name apart, so two sources must not share a name. */
  readonly name: 'store' | `external ${string}`
  /** How long a value may be cached while the version stays the same (milliseconds). Null: for ever, as every change raises it. */
  readonly keptMsMax: number | null
  /** Reads values. `state` differs after every change, also after a change that did not raise the version. */
  read(organization: string, keys: readonly string[] | 'all'): Promise<EntitlementReading & { readonly state: string }>
  /** The current version of each organization; an unknown organization is absent. */
  version(organizations: readonly string[]): Promise<ReadonlyMap<string, number>>
}
