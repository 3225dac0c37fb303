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
/** OAuth client. `metadata` is RFC 7591 metadata without secrets. */
export type Client = {
  readonly id: string
  readonly app: string | null
  readonly organization: string | null
  readonly metadata: JsonObject
}
/** Sets the secret of the first client; no client's id, which holds no `#`. */
export const SYSTEM = '#system'
/**
 * `secretSetBy`: the client that set the secret, or the keys; null when nobody knows. `tokenEpoch`: raised whenever its tokens
 * end; those of an earlier one count no more.
 */
export type StoredClient = Client & {
  readonly secretHash: string | null
  readonly secretSetBy: string | null
  readonly tokenEpoch: number
}

/** A user with the address. `passwordHash`: in PHC string format; null for none, and for a blocked user. */
export type Addressee = User & {
  readonly passwordHash: string | null
  /** Nobody has proven the address, nothing opens the account yet, and no directory keeps it shut. */
  readonly isUnopened: boolean
}

/** People and OAuth clients. User and client ids share one namespace. A deleted id is never given out again, but for a
 * client's to a user: a tenant's client must not stand in the way of a person. */
export interface Directory {
  /**
   * Whether there is such a user, or such a client, of a moment after the call; of a trusted issuer's people, whether it may
   * speak for them in the organization.
   */
  exists(subject: { readonly type: 'user' | 'service'; readonly id: string }, organization: string): Promise<boolean>
  user(id: string): Promise<User | null>
  /** Case-insensitive; null when none. */
  userByEmail(email: string): Promise<Addressee | null>
  /** One text for all spellings of an address that userByEmail treats as equal. */
  foldEmail(email: string): Promise<string>
  /** Throws `conflict` when the id is a client's or was deleted, or the e-mail is another's. `also`: in the same transaction. */
  putUser(
    user: User & { readonly passwordHash?: string | null },
    context: WriteContext,
    also?: (sql: Transaction) => Promise<unknown>,
  ): Promise<void>
  /** Another hash of the same password; nothing if the stored one is no longer `stored`. */
  replacePasswordHash(id: string, hashes: { readonly stored: string; readonly hash: string }): Promise<void>
  /**
   * Creates all of them, or none: what is wrong with which, by its place in the list. `dryRun`: only says what is wrong.
   * Waits for other writers of the directory.
   */
  importUsers(
    users: readonly ImportedUser[],
    options: { readonly context: WriteContext; readonly dryRun: boolean },
  ): Promise<readonly { readonly index: number; readonly message: string }[]>
  /**
   * Also ends tokens, and memberships: the first of them now, and the rest by who goes on with departures. False when there
   * was none.
   */
  deleteUser(id: string, context: WriteContext): Promise<boolean>
  /** `search`: part of the id, the name or the address, in capitals or not. */
  users(page: { after: string | null; countMax: number; search?: string }): Promise<readonly User[]>
  /** Active memberships only, with the organization's name, in id order. */
  activeMemberships(user: string): Promise<readonly { readonly organization: Organization; readonly role: Tier }[]>
  /** Memberships of any status, in the order of their organizations. */
  memberships(user: string): Promise<readonly ({ readonly organization: string } & Membership)[]>
  /**
   * The person has no membership, role or relationship outside the organization and those below it, and no role of Portcullis
   * itself.
   */
  isOnlyIn(user: string, organization: string): Promise<boolean>
  client(id: string): Promise<StoredClient | null>
  /**
   * Throws `conflict` when the id is a user's or was deleted, `organization_unknown`. `also` as for putUser. Without
   * `secretHash` what is stored stays. `endTokens`: of people too; a client that may do less than before loses its own anyway.
   */
  putClient(
    client: Client & Partial<Pick<StoredClient, 'secretHash' | 'secretSetBy'>> & { readonly endTokens?: boolean },
    context: WriteContext,
    also?: (sql: Transaction) => Promise<unknown>,
  ): Promise<void>
  /** Also ends its tokens. False when there was none; `also` then does not run. */
  deleteClient(id: string, context: WriteContext, also?: (sql: Transaction) => Promise<unknown>): Promise<boolean>
  /** Tuples about the client as a service, in the organization and below it, as text; at most `countMax`. */
  clientRelations(id: string, organization: string, countMax: number): Promise<readonly string[]>
  /** `within`: those of this organization and of the ones below it. */
  clients(
    filter: { readonly within?: string },
    page: { after: string | null; countMax: number },
  ): Promise<readonly Client[]>
}

