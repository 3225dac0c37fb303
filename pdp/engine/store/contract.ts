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

/** The parts of a journal that can be read, each whole or not at all. */
export type RowKey =
  /**
   * Subjects of object#relation. `chain`: the same relation of what they name of the object's own type is returned too, as an object
   * or as a userset, and so on: `CHAIN_SETS_MAX` of them, the nearest first. Each of them is whole, or is not there.
   */
  | {
      readonly log: JournalId
      readonly kind: 'set'
      readonly object: string
      readonly relation: string
      readonly chain?: true
    }
  /** One tuple, present or absent; for sets that are too wide to load. */
  | {
      readonly log: JournalId
      readonly kind: 'tuple'
      readonly object: string
      readonly relation: string
      readonly subject: string
    }
  /** The tuples that name the name, those with a condition too: of one type and relation, or all. */
  | {
      readonly log: JournalId
      readonly kind: 'named'
      readonly name: string
      readonly where: { readonly type: string; readonly relation: string } | null
    }
  /** Groups that name the subject (`user:a`, `group:b#member`) directly. The groups above them are returned too. */
  | { readonly log: JournalId; readonly kind: 'groups'; readonly subject: string }
  | { readonly log: JournalId; readonly kind: 'membership'; readonly user: string }
  /** Role grants to exactly this subject. The groups above it are returned too, with the grants to each. */
  | { readonly log: JournalId; readonly kind: 'grants'; readonly subject: string }
  /** ENVIRONMENT only, as are the next two: one node of the organization tree. Its ancestors are returned too. */
  | { readonly log: JournalId; readonly kind: 'organization'; readonly id: string }
  | { readonly log: JournalId; readonly kind: 'manifests' }
  /** TOKENS only: every revocation that may concern an unexpired token. */
  | { readonly log: JournalId; readonly kind: 'revocations' }
  | { readonly log: JournalId; readonly kind: 'roles' }

export type SubjectRow = {
  readonly subject: string
  readonly expiresAtMs: number | null
  readonly condition?: TupleCondition
}
export type RowSet =
  /**
   * `complete` false: more than `SET_ROWS_MAX` rows; `subjects` then holds only the usersets and wildcards.
   * `usersetsComplete` false: of these there are more than that too, and it holds nothing.
   */
  | {
      readonly key: RowKey & { kind: 'set' }
      readonly subjects: readonly SubjectRow[]
      readonly complete: boolean
      readonly usersetsComplete: boolean
    }
  /** `subject` of each row is what names it, as `object#relation`. `complete` false: more than `NAMED_BY_MAX`, and none are here. */
  | { readonly key: RowKey & { kind: 'named' }; readonly sets: readonly SubjectRow[]; readonly complete: boolean }
  | { readonly key: RowKey & { kind: 'tuple' }; readonly row: SubjectRow | null }
  /** `subject` of each row is a group as `group:x#member`. Tuples with a condition put nobody in a group here. */
  | { readonly key: RowKey & { kind: 'groups' }; readonly groups: readonly SubjectRow[] }
  | { readonly key: RowKey & { kind: 'membership' }; readonly membership: Membership | null }
  | { readonly key: RowKey & { kind: 'grants' }; readonly grants: readonly RoleGrant[] }
  | { readonly key: RowKey & { kind: 'organization' }; readonly organization: Organization | null }
  | { readonly key: RowKey & { kind: 'manifests' }; readonly manifests: readonly StoredManifest[] }
  | { readonly key: RowKey & { kind: 'roles' }; readonly roles: readonly OrganizationRole[] }
  | { readonly key: RowKey & { kind: 'revocations' }; readonly revocations: readonly Revocation[] }
export const SET_ROWS_MAX = 1_000
export const NAMED_BY_MAX = 100_000
/** Counts all sets of a statement. */
export const CHAIN_SETS_MAX = 200

/** Row sets and positions of one moment. `rows` holds at least what was asked, plus the groups above the asked ones. */
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

/** Reads of one moment: what every call answers, whatever commits meanwhile. */
export interface Snapshot {
  /**
   * Distinct names of a type in key order, after `after` (exclusive), at most `countMax`. Those of expired tuples too.
   * `after` is null or a name of the same type.
   */
  names(
    log: JournalId,
    source: NameSource,
    page: { after: string | null; countMax: number },
  ): Promise<readonly string[]>
  rows(logs: readonly JournalId[], keys: readonly RowKey[]): Promise<Reading>
}

/** Values of one moment during the call, and the version that held then with the id of its write; 0 and '' for an unknown organization. */
export type EntitlementReading = {
  readonly version: number
  readonly writeId: string
  readonly values: ReadonlyMap<string, Entitlement>
}

