import { afterAll, beforeAll, expect, test } from 'vitest'
import { numberEvents } from '../../../../../pdp/engine/store/number-events.ts'
import { appendEvents } from '../../../../../pdp/engine/store/postgres/outbox.ts'
import { openPostgres } from '../../../../../pdp/engine/store/postgres/postgres.ts'
import { createBindings } from '../../../../../pdp/identity/issuer/tokens/bindings.ts'
import { createRevocations, type Revocations } from '../../../../../pdp/identity/issuer/tokens/revocation.ts'
import { openTestDatabase, type TestDatabase } from '../../../../support/database.ts'

let database: TestDatabase
let opened: Awaited<ReturnType<typeof openPostgres>>
let revocations: Revocations
beforeAll(async () => {
  database = await openTestDatabase()
  opened = await openPostgres({ connectionString: database.connectionString })
  revocations = createRevocations({ sql: opened.sql, appendEvents, clock: Date.now })
})
afterAll(async () => {
  await opened.close()
  await database.drop()
})

const CONTEXT = { actor: 'test', requestId: 'r' }
type Options = { session?: string | null; offline?: boolean; parent?: string; user?: string }
async function openGrant(grantId: string, { session = null, offline = false, parent, user = 'ann' }: Options = {}) {
  const binding = { organization: 'acme', client: 'web', sessionUid: session, offline, parentGrantId: parent ?? null }
  await createBindings(opened).bind({ grantId, user, ...binding })
  await opened.sql.query(
    `insert into oidc_record (kind, id, payload, grant_id, expires_at)
     values ('Grant', $1, '{}', null, now() + interval '1 day'), ('AccessToken', 'token of ' || $1, '{}', $1, now() + interval '1 day')`,
    [grantId],
  )
}
const ids = async () =>
  (
    await opened.sql.query<{ id: string }>(
      "select id from oidc_record where kind in ('Grant', 'AccessToken') order by id",
    )
  ).map((r) => r.id)
const logged = async () =>
  (
    await opened.sql.query<{ change: unknown }>(
      "select change from change_log where organization_id = '#tokens' order by revision, seq",
    )
  ).map((r) => r.change)
const reported = async () => {
  await numberEvents(opened.sql)
  return (await opened.sql.query<{ payload: unknown }>('select payload from outbox order by seq')).map((r) => r.payload)
}

test('the end of a session ends its grants with their tokens, but not offline ones or those of other sessions', async () => {
  await openGrant('a', { session: 's1' })
  await openGrant('b', { session: 's1' })
  await openGrant('offline', { session: 's1', offline: true })
  await openGrant('other', { session: 's2' })
  await revocations.endSession({ uid: 's1', user: 'ann' }, CONTEXT)
  expect(await ids()).toEqual(['offline', 'other', 'token of offline', 'token of other'])
  expect(await logged()).toEqual([
    { kind: 'token', by: 'session', id: 's1' },
    { kind: 'token', by: 'grant', id: 'a' },
    { kind: 'token', by: 'grant', id: 'b' },
  ])
  expect(await reported()).toMatchObject([{ session: 's1', user: 'ann', tenants: ['acme'] }])
})

test('the end of a grant ends everything that was exchanged from it, at any depth', async () => {
  await openGrant('root')
  await openGrant('child', { parent: 'root' })
  await openGrant('grandchild', { parent: 'child' })
  await revocations.endGrant('root', CONTEXT)
  expect((await ids()).filter((id) => /root|child/.test(id))).toEqual([])
})

test('all sessions and grants of a person end together, offline ones too', async () => {
  await openGrant('hers', { user: 'eve', session: 's9', offline: true })
  await opened.sql.query(
    `insert into oidc_record (kind, id, payload, uid) values ('Session', 'x', '{"accountId": "eve"}', 's9')`,
  )
  expect(await revocations.revokeUser('eve', CONTEXT)).toEqual(['s9'])
  expect(await ids()).not.toContain('hers')
  expect((await reported()).slice(-2)).toMatchObject([
    { session: 's9', user: 'eve' },
    { session: null, user: 'eve' },
  ])
  expect(await revocations.revokeSession('s9', CONTEXT)).toBe(false)
})