/** A user or a group as the directory of an organization sent it. `version` differs after every write. */
export type Provisioned = {
  readonly id: string
  /** `userName` or `displayName`. */
  readonly name: string
  readonly externalId: string | null
  readonly document: JsonObject
  readonly version: string
  readonly createdAtMs: number
  readonly changedAtMs: number
}
export type ProvisionedOf = { readonly organization: string; readonly kind: 'User' | 'Group' }
/** Users and groups that companies' directories brought over SCIM. Writes belong into a transaction that holds the lock of `#directory`. */
export interface Provisioning {
  count(of: ProvisionedOf): Promise<number>
  /** In the order of ids, after `after` (exclusive), at most `countMax`; names are compared without case. */
  find(
    of: ProvisionedOf,
    filter: { readonly id?: string; readonly name?: string; readonly externalId?: string },
    page: { readonly after: string | null; readonly countMax: number },
  ): Promise<readonly Provisioned[]>
  page(of: ProvisionedOf, page: { readonly skip: number; readonly countMax: number }): Promise<readonly Provisioned[]>
  /** Names by id, of those that there are. */
  known(of: ProvisionedOf, ids: readonly string[]): Promise<ReadonlyMap<string, string>>
  /**
   * Throws `conflict` when another one has the name. A user's account must exist. What is the same gets no new version, unless
   * something that is kept elsewhere changed with it (`isChanged`).
   */
  put(
    of: ProvisionedOf,
    resource: Pick<Provisioned, 'id' | 'name' | 'externalId' | 'document'>,
    isChanged?: boolean,
  ): Promise<void>
  remove(of: ProvisionedOf, id: string): Promise<boolean>
  holdings(user: string, organizations: readonly string[]): Promise<Holdings>
  /** Whether the user has a relationship outside of these organizations. */
  isRelatedOutside(user: string, organizations: readonly string[]): Promise<boolean>
  /** Relationships that name the user, in the order of their organizations, at most `countMax`. */
  relationships(user: string, countMax: number): Promise<readonly (Tuple & { readonly organization: string })[]>
  /** The organizations in which the user is a direct member of a group, at most `countMax`. */
  groupOrganizations(user: string, countMax: number): Promise<readonly string[]>
  /** Null: there is no such user. */
  isBlocked(user: string): Promise<boolean | null>
  /** While a user is blocked, no sign-in of theirs counts. Who is no longer must sign in again. */
  setBlocked(user: string, blocked: boolean): Promise<void>
  /**
   * The address that the user had is no proof of anything any more, and who had it is perhaps another person: what was mailed
   * there is void, and all by which they signed in is gone but the password, which putUser takes.
   */
  dropProofs(user: string, context: WriteContext): Promise<void>
}
/** Everything that a user has apart from these organizations. */
export type Holdings = {
  /** A membership with any status, or a role. */
  readonly elsewhere: boolean
  /** An active membership. */
  readonly activeElsewhere: boolean
  /** A role of the built-in app, anywhere. */
  readonly administers: boolean
  readonly blocked: boolean
}

/** `authenticates`: by a secret or by keys. */
export type MovedClient = Pick<StoredClient, 'id' | 'secretSetBy'> & {
  readonly organization: string
  readonly authenticates: boolean
}
/** Reads and writes for the move of an organization. Everything but `below` belongs into the transaction of the move. */
export interface Moves {
  /** The organization and all below it. */
  below(organization: string): Promise<readonly string[]>
  /** Makes the writers of these organizations wait until the transaction ends. */
  lock(organizations: readonly string[]): Promise<void>
  clientsOf(organizations: readonly string[], countMax: number): Promise<readonly MovedClient[]>
  /** Nobody can act as the client until it has another secret, or other keys. Ends its tokens, people's too. */
  dropSecret(client: string, context: WriteContext): Promise<void>
  /** Those that it has for itself. */
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
   * READ COMMITTED; rolled back when `work` throws. `work` runs again when PostgreSQL undid it for others (a deadlock): what it does
   * outside the transaction comes after it.
   */
  transaction<T>(work: (sql: Transaction) => Promise<T>): Promise<T>
}

/** A database, or one transaction in it. */
export type Queries = Pick<Sql, 'query'>
/** `arrived`: entries of this log have no revision yet (arrivals.ts). Who waits for the transaction waits until all have one. */
export type Transaction = Queries & { arrived(log: JournalId): void }
