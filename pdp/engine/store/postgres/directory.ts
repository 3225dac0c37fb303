/**
 * People and OAuth clients in PostgreSQL. Every write adds an entry to `#directory`. Whoever writes one person waits for writers of
 * that person only; clients are written, and people deleted, under the lock of the whole directory.
 */
import type { WriteContext } from '../../../shared/domain/change.ts'
import { PdpError } from '../../../shared/domain/errors.ts'
import { DIRECTORY, TOKENS } from '../../../shared/domain/journal.ts'
import type { JsonObject } from '../../../shared/domain/json.ts'
import type { Membership, Tier } from '../../../shared/domain/membership.ts'
import { EXTERNAL, isId } from '../../../shared/domain/names.ts'
import type { Organization } from '../../../shared/domain/organization.ts'
import { initiatorOf } from '../../../shared/domain/outbox/events.ts'
import { appendArrivals } from '../arrivals.ts'
import type { Client, Directory, Queries, Sql, StoredClient, Transaction, User } from '../directory.ts'
import { joinedRead } from '../joined-read.ts'
import { lockPerson } from '../journal-lock.ts'
import { queueLogouts } from '../logouts.ts'
import { endGrantsOf, endTokensOf } from './client-tokens.ts'
import { clientCredentialEvents, credentialChange, credentialEvent } from './credential-events.ts'
import { appendJournal } from './journal.ts'
import { appendEvents, type OutboxEvent } from './outbox.ts'
import { beginDeparture } from './people/departures.ts'
import { postgresProvisioning } from './people/provisioning.ts'
import { postgresMoves } from './tree/moves.ts'
import { placesBelow } from './tree/tree.ts'
import { importUsers } from './user-import.ts'

type UserRow = { user_id: string; email: string | null; email_verified: boolean; name: string | null }
type ClientRow = { client_id: string; app: string | null; organization_id: string | null; metadata: JsonObject }
type StoredRow = ClientRow & { secret_hash: string | null; secret_set_by: string | null; token_epoch: number }
type MembershipRow = { organization_id: string; name: string; parent_id: string | null; role: Tier }

const USER_COLUMNS = 'user_id, email, email_verified, name'
const CLIENT_COLUMNS = 'client_id, app, organization_id, metadata'

const CLIENT_RELATIONS = `
  ${placesBelow('$1')} select r.object || '#' || r.relation || '@' || r.subject as tuple
  from place p, lateral (select * from stored_relationship where organization_id = p.organization_id and subject = $2 offset 0) r
  limit $3`

const CLIENTS = `select ${CLIENT_COLUMNS} from client where client_id > $1 order by client_id limit $2`
const CLIENTS_WITHIN = `
  ${placesBelow('$3')} select c.* from place p, lateral (
    select ${CLIENT_COLUMNS} from client where organization_id = p.organization_id and client_id > $1 offset 0) c
  order by c.client_id limit $2`

/** Throws the errors that Directory names. */
export function postgresDirectory(sql: Sql): Directory {
  return { exists: existence(sql), ...userPart(sql), ...clientPart(sql) }
}