test('an ending that cannot be logged deletes nothing', async () => {
  await openGrant('kept')
  await opened.sql.query("alter table log_arrival add constraint log_is_full check (change ->> 'id' <> 'kept')")
  await expect(revocations.endGrant('kept', CONTEXT)).rejects.toThrow('log_is_full')
  await opened.sql.query('alter table log_arrival drop constraint log_is_full')
  expect(await ids()).toContain('kept')
})

test('collection deletes what has been dead for an hour and keeps the rest', async () => {
  await opened.sql.query(
    `insert into oidc_record (kind, id, payload, expires_at) values
     ('Grant', 'old', '{}', now() - interval '61 min'), ('Grant', 'recent', '{}', now() - interval '59 min')`,
  )
  await openGrant('orphan')
  await opened.sql.query("delete from oidc_record where id = 'orphan'")
  await opened.sql.query("update grant_binding set created_at = now() - interval '61 min'")
  await createBindings(opened).collect()
  expect(await ids()).not.toContain('old')
  expect(await ids()).toContain('recent')
  expect(await createBindings(opened).find('orphan')).toBeNull()
  expect(await createBindings(opened).find('other')).toMatchObject({ sessionUid: 's2' })
})

test('a collection leaves nothing that has been dead for an hour, however much there is, and nothing else', async () => {
  const made = (prefix: string, age: string, count: number) =>
    opened.sql.query(
      `insert into oidc_record (kind, id, payload, expires_at)
       select 'Interaction', $1 || n, '{}', now() - $2::interval from generate_series(1, $3::int) n`,
      [prefix, age, count],
    )
  await made('dead ', '61 minutes', 12_001)
  await made('fresh ', '59 minutes', 3)
  await opened.sql.query(
    `insert into grant_binding (grant_id, user_id, client_id, created_at)
     select 'lost ' || n, 'ann', 'web', now() - interval '2 hours' from generate_series(1, 6001) n`,
  )
  await createBindings(opened).collect()
  const left = await opened.sql.query<{ id: string }>(
    "select id from oidc_record where kind = 'Interaction' order by id",
  )
  expect(left.map(({ id }) => id)).toEqual(['fresh 1', 'fresh 2', 'fresh 3'])
  expect(await opened.sql.query("select 1 from grant_binding where grant_id like 'lost %'")).toEqual([])
})

test.each([
  [
    'attempt',
    `insert into attempt (key, tries, ends_at) values ($1, 1, now() - $2::interval)`,
    'key',
    '61 min',
    '59 min',
  ],
  [
    'mailed_token',
    `insert into mailed_token (digest, kind, email, expires_at) values ($1, 'invitation', 'a@b.example', now() - $2::interval)`,
    'digest',
    '61 min',
    '59 min',
  ],
  [
    'outbox',
    `insert into outbox (seq, event_id, type, payload, created_at)
     values (1000 + length($1), $1, 'session.revoked', '{}', now() - $2::interval)`,
    'event_id',
    '31 days',
    '29 days',
  ],
  [
    'pdp_process',
    `insert into pdp_process (id, master_keys, sealing, seen_at) values ($1, '{}', 'k', now() - $2::interval)`,
    'id',
    '61 min',
    '59 min',
  ],
])('a collection deletes old rows of %s, and no other', async (table, insert, column, old, recent) => {
  await opened.sql.query(insert, ['old', old])
  await opened.sql.query(insert, ['recent', recent])
  await createBindings(opened).collect()
  const left = await opened.sql.query<{ id: string }>(
    `select ${column} as id from ${table} where ${column} in ('old', 'recent')`,
  )
  expect(left).toEqual([{ id: 'recent' }])
})
