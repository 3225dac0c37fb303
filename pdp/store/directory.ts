/** The contract of the directory: people and OAuth clients, and the statements of the identity service's own tables. */
import type { JsonObject, Organization, Tier, WriteContext } from './contracts.ts'

export type User = {
  readonly id: string
  readonly email: string | null
  readonly emailVerified: boolean
  readonly name: string | null
}
/** OAuth client. `metadata` is RFC 7591 metadata without secrets. */
export type Client = {
  readonly id: string
  readonly app: string | null
  readonly organization: string | null
  readonly metadata: JsonObject
}

/** People and OAuth clients. User and client ids share one namespace, and a deleted id is never given out again. */
export interface Directory {
  /** Whether there is such a user, or such a client, of a moment after the call. */
  exists(subject: { readonly type: 'user' | 'service'; readonly id: string }): Promise<boolean>
  user(id: string): Promise<User | null>
  /** Case-insensitive; null when none or no password. `passwordHash` is in PHC string format. */
  userByEmail(email: string): Promise<(User & { readonly passwordHash: string | null }) | null>
  /** Throws `conflict` when the id is a client's or was deleted, or the e-mail is another's. `also`: in the same transaction. */
  putUser(
    user: User & { readonly passwordHash?: string | null },
    context: WriteContext,
    also?: (sql: Pick<Sql, 'query'>) => Promise<unknown>,
  ): Promise<void>
  /** Also ends memberships and tokens. False when there was none. */
  deleteUser(id: string, context: WriteContext): Promise<boolean>
  users(page: { after: string | null; countMax: number }): Promise<readonly User[]>
  /** Active memberships only, with the organization's name, in id order. */
  activeMemberships(user: string): Promise<readonly { readonly organization: Organization; readonly role: Tier }[]>
  client(id: string): Promise<(Client & { readonly secretHash: string | null }) | null>
  /** Throws `conflict` when the id is a user's or was deleted, `organization_unknown`. `also` as for putUser. */
  putClient(
    client: Client & { readonly secretHash?: string | null },
    context: WriteContext,
    also?: (sql: Pick<Sql, 'query'>) => Promise<unknown>,
  ): Promise<void>
  /** Also ends its tokens. False when there was none; `also` then does not run. */
  deleteClient(
    id: string,
    context: WriteContext,
    also?: (sql: Pick<Sql, 'query'>) => Promise<unknown>,
  ): Promise<boolean>
  /** Tuples about the client as a service, in the organization and below it, as text; at most `countMax`. */
  clientRelations(id: string, organization: string, countMax: number): Promise<readonly string[]>
  clients(page: { after: string | null; countMax: number }): Promise<readonly Client[]>
}

/** PostgreSQL, for the identity service's own tables. Values are `$1`-parameters, never part of the text. */
export interface Sql {
  /** Rows as objects. Throws PdpError `store_unavailable` when the connection is lost; database errors as they are. */
  query<Row extends object>(text: string, values?: readonly unknown[]): Promise<readonly Row[]>
  /** READ COMMITTED; rolled back when `work` throws. */
  transaction<T>(work: (sql: Pick<Sql, 'query'>) => Promise<T>): Promise<T>
}