function userPart(sql: Sql): Omit<Directory, 'exists' | keyof ReturnType<typeof clientPart>> {
  return {
    async user(id) {
      const [row] = await sql.query<UserRow>(`select ${USER_COLUMNS} from user_account where user_id = $1`, [id])
      return row === undefined ? null : toUser(row)
    },
    async userByEmail(email) {
      const [row] = await sql.query<UserRow & { password_hash: string | null; unopened: boolean }>(
        `select ${USER_COLUMNS}, ${UNOPENED} as unopened, case when signed_out_at = 'infinity' then null else password_hash end as password_hash
         from user_account where lower(email) = lower($1)`,
        [email],
      )
      return row === undefined ? null : { ...toUser(row), passwordHash: row.password_hash, isUnopened: row.unopened }
    },
    async foldEmail(email) {
      const [row] = await sql.query<{ folded: string }>('select lower($1) as folded', [email])
      return row?.folded ?? email
    },
    putUser: (user, context, also) =>
      sql.transaction(async (tx) => {
        const events = await putUser(tx, user, context)
        await also?.(tx)
        await appendEvents(tx, events)
      }),
    async replacePasswordHash(id, { stored, hash }) {
      await sql.query('update user_account set password_hash = $3 where user_id = $1 and password_hash = $2', [
        id,
        stored,
        hash,
      ])
    },
    importUsers: (users, options) => sql.transaction((tx) => importUsers(tx, users, options)),
    async isOnlyIn(user, organization) {
      const below = await postgresMoves(sql).below(organization)
      const { holdings, isRelatedOutside } = postgresProvisioning(sql)
      const { elsewhere, administers } = await holdings(user, below)
      return !elsewhere && !administers && !(await isRelatedOutside(user, below))
    },
    deleteUser: (id, context) => whenAny(sql, (tx) => deleteUser(tx, id, context)),
    async users({ after, countMax, search = '' }) {
      const rows = await sql.query<UserRow>(
        `select ${USER_COLUMNS} from user_account where user_id > $1
         and ($3 = '' or strpos(lower(concat_ws(chr(10), user_id, name, email)), lower($3)) > 0) order by user_id limit $2`,
        [after ?? '', countMax, search],
      )
      return rows.map(toUser)
    },
    async activeMemberships(user) {
      const rows = await sql.query<MembershipRow>(
        `select organization_id, o.name, o.parent_id, m.role from membership m join organization o using (organization_id)
         where m.user_id = $1 and m.status = 'active' order by organization_id`,
        [user],
      )
      return rows.map((row) => ({ organization: toOrganization(row), role: row.role }))
    },
    memberships: (user) =>
      sql.query<{ organization: string } & Membership>(
        'select organization_id as organization, role, status from membership where user_id = $1 order by organization_id',
        [user],
      ),
  }
}

function clientPart(
  sql: Sql,
): Pick<Directory, 'client' | 'putClient' | 'deleteClient' | 'clients' | 'clientRelations'> {
  const stored = joinedRead(async (ids) => {
    const columns = `${CLIENT_COLUMNS}, secret_hash, secret_set_by, token_epoch`
    const rows = await sql.query<StoredRow>(`select ${columns} from client where client_id = any($1)`, [ids])
    return new Map(rows.map((row) => [row.client_id, toStored(row)]))
  })
  return {
    // A text that is not an id names no client, so it is not sent to the database.
    client: async (id) => (isId(id) ? stored(id) : null),
    putClient: (client, context, also) =>
      sql.transaction(async (tx) => {
        const events = await putClient(tx, client, context)
        await also?.(tx)
        await appendEvents(tx, events)
      }),
    deleteClient: (id, context, also) =>
      whenAny(sql, async (tx) => {
        if (!(await deleteClient(tx, id, context))) return false
        await also?.(tx)
        return true
      }),
    async clientRelations(id, organization, countMax) {
      const rows = await sql.query<{ tuple: string }>(CLIENT_RELATIONS, [organization, `service:${id}`, countMax])
      return rows.map(({ tuple }) => tuple)
    },
    async clients({ within }, { after, countMax }) {
      const page = [after ?? '', countMax]
      const rows = await (within === undefined
        ? sql.query<ClientRow>(CLIENTS, page)
        : sql.query<ClientRow>(CLIENTS_WITHIN, [...page, within]))
      return rows.map(toClient)
    },
  }
}

async function putUser(
  tx: Transaction,
  user: User & { readonly passwordHash?: string | null },
  context: WriteContext,
): Promise<readonly OutboxEvent[]> {
  await lockPerson(tx, user.id)
  await appendArrivals(tx, DIRECTORY, [{ kind: 'user', id: user.id, op: 'write' }], context)
  await claimId(tx, user.id, 'user')
  const others = await tx.query('select 1 from user_account where lower(email) = lower($1) and user_id <> $2', [
    user.email,
    user.id,
  ])
  if (others.length > 0) throw new PdpError('conflict', 'the e-mail address belongs to another user')
  const [former] = await tx.query<{ password_hash: string | null }>(
    'select password_hash from user_account where user_id = $1',
    [user.id],
  )
  // `$6` keeps the stored password when none is given.
  await tx.query(
    `insert into user_account (${USER_COLUMNS}, password_hash) values ($1, $2, $3, $4, $5)
     on conflict (user_id) do update set email = excluded.email, email_verified = excluded.email_verified, name = excluded.name,
       password_hash = case when $6 then user_account.password_hash else excluded.password_hash end`,
    [user.id, user.email, user.emailVerified, user.name, user.passwordHash ?? null, user.passwordHash === undefined],
  )
  const changed = credentialChange(former?.password_hash ?? null, user.passwordHash)
  return changed === null ? [] : [credentialEvent({ user: user.id, credential: 'password', changed, context })]
}

