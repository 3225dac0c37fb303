/** The contract of the directory: people and OAuth clients, and the statements of the identity service's own tables. */
import type { WriteContext } from '../../shared/domain/change.ts'
import type { JournalId } from '../../shared/domain/journal.ts'
import type { JsonObject } from '../../shared/domain/json.ts'
import type { Membership, Tier } from '../../shared/domain/membership.ts'
import type { Organization } from '../../shared/domain/organization.ts'
import type { RoleGrant } from '../../shared/domain/role.ts'
import type { Tuple } from '../../shared/domain/tuple.ts'

export type User = {
  readonly id: string
  readonly email: string | null
  readonly emailVerified: boolean
  readonly name: string | null
}
export type ImportedUser = User & { readonly passwordHash: string | null }
/** An OAuth client. `metadata`: client metadata of RFC 7591, without secrets. */
export type Client = {
  readonly id: string
  readonly app: string | null
  readonly organization: string | null
  readonly metadata: JsonObject
}
/** The value of `secretSetBy` for the first client. It is no client's id, since ids hold no `#`. */
export const SYSTEM = '#system'
/**
 * `secretSetBy`: the client that set the secret or the keys; null when that is unknown. `tokenEpoch`: raised whenever the client's
 * tokens are ended; tokens of an earlier epoch are refused.
 */
export type StoredClient = Client & {
  readonly secretHash: string | null
  readonly secretSetBy: string | null
  readonly tokenEpoch: number
}

/** A user with the address. `passwordHash`: in PHC string format; null for a user without password or blocked. */
export type Addressee = User & {
  readonly passwordHash: string | null
  /** True if the address is unproven, no way to sign in exists yet, and no directory has blocked the account. */
  readonly isUnopened: boolean
}

/** People and OAuth clients. User and client ids share one namespace. A deleted id is never used again, except that a former
 * client's id may become a user's: otherwise a tenant's client could block a person's id. */
export interface Directory {
  /**
   * Whether the user or the client exists at a moment after the call. A person of a trusted issuer exists in an organization for
   * which the issuer is trusted.
   */
  exists(subject: { readonly type: 'user' | 'service'; readonly id: string }, organization: string): Promise<boolean>
  user(id: string): Promise<User | null>
  /** The user with this address, whatever its case; null: none. */
  userByEmail(email: string): Promise<Addressee | null>
  /** The same text for all spellings of an address that userByEmail treats as equal. */
  foldEmail(email: string): Promise<string>
  /** Throws `conflict` when the id is a client's or was deleted, or the address is another user's. `also` joins the transaction. */
  putUser(
    user: User & { readonly passwordHash?: string | null },
    context: WriteContext,
    also?: (sql: Transaction) => Promise<unknown>,
  ): Promise<void>
  /** Stores another hash of the same password, unless the stored hash is no longer `stored`. */
  replacePasswordHash(id: string, hashes: { readonly stored: string; readonly hash: string }): Promise<void>
  /**
   * Creates all users; or none, and returns the faults by the users' index in the list. `dryRun`: never creates any. Waits for all writers
   * of the directory.
   */
  importUsers(
    users: readonly ImportedUser[],
    options: { readonly context: WriteContext; readonly dryRun: boolean },
  ): Promise<readonly { readonly index: number; readonly message: string }[]>
  /**
   * Deletes the user and ends their tokens and memberships: the first memberships now, the rest later in pieces
   * (people/departures.ts). False when there was no such user.
   */
  deleteUser(id: string, context: WriteContext): Promise<boolean>
  /** Users in the order of ids. `search`: a part of the id, the name or the address, in any case. */
  users(page: { after: string | null; countMax: number; search?: string }): Promise<readonly User[]>
  /** Active memberships only, with the organization's name, in id order. */
  activeMemberships(user: string): Promise<readonly { readonly organization: Organization; readonly role: Tier }[]>
  /** Memberships of any status, in the order of their organizations. */
  memberships(user: string): Promise<readonly ({ readonly organization: string } & Membership)[]>
  /** True if the person has no membership, role or relationship outside the organization and those below it, and no role of Portcullis. */
  isOnlyIn(user: string, organization: string): Promise<boolean>
  client(id: string): Promise<StoredClient | null>
  /**
   * Throws `conflict` when the id is a user's or was deleted, and `organization_unknown`. `also`: as for putUser. Without
   * `secretHash` the stored hash stays. `endTokens`: ends the tokens that people gave it too; its own end when it may do less.
   */
  putClient(
    client: Client & Partial<Pick<StoredClient, 'secretHash' | 'secretSetBy'>> & { readonly endTokens?: boolean },
    context: WriteContext,
    also?: (sql: Transaction) => Promise<unknown>,
  ): Promise<void>
  /** Deletes the client and ends its tokens. False when there was no such client; `also` then does not run. */
  deleteClient(id: string, context: WriteContext, also?: (sql: Transaction) => Promise<unknown>): Promise<boolean>
  /** Tuples that name the client (`service:<id>`) in the organization and below it, as text; at most `countMax`. */
  clientRelations(id: string, organization: string, countMax: number): Promise<readonly string[]>
  /** Clients in the order of ids. `within`: only those of this organization and of the ones below it. */
  clients(
    filter: { readonly within?: string },
    page: { after: string | null; countMax: number },
  ): Promise<readonly Client[]>
}