export type JournaledGrant = { readonly log: JournalId } & RoleGrant
export type GrantFilter = {
  readonly log?: JournalId
  readonly id?: string
  /** Any of these; null is the organization-wide roles. */
  readonly apps?: readonly (string | null)[]
  readonly role?: string
  readonly subject?: string
}
/** All; this organization and those below it; or those directly below this one. */
export type OrganizationFilter =
  | { readonly [none in never]: never }
  | { readonly within: string }
  | { readonly parent: string }
export type HeldRole = { readonly app: string | null; readonly role: string }
/** Tuples of one type and relation whose subjects are of one kind, such as `user`, `user:*` or `group#member`. */
export type TupleShape = {
  readonly type: string
  readonly relation: string
  readonly subject: string
  /** The name of their condition; null for none. */
  readonly condition: string | null
  readonly tuplesCount: number
  /** One of them, and whose it is. */
  readonly example: { readonly organization: string; readonly tuple: Omit<Tuple, 'expiresAtMs'> }
}

/** Questions of management across journals; no decision waits for them. Each answer is of one moment. */
export interface ReportingQueries {
  /** By journal and id, after `after` (exclusive), at most `countMax`. */
  roleGrants(
    filter: GrantFilter,
    page: { after: { readonly log: JournalId; readonly id: string } | null; countMax: number },
  ): Promise<readonly JournaledGrant[]>
  /**
   * The distinct sets of roles that some subject was granted directly, in all journals together: of the subjects that were granted
   * one of `roles`.
   */
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

/** `position`: of the journal after the write. `changed` false: everything was already as asked, so the journal did not move. */
export type Written = { readonly position: JournalPosition; readonly changed: boolean }
/** `appliedCount`: of the changes that were not so already. */
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
  /** One plain statement, sent after the call. */
  vector(logs: readonly JournalId[]): Promise<Vector>
  /**
   * Log entries with `from < revision <= to` in order, after the first entry of `from` itself, whose write id shows whether
   * the history is still the one that the reader knows. At most `entriesMax` in all, never half a revision.
   */
  entries(
    ranges: readonly { log: JournalId; from: number; to: number }[],
    entriesMax: number,
  ): Promise<readonly JournalEntry[]>
  /** Row sets and the positions of `logs`, in one statement of one snapshot. */
  rows(logs: readonly JournalId[], keys: readonly RowKey[]): Promise<Reading>
  /** Several reads of one moment, read only. */
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
   * Runs `work` on the content of these journals, which nobody else writes until it ends; undone when it throws. `lengthy`: it
   * looks at whole tables. Absent where no other process writes.
   */
  atomically?<T>(
    locks: { readonly logs: readonly JournalId[]; readonly lengthy?: boolean },
    work: (at: Store) => Promise<T>,
  ): Promise<T>
  /**
   * As write, for tuples of an organization, inside the transaction of `client`: what it writes is seen when that transaction
   * commits. Until then other writes of the organization wait. Absent where there are no transactions. After an error that
   * is no PdpError `request_invalid`, `precondition_failed` or `organization_unknown`, the transaction has failed.
   */
  writeWithin?(
    client: TransactionClient,
    organization: string,
    changes: readonly (Change & { readonly kind: 'tuple' })[],
    options: { context: WriteContext; preconditions?: readonly Precondition[] },
  ): Promise<Written>
  /** Stored tuples in key order, after `after` (exclusive), at most `countMax`. */
  tuples(
    organization: string,
    filter: { object?: string; relation?: string; subject?: string },
    page: { after: Tuple | null; countMax: number },
  ): Promise<readonly Tuple[]>
  entitlements(organization: string, keys: readonly string[] | 'all'): Promise<EntitlementReading>
  /**
   * The keys of the token journal that end a token of the identity service on this store, besides those that its claims tell.
   * `keyId`: the `kid` of its header. Empty for a token of another issuer, null for one that is known to be revoked.
   * Absent where no identity service runs.
   */
  tokenKeys?(token: { readonly jti: string; readonly keyId: string | null }): Promise<readonly string[] | null>
  /** The current version; null before the first. */
  manifest(app: string): Promise<StoredManifest | null>
  /** In the order of ids, after `after` (exclusive), at most `countMax`. */
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
  /** `store`: management writes the values. Cached values are kept apart by this name, so no two sources share one. */
  readonly name: 'store' | `external ${string}`
  /** Milliseconds for which a value may be kept while the version stays; null: every change makes a version. */
  readonly keptMsMax: number | null
  /** `state` differs after every change, whether it was announced or not. */
  read(organization: string, keys: readonly string[] | 'all'): Promise<EntitlementReading & { readonly state: string }>
  /** Current versions; an unknown organization is absent. */
  version(organizations: readonly string[]): Promise<ReadonlyMap<string, number>>
}