async function deleteUser(tx: Queries, id: string, context: WriteContext): Promise<boolean> {
  await appendJournal(tx, DIRECTORY, [{ kind: 'user', id, op: 'delete' }], context)
  const deleted = await tx.query('delete from user_account where user_id = $1 returning 1', [id])
  if (deleted.length === 0) return false
  await tx.query('update principal set deleted_at = clock_timestamp() where id = $1', [id])
  await appendJournal(tx, TOKENS, [{ kind: 'token', by: 'user', id }], context)
  await queueLogouts(tx, { by: 'user', id })
  const data = { session: null, user: id, tenants: [], initiating_entity: initiatorOf(context.actor, id) }
  await appendEvents(tx, [{ type: 'user.signed_out', organization: null, data, tenantsOf: id }])
  await beginDeparture(tx, { user: id, context })
  return true
}

async function putClient(
  tx: Queries,
  client: Parameters<Directory['putClient']>[0],
  context: WriteContext,
): Promise<readonly OutboxEvent[]> {
  await appendJournal(tx, DIRECTORY, [{ kind: 'client', id: client.id, op: 'write' }], context)
  await claimId(tx, client.id, 'client')
  if (client.organization !== null) {
    const found = await tx.query('select 1 from organization where organization_id = $1 for key share', [
      client.organization,
    ])
    if (found.length === 0)
      throw new PdpError('organization_unknown', `there is no organization ${client.organization}`)
  }
  const [before] = await tx.query<ClientRow & { secret_hash: string | null }>(
    `select ${CLIENT_COLUMNS}, secret_hash from client where client_id = $1`,
    [client.id],
  )
  // Tokens carry the scopes, organization and app of their issue. If the client loses a scope, or moves, they end.
  const endGrants = before !== undefined && client.endTokens === true
  if (endGrants || (before !== undefined && isReduced(toClient(before), client)))
    await endTokensOf(tx, client.id, context)
  if (endGrants) await endGrantsOf(tx, client.id)
  await tx.query(
    `insert into client (${CLIENT_COLUMNS}, secret_hash, secret_set_by) values ($1, $2, $3, $4, $5, $7)
     on conflict (client_id) do update set app = excluded.app, organization_id = excluded.organization_id,
       metadata = excluded.metadata, secret_hash = case when $6 then client.secret_hash else excluded.secret_hash end,
       secret_set_by = case when $6 then client.secret_set_by else excluded.secret_set_by end`,
    [
      client.id,
      client.app,
      client.organization,
      JSON.stringify(client.metadata),
      client.secretHash ?? null,
      client.secretHash === undefined,
      client.secretSetBy ?? null,
    ],
  )
  return clientCredentialEvents(
    before === undefined ? null : { ...toClient(before), secretHash: before.secret_hash },
    client,
    context,
  )
}

function isReduced(before: Client, after: Client): boolean {
  if (before.organization !== after.organization || before.app !== after.app) return true
  const left = new Set(scopesIn(after))
  return scopesIn(before).some((scope) => !left.has(scope))
}

function scopesIn({ metadata }: Client): readonly string[] {
  return typeof metadata.scope === 'string' ? metadata.scope.split(' ') : []
}

async function deleteClient(tx: Queries, id: string, context: WriteContext): Promise<boolean> {
  await appendJournal(tx, DIRECTORY, [{ kind: 'client', id, op: 'delete' }], context)
  const deleted = await tx.query('delete from client where client_id = $1 returning 1', [id])
  if (deleted.length === 0) return false
  await tx.query('update principal set deleted_at = clock_timestamp() where id = $1', [id])
  await appendJournal(tx, TOKENS, [{ kind: 'token', by: 'client', id }], context)
  return true
}

