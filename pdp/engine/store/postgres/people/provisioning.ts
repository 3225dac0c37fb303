/** Users and groups that companies' directories keep in their organizations, in PostgreSQL. */

import { PdpError } from '../../../../shared/domain/errors.ts'
import { DIRECTORY } from '../../../../shared/domain/journal.ts'
import type { JsonObject } from '../../../../shared/domain/json.ts'
import { appendArrivals } from '../../arrivals.ts'
import type { Holdings, Provisioned, Provisioning, Queries, Sql } from '../../directory.ts'
import { credentialEvent } from '../credential-events.ts'
import { appendEvents } from '../outbox.ts'

type Row = {
  readonly id: string
  readonly name: string
  readonly external_id: string | null
  readonly document: JsonObject
  readonly version: string
  readonly created_at: Date
  readonly changed_at: Date
}
const COLUMNS = 'id, name, external_id, document, version::text, created_at, changed_at'
/** The first parameters of every statement: the organization and the kind. */
const OF = 'organization_id = $1 and kind = $2'

const HOLDINGS = `
  select exists (select 1 from membership where user_id = $1 and organization_id <> all($2::text[]))
      or exists (select 1 from role_grant where subject = 'user:' || $1 and organization_id <> all($2::text[]))
      as elsewhere,
    exists (select 1 from membership where user_id = $1 and status = 'active' and organization_id <> all($2::text[]))
      as "activeElsewhere",
    exists (select 1 from role_grant where subject = 'user:' || $1 and app = $3) as administers,
    exists (select 1 from user_account where user_id = $1 and signed_out_at = 'infinity') as blocked`

/** A recursive table of the organizations in which a tuple names the subject `$1`. It goes by index from one to the next. */
const placesIn = (table: string, name: string): string => `
  ${name}(id) as (
    (select organization_id from ${table} where subject = $1 order by organization_id limit 1)
    union all select r.organization_id from ${name}, lateral (
      select organization_id from ${table} where subject = $1 and organization_id > ${name}.id order by organization_id limit 1) r)`
const RELATED_PLACES = `
  with recursive ${placesIn('relationship', 'plain')}, ${placesIn('conditional_relationship', 'conditional')}`

const RELATED = `
  ${RELATED_PLACES} select 1 where exists (select 1 from plain where id <> all($2::text[]))
    or exists (select 1 from conditional where id <> all($2::text[]))`

const GROUPED = `
  ${RELATED_PLACES} select id from (select id from plain union select id from conditional) place, lateral (
    select 1 from stored_relationship where organization_id = id and subject = $1 and relation = 'member'
      and object >= 'group:' and object < 'group;' limit 1) held
  limit $2`

/** The tables from which `dropProofs` deletes, each with its credential type in CAEP; recovery codes have no event. */
const PROOFS = [
  ['passkey', `case when 'internal' = any(transports) then 'fido2-platform' else 'fido2-roaming' end`],
  ['authenticator', `'app'`],
  ['foreign_identity', `'federated'`],
  ['recovery_code', 'null::text'],
] as const
type Proof = { readonly kind: (typeof PROOFS)[number][0]; readonly credential: string | null }
const DROP_PROOFS = `
  with ${PROOFS.map(([kind, credential]) => `${kind}_gone as (delete from ${kind} where user_id = $1 returning '${kind}' as kind, ${credential} as credential)`).join(', ')}
  ${PROOFS.map(([kind]) => `select kind, credential from ${kind}_gone`).join(' union all ')}`

/** Throws the errors that Provisioning names. */
export function postgresProvisioning(sql: Sql): Provisioning {
  return { ...documents(sql), ...people(sql) }
}

