/** An environment of as many organizations as asked for: rows made by SQL, of each kind that a tenant has. */
import pg from 'pg'
import { inject } from 'vitest'
import { ENVIRONMENT } from '../../../../../pdp/shared/domain/journal.ts'
import { organization, put } from '../../../../support/tuples.ts'
import { CONTEXT, type Served, serve } from '../harness.ts'

/** The model of the documents: a manifest with another model looks at all tuples of its types, and is not measured. */
const SHOP = JSON.stringify({
  ...{ app: 'shop', audiences: [], permissions: {}, roles: { clerk: { name: 'Clerk', permissions: [] } } },
  model: 'model\n  schema 1.1\ntype user\ntype doc\n  relations\n    define viewer: [user]\n',
})
/** Of each other organization `o<n>`, and of its one person `u<n>`, whom a directory brought. */
const FILL = (count: number): readonly string[] => {
  const from = (columns: string): string =>
    `select ${columns} from (select n, 'o' || lpad(n::text, 8, '0') as o, 'u' || n as u from generate_series(1, ${count}) n) q`
  return [
    `insert into revision (organization_id, revision, write_id) ${from('o, 1, 1')}`,
    `insert into organization (organization_id, name) ${from('o, o')}`,
    `insert into change_log (organization_id, revision, seq, write_id, change, actor, request_id) ${from(`o, 1, 1, 1, '{"kind":"clear"}', 'a', 'r'`)}`,
    `insert into principal (id, kind) ${from(`u, 'user'`)}`,
    `insert into user_account (user_id, email) ${from(`u, u || '@x.test'`)}`,
    `insert into membership (organization_id, user_id, role, status) ${from(`o, u, 'member', 'active'`)}`,
    `insert into role_grant (organization_id, grant_id, app, role, subject) ${from(`o, 'g' || n, null, 'common', 'user:' || u`)}`,
    `insert into role_grant (organization_id, grant_id, app, role, subject) ${from(`o, 'h' || n, 'shop', 'clerk', 'user:' || u`)}`,
    `insert into relationship (organization_id, object, relation, subject) ${from(`o, 'group:staff', 'member', 'user:' || u`)}`,
    `insert into relationship (organization_id, object, relation, subject) ${from(`o, 'doc:1', 'viewer', 'user:' || u`)}`,
    `insert into manifest (app, version, document, current) values ('shop', 1, '${SHOP}', true)`,
    `insert into entitlement (organization_id, key, value, enforcement) ${from(`o, 'f.a', '{}', 'DecisionApi'`)}`,
    `insert into principal (id, kind) ${from(`'c' || n, 'client'`)}`,
    `insert into client (client_id, organization_id, metadata) ${from(`'c' || n, o, '{}'`)}`,
    `insert into provisioned (organization_id, kind, id, name, document, user_id) ${from(`o, 'User', u, u, '{}', u`)}`,
    `insert into mailed_token (digest, kind, email, invitation_id, organization_id, role, expires_at)
     ${from(`'d' || n, 'invitation', 'i' || n || '@x.test', 'i' || n, o, 'member', now() + interval '1 day'`)}`,
    `insert into oidc_record (kind, id, payload, uid, expires_at)
     ${from(`'Session', 's' || n, jsonb_build_object('accountId', u), 's' || n, now() + interval '1 day'`)}`,
    `insert into denied_decision (denied_at, organization_id, subject, relation, resource, reason, route, request_id, decision_id)
     ${from(`now(), o, 'user:' || u, 'viewer', 'doc:1', 'none', '', 'r-' || n, 'd-' || n`)}`,
    `insert into grant_binding (grant_id, organization_id, user_id, client_id, session_uid) ${from(`'b' || n, o, u, 'c' || n, 's' || n`)}`,
  ]
}

export type World = {
  readonly connectionString: string
  readonly served: Served
  /** Unbound; unbound with `directory:write` alone; bound to `mine`; its directory. */
  readonly tokens: { readonly [as in 'admin' | 'people' | 'tenant' | 'directory']: string }
  /** A user of the directory. */
  readonly provisioned: string
}

export async function openWorld(count: number): Promise<World> {
  // Whatever a connection reads of the catalogs once (a trigger's function: 280 blocks) is read at the same call of each run.
  const served = await serve({ poolCountMax: 1 })
  const connectionString = await databaseOf(served)
  await fill(connectionString, count)
  const write = (log: string, ...changes: Parameters<Served['store']['write']>[1]) =>
    served.store.write(log, changes, { context: CONTEXT })
  await write(ENVIRONMENT, organization('mine'), organization('mine~a', 'mine'), organization('mine~b', 'mine'))
  await write('mine', put('group:staff#member@user:ann'), put('doc:1#viewer@user:ann'))
  for (const id of ['ann', 'ben', 'cid'])
    await served.directory.putUser({ id, email: `${id}@mine.test`, emailVerified: true, name: id }, CONTEXT)
  const tokens = {
    admin: await served.manager({ client: 'admin' }),
    people: await served.manager({ client: 'people', scopes: ['directory:write'] }),
    tenant: await served.manager({ client: 'mine~tenant', organization: 'mine' }),
    directory: await served.manager({ client: 'mine~directory', organization: 'mine', scopes: ['scim'] }),
  }
  const made = await served.send('POST', '/scim/v2/Users', {
    token: tokens.directory,
    body: { schemas: ['urn:ietf:params:scim:schemas:core:2.0:User'], userName: 'dan@mine.test' },
  })
  await served.sql.query(
    `insert into passkey (credential_id, user_id, name, public_key, counter, synced, transports)
     values ('k', 'ann', 'x', '{}', 0, false, '{internal}')`,
  )
  await served.sql.query(
    `insert into oidc_record (kind, id, payload, uid) values ('Session', 'mine', '{"accountId": "ann"}', 'mine')`,
  )
  return { connectionString, served, tokens, provisioned: String(made.body.id) }
}

async function databaseOf({ sql }: Served): Promise<string> {
  const [row] = await sql.query<{ name: string }>('select current_database() as name')
  const url = new URL(inject('postgresUrl'))
  url.pathname = `/${row?.name}`
  return url.href
}

async function fill(connectionString: string, count: number): Promise<void> {
  const client = new pg.Client({ connectionString })
  await client.connect()
  try {
    // Rows whose keys exist by construction need no look for each of them.
    await client.query('set session_replication_role = replica')
    for (const statement of FILL(count)) await client.query(statement)
    await client.query('vacuum analyze')
  } finally {
    await client.end()
  }
}