async function claimId(tx: Queries, id: string, kind: 'user' | 'client'): Promise<void> {
  const [row] = await tx.query<{ kind: string; deleted_at: Date | null }>(
    'select kind, deleted_at from principal where id = $1',
    [id],
  )
  if (row === undefined) {
    if (id.startsWith(EXTERNAL))
      throw new PdpError('conflict', `ids that begin with ${EXTERNAL} are reserved for subjects of other issuers`)
    await tx.query('insert into principal (id, kind) values ($1, $2)', [id, kind])
    return
  }
  if (row.deleted_at === null) {
    if (row.kind !== kind) throw new PdpError('conflict', `the id ${id} belongs to a ${row.kind}`)
    return
  }
  // Tuples and grants that name the deleted subject must not count for a new one. Those of a former client name no user.
  if (row.kind !== 'client' || kind !== 'user')
    throw new PdpError('conflict', `the id ${id} was deleted, and cannot be used again`)
  await tx.query('update principal set kind = $2, deleted_at = null where id = $1', [id, kind])
}

/** Rolls the transaction back, its journal entry included, when `work` returns false: it found nothing to do. */
async function whenAny(sql: Sql, work: (tx: Transaction) => Promise<boolean>): Promise<boolean> {
  const nothing = new Error('nothing to do')
  try {
    return await sql.transaction(async (tx) => {
      if (!(await work(tx))) throw nothing
      return true
    })
  } catch (err) {
    if (err === nothing) return false
    throw err
  }
}

const toUser = (row: UserRow): User => ({
  id: row.user_id,
  email: row.email,
  emailVerified: row.email_verified,
  name: row.name,
})
const toClient = (row: ClientRow): Client => ({
  id: row.client_id,
  app: row.app,
  organization: row.organization_id,
  metadata: row.metadata,
})
const toStored = (row: StoredRow): StoredClient => {
  const { secret_hash: secretHash, secret_set_by: secretSetBy, token_epoch: tokenEpoch } = row
  return { ...toClient(row), secretHash, secretSetBy, tokenEpoch }
}
const toOrganization = (row: MembershipRow): Organization => ({
  id: row.organization_id,
  name: row.name,
  parent: row.parent_id,
})

/** Whether people and clients exist: a backend asks about others all the time. */
// A person of a trusted issuer exists where the issuer may speak for anybody, as by a token.
const EXISTING = `
  select 'user:' || user_id as name from user_account where user_id = any($1)
  union all select 'service:' || client_id from client where client_id = any($2)
  union all select asked.organization || ' ' || asked.id from unnest($3::text[], $4::text[]) as asked (organization, id)
  where exists (
    select 1 from trusted_issuer t where t.document -> 'organizations' ? asked.organization
    and starts_with(asked.id, '${EXTERNAL}' || (t.document ->> 'subject_prefix'))
    and asked.id <> '${EXTERNAL}' || (t.document ->> 'subject_prefix'))`

function existence(sql: Queries): Directory['exists'] {
  const read = joinedRead(async (names) => {
    const ids = (type: 'user' | 'service'): readonly string[] =>
      names.filter((name) => name.startsWith(`${type}:`)).map((name) => name.slice(type.length + 1))
    const external = names.filter((name) => name.includes(' ')).map((name) => name.split(' '))
    const values = [ids('user'), ids('service'), external.map(([org]) => org), external.map(([, id]) => id)]
    const rows = await sql.query<{ name: string }>(EXISTING, values)
    return new Map(rows.map(({ name }) => [name, true]))
  })
  // A text that is not an id names no one, so it does not take part in the shared statement.
  return async ({ type, id }, organization) => {
    if (!isId(id)) return false
    if (!id.startsWith(EXTERNAL)) return (await read(`${type}:${id}`)) !== null
    return type === 'user' && isId(organization) && (await read(`${organization} ${id}`)) !== null
  }
}

/** True of a row of user_account that nobody opened. Accounts that a directory keeps shut are not among them. */
const UNOPENED = `(not email_verified and password_hash is null and signed_out_at is distinct from 'infinity'
  and not exists (select 1 from passkey p where p.user_id = user_account.user_id)
  and not exists (select 1 from foreign_identity f where f.user_id = user_account.user_id))`