function documents(sql: Queries): Pick<Provisioning, 'count' | 'find' | 'page' | 'known' | 'put' | 'remove'> {
  return {
    async count({ organization, kind }) {
      const rows = await sql.query<{ count: number }>(
        `select count(*)::integer as count from provisioned where ${OF}`,
        [organization, kind],
      )
      return rows[0]?.count ?? 0
    },
    async find({ organization, kind }, { id = null, name = null, externalId = null }, { after, countMax }) {
      const rows = await sql.query<Row>(
        `select ${COLUMNS} from provisioned where ${OF} and ($3::text is null or id = $3)
         and ($4::text is null or lower(name) = lower($4)) and ($5::text is null or external_id = $5)
         and id > $6 order by id limit $7`,
        [organization, kind, id, name, externalId, after ?? '', countMax],
      )
      return rows.map(toProvisioned)
    },
    async page({ organization, kind }, { skip, countMax }) {
      const rows = await sql.query<Row>(
        `select ${COLUMNS} from provisioned where ${OF} order by id offset $3 limit $4`,
        [organization, kind, skip, countMax],
      )
      return rows.map(toProvisioned)
    },
    async known({ organization, kind }, ids) {
      const rows = await sql.query<{ id: string; name: string }>(
        `select id, name from provisioned where ${OF} and id = any($3::text[])`,
        [organization, kind, ids],
      )
      return new Map(rows.map(({ id, name }) => [id, name]))
    },
    async put({ organization, kind }, { id, name, externalId, document }, isChanged = false) {
      const others = await sql.query(`select 1 from provisioned where ${OF} and lower(name) = lower($3) and id <> $4`, [
        organization,
        kind,
        name,
        id,
      ])
      if (others.length > 0) throw new PdpError('conflict', `another ${kind} has the name ${JSON.stringify(name)}`)
      await sql.query(
        `insert into provisioned (organization_id, kind, id, name, external_id, document, user_id)
         values ($1, $2, $3, $4, $5, $6, case when $2 = 'User' then $3 end)
         on conflict (organization_id, kind, id) do update set name = excluded.name, external_id = excluded.external_id,
           document = excluded.document, version = provisioned.version + 1, changed_at = clock_timestamp()
         where $7 or (provisioned.name, provisioned.external_id, provisioned.document)
           is distinct from (excluded.name, excluded.external_id, excluded.document)`,
        [organization, kind, id, name, externalId, JSON.stringify(document), isChanged],
      )
    },
    async remove({ organization, kind }, id) {
      const rows = await sql.query(`delete from provisioned where ${OF} and id = $3 returning 1`, [
        organization,
        kind,
        id,
      ])
      return rows.length > 0
    },
  }
}

/** Reads what users have in other organizations, and blocks users. */
function people(sql: Sql): Omit<Provisioning, keyof ReturnType<typeof documents>> {
  return {
    async holdings(user, organizations) {
      const [found] = await sql.query<Holdings>(HOLDINGS, [user, organizations, 'portcullis'])
      if (found === undefined) throw new TypeError('a row of nothing but expressions was not there')
      return found
    },
    isRelatedOutside: async (user, organizations) =>
      (await sql.query(RELATED, [`user:${user}`, organizations])).length > 0,
    relationships: (user, countMax) => relationshipsOf(sql, user, countMax),
    groupOrganizations: async (user, countMax) =>
      (await sql.query<{ id: string }>(GROUPED, [`user:${user}`, countMax])).map(({ id }) => id),
    async isBlocked(user) {
      const [row] = await sql.query<{ blocked: boolean }>(
        "select signed_out_at is not distinct from 'infinity' as blocked from user_account where user_id = $1",
        [user],
      )
      return row?.blocked ?? null
    },
    async setBlocked(user, blocked) {
      await sql.query(
        `update user_account set signed_out_at = case when $2 then 'infinity'::timestamptz else clock_timestamp() end
         where user_id = $1 and (signed_out_at is not distinct from 'infinity') <> $2`,
        [user, blocked],
      )
    },
    dropProofs: (user, context) =>
      sql.transaction(async (tx) => {
        await tx.query('delete from mailed_token where user_id = $1', [user])
        const gone = await tx.query<Proof>(DROP_PROOFS, [user])
        const kinds = new Set(gone.map(({ kind }) => kind))
        if (kinds.size === 0) return
        const changes = [...kinds].map((kind) => ({ kind, id: user, op: 'delete' }) as const)
        await appendArrivals(tx, DIRECTORY, changes, context)
        const credentials = gone.flatMap(({ credential }) => (credential === null ? [] : [credential]))
        await appendEvents(
          tx,
          credentials.map((credential) => credentialEvent({ user, credential, changed: 'delete', context })),
        )
      }),
  }
}

const toProvisioned = (row: Row): Provisioned => ({
  id: row.id,
  name: row.name,
  externalId: row.external_id,
  document: row.document,
  version: row.version,
  createdAtMs: row.created_at.getTime(),
  changedAtMs: row.changed_at.getTime(),
})

const RELATIONSHIPS = `
  select organization_id as organization, object, relation, expires_at as expires from stored_relationship
  where subject = $1 order by organization_id, object, relation limit $2`

async function relationshipsOf(sql: Queries, user: string, countMax: number) {
  type Row = { organization: string; object: string; relation: string; expires: Date | null }
  const subject = `user:${user}`
  return (await sql.query<Row>(RELATIONSHIPS, [subject, countMax])).map(({ expires, ...place }) => {
    return { ...place, subject, expiresAtMs: expires === null ? null : Number(expires) }
  })
}