/** A user or group in the form of an organization's directory. Each write changes `version`. */
export type Provisioned = {
  readonly id: string
  /** The `userName` or `displayName`. */
  readonly name: string
  readonly externalId: string | null
  readonly document: JsonObject
  readonly version: string
  readonly createdAtMs: number
  readonly changedAtMs: number
}
export type ProvisionedOf = { readonly organization: string; readonly kind: 'User' | 'Group' }
/** Users and groups that companies' directories provisioned over SCIM. Writes need a transaction with the locks of person and organization. */
export interface Provisioning {
  count(of: ProvisionedOf): Promise<number>
  /** Resources in the order of ids, after `after` (exclusive), at most `countMax`; names are compared in any case. */
  find(
    of: ProvisionedOf,
    filter: { readonly id?: string; readonly name?: string; readonly externalId?: string },
    page: { readonly after: string | null; readonly countMax: number },
  ): Promise<readonly Provisioned[]>
  page(of: ProvisionedOf, page: { readonly skip: number; readonly countMax: number }): Promise<readonly Provisioned[]>
  /** The names of those ids that exist, by id. */
  known(of: ProvisionedOf, ids: readonly string[]): Promise<ReadonlyMap<string, string>>
  /**
   * Throws `conflict` when another resource has the name. A user's account must exist. A resource that is the same as before gets
   * no new version, unless `isChanged`: something that is stored elsewhere changed with it.
   */
  put(
    of: ProvisionedOf,
    resource: Pick<Provisioned, 'id' | 'name' | 'externalId' | 'document'>,
    isChanged?: boolean,
  ): Promise<void>
  remove(of: ProvisionedOf, id: string): Promise<boolean>
  holdings(user: string, organizations: readonly string[]): Promise<Holdings>
  /** True if the user has a relationship outside of these organizations. */
  isRelatedOutside(user: string, organizations: readonly string[]): Promise<boolean>
  /** Relationships that name the user, in the order of their organizations, at most `countMax`. */
  relationships(user: string, countMax: number): Promise<readonly (Tuple & { readonly organization: string })[]>
  /** The organizations in which the user is a direct member of a group, at most `countMax`. */
  groupOrganizations(user: string, countMax: number): Promise<readonly string[]>
  /** True if the user is blocked; null: there is no such user. */
  isBlocked(user: string): Promise<boolean | null>
  /** Blocks or unblocks a user. No session of a blocked user counts; after being unblocked, the user must sign in again. */
  setBlocked(user: string, blocked: boolean): Promise<void>
  /**
   * Deletes what was mailed to a user's old address, and all ways to sign in except the password, which putUser replaces. Called for a new
   * address, because the old one's owner may be another person.
   */
  dropProofs(user: string, context: WriteContext): Promise<void>
}
/** A user's holdings outside of given organizations. */
export type Holdings = {
  /** True for a membership of any status, or a role, elsewhere. */
  readonly elsewhere: boolean
  /** True for an active membership elsewhere. */
  readonly activeElsewhere: boolean
  /** True for a role of the built-in app, in any organization. */
  readonly administers: boolean
  readonly blocked: boolean
}

/** `authenticates`: true when the client has a secret or keys. */
export type MovedClient = Pick<StoredClient, 'id' | 'secretSetBy'> & {
  readonly organization: string
  readonly authenticates: boolean
}
/** Reads and writes for the move of an organization. All but `below` must be called in the transaction of the move. */
export interface Moves {
  below(organization: string): Promise<readonly string[]>
  /** Locks these organizations, so that their writers wait until the transaction ends. */
  lock(organizations: readonly string[]): Promise<void>
  clientsOf(organizations: readonly string[], countMax: number): Promise<readonly MovedClient[]>
  /** Removes the client's secret and keys and ends its tokens, also those that people gave it. */
  dropSecret(client: string, context: WriteContext): Promise<void>
  /** Ends the tokens that the client has in its own name. */
  endTokens(client: string, context: WriteContext): Promise<void>
  /** Roles and tuples that clients hold in one organization, in their own name. */
  heldBy(
    organization: string,
    clients: readonly string[],
  ): Promise<{ readonly grants: readonly RoleGrant[]; readonly tuples: readonly Tuple[] }>
}

/** PostgreSQL, for the identity service's own tables. Values are `$1`-parameters, never part of the text. */
export interface Sql {
  /** Rows as objects. Throws PdpError `store_unavailable` when the connection is lost; database errors as they are. */
  query<Row extends object>(text: string, values?: readonly unknown[]): Promise<readonly Row[]>
  /**
   * Runs `work` in a READ COMMITTED transaction, rolled back when `work` throws. After a deadlock `work` runs again, so it must do nothing
   * outside the transaction.
   */
  transaction<T>(work: (sql: Transaction) => Promise<T>): Promise<T>
}

/** A database, or a transaction in it. */
export type Queries = Pick<Sql, 'query'>
/** `arrived` notes that entries of this journal need revisions (arrivals.ts), which they get before the caller's answer. */
export type Transaction = Queries & { arrived(log: JournalId): void }
