/** The interface of an application that embeds the PDP: questions, and writes that are validated as they are over HTTP. */
import type { AskedSubject, DecideRequest, Decision, Pdp } from '../../shared/domain/decision.ts'
import type { Enforcement } from '../../shared/domain/entitlement.ts'
import type { JsonObject } from '../../shared/domain/json.ts'
import type { Manifest, StoredManifest } from '../../shared/domain/manifest.ts'
import type { MembershipStatus, Tier } from '../../shared/domain/membership.ts'
import type { Organization } from '../../shared/domain/organization.ts'
import type { CheckArguments, CheckOf, RelationModel, TupleOf } from '../../shared/domain/relation-types.ts'
import type { RoleGrant } from '../../shared/domain/role.ts'
import type { TransactionClient } from '../store/contract.ts'
import type { Comparing } from './compare-shapes.ts'

/**
 * The author of a write, for the journal.
 *
 * @example
 * ```ts
 * const by: WriteBy = { actor: 'user:alice', requestId: 'req-7' }
 * await pdp.putOrganization('acme', { name: 'Acme' }, by)
 * ```
 */
export type WriteBy = {
  /** The author of the write; default: `embedded`. */
  readonly actor?: string
  /** The id of the write's request; default: a random one. */
  readonly requestId?: string
}

/**
 * Tuples to write and to delete, at most 1,000, all or none.
 *
 * @example
 * ```ts
 * const changes: RelationshipChanges = {
 *   write: ['invoice:42#viewer@user:bob', { object: 'invoice:42', relation: 'viewer', subject: 'user:eve', expires_at: '2030-01-31T12:00:00Z' }],
 *   delete: ['invoice:42#viewer@user:alice'],
 * }
 * ```
 */
export type RelationshipChanges<M extends RelationModel = RelationModel> = {
  readonly write?: readonly TupleOf<M>[]
  readonly delete?: readonly TupleOf<M>[]
}

/**
 * Conditions of a write, and the transaction that it belongs to.
 *
 * @example
 * ```ts
 * const options: WriteOptions = { if: [{ tuple: 'invoice:42#owner@user:alice', exists: true }] }
 * await pdp.write('acme', { write: ['invoice:42#viewer@user:bob'] }, options)
 * ```
 */
export type WriteOptions<M extends RelationModel = RelationModel> = WriteBy & {
  /** The write happens only if each of these tuples exists (`exists`), or does not exist; at most 100. */
  readonly if?: readonly { readonly tuple: TupleOf<M>; readonly exists: boolean }[]
  /**
   * A `pg` client in a transaction that you began, on the store's database. The write becomes visible at your commit, and vanishes at your
   * rollback. Commit soon: other writes of the organization wait for you.
   */
  readonly client?: TransactionClient
}

/**
 * The result of a write. `changed` is false if everything was stored already as the write asked.
 *
 * @example
 * ```ts
 * const { changed, revision }: WriteResult = await pdp.write('acme', { write: ['invoice:42#viewer@user:bob'] })
 * ```
 */
export type WriteResult = { readonly revision: number; readonly changed: boolean }

/**
 * An app's declaration; an absent member is empty.
 *
 * @example
 * ```ts
 * const manifest: ManifestInput = { permissions: { 'invoices:approve': 'Approve invoices' }, roles: { clerk: { name: 'Clerk', permissions: ['invoices:approve'] } } }
 * await pdp.putManifest('billing', manifest)
 * ```
 */
export type ManifestInput = Partial<Omit<Manifest, 'app'>>

/**
 * The decision point in your process. Every method throws PdpError.
 *
 * @example
 * ```ts
 * await pdp.putOrganization('acme', { name: 'Acme' })
 * await pdp.write('acme', { write: ['invoice:42#viewer@user:alice'] })
 * await pdp.can('acme', user('alice'), 'viewer', 'invoice:42') // true
 * ```
 */
export interface EmbeddedPdp<M extends RelationModel = RelationModel> extends Omit<Pdp, 'can' | 'decide'>, Comparing {
  /** True if the subject has the relation or permission key on the resource; false in an unknown organization. */
  can(
    organization: string,
    subject: AskedSubject,
    ...check: [...CheckArguments<M>, options?: { readonly context?: JsonObject }]
  ): Promise<boolean>
  /** Answers at most 256 checks and 256 entitlements, all for one moment, with reasons if asked for. */
  decide(
    request: Omit<DecideRequest, 'permissions'> & { readonly permissions?: readonly CheckOf<M>[] },
  ): Promise<Decision>
  /**
   * The revocation keys of a token (`isRevoked`) in addition to its id, client and user: clients, grants and session that it comes from, if
   * the identity service on the same database issued it. `keyId`: the `kid` of its header. Empty: another issuer's token. Null: revoked.
   */
  tokenKeys(token: { readonly jti: string; readonly keyId: string | null }): Promise<readonly string[] | null>
  /**
   * Writes and deletes tuples, all or none. Later decisions see the result. A stored tuple may be written again, and a missing one deleted.
   * Throws `request_invalid`, `organization_unknown`, `precondition_failed`.
   */
  write(organization: string, changes: RelationshipChanges<M>, options?: WriteOptions<M>): Promise<WriteResult>
  /** Declares what an app has: audiences, permissions, roles and a relation model. Throws `request_invalid`, `conflict`. */
  putManifest(app: string, manifest: ManifestInput, by?: WriteBy): Promise<StoredManifest>
  /** Creates or renames an organization. Throws `conflict` for another parent: only the management API moves. */
  putOrganization(
    id: string,
    organization: { name: string; parent?: string | null },
    by?: WriteBy,
  ): Promise<Organization>
  /** Deletes an organization; false: there was none. Throws `conflict` while it has child organizations or clients. */
  deleteOrganization(id: string, by?: WriteBy): Promise<boolean>
  /** Makes a user a member, or changes the tier or the status (`active` when absent). You say who your users are. */
  putMember(
    organization: string,
    user: string,
    membership: { readonly role: Tier; readonly status?: MembershipStatus },
    by?: WriteBy,
  ): Promise<void>
  /**
   * False when the user was not a member. Throws `conflict` for a membership that is suspended or invited while the user holds
   * tuples or roles here: without it these would count again.
   */
  deleteMember(organization: string, user: string, by?: WriteBy): Promise<boolean>
  /** Sets an entitlement; `true` is stored as `{"enabled": true}`. Throws `conflict` where an external source owns them. */
  putEntitlement(
    organization: string,
    key: string,
    value: JsonObject | boolean,
    options?: WriteBy & { readonly enforcement?: Enforcement },
  ): Promise<void>
  /** Deletes an entitlement; false: the organization did not have it. */
  deleteEntitlement(organization: string, key: string, by?: WriteBy): Promise<boolean>
  /** Grants a role of an app (`app` absent: an organization-wide role) in an organization and those below it. */
  grantRole(
    organization: string,
    grant: { readonly app?: string | null; readonly role: string; readonly subject: string },
    by?: WriteBy,
  ): Promise<RoleGrant>
  /** Revokes a role; false: it was not granted there. */
  revokeRole(
    organization: string,
    grant: { readonly app?: string | null; readonly role: string; readonly subject: string },
    by?: WriteBy,
  ): Promise<boolean>
}
