/** A client of an organization ends what its members opened, and nothing of another organization. */
import { expect, test } from 'vitest'
import { openTenantWorld } from '../tenant-world.ts'

const world = openTenantWorld()
const end = (path: string, token = world.tenant) =>
  world.send(token, 'POST', `/v1/organizations/${path}/sessions:revoke`)
const bind = async (user: string, organization: string): Promise<string> => {
  const grant = crypto.randomUUID()
  await world.served.sql.query(
    `insert into grant_binding (grant_id, organization_id, user_id, client_id, offline) values ($1, $2, $3, 'acme-admin', false)`,
    [grant, organization, user],
  )
  await world.served.sql.query(
    `insert into oidc_record (kind, id, payload, expires_at) values ('Grant', $1, '{}', now() + interval '1 hour')`,
    [grant],
  )
  return grant
}
const isLive = async (grant: string): Promise<boolean> =>
  (await world.served.sql.query("select 1 from oidc_record where kind = 'Grant' and id = $1", [grant])).length > 0
const join = (user: string, organization: string) =>
  world.write(organization, [{ kind: 'membership', user, membership: { role: 'viewer', status: 'active' } }])

test('everything of a member who is in no other organization ends', async () => {
  await join('bob', 'acme')
  const grants = [await bind('bob', 'acme'), await bind('bob', 'acme-eu')]
  expect(await end('acme/members/bob')).toMatchObject({ status: 200, body: { everywhere: true } })
  for (const grant of grants) expect(await isLive(grant)).toBe(false)
})

test('of a member who is in another one too, what is bound to this one and those below ends', async () => {
  await join('alice', 'beta')
  const [here, below, elsewhere] = [
    await bind('alice', 'acme'),
    await bind('alice', 'acme-eu'),
    await bind('alice', 'beta'),
  ]
  expect(await end('acme/members/alice')).toMatchObject({ status: 200, body: { everywhere: false } })
  expect([await isLive(here), await isLive(below), await isLive(elsewhere)]).toEqual([false, false, true])
})

test.each([
  ['a member of another organization', 'beta/members/alice', 403],
  ['somebody who is no member', 'acme/members/nobody', 404],
  ['a member of one that does not exist', 'nowhere/members/alice', 403],
])('%s is none of its business', async (_, path, status) => {
  expect((await end(path)).status).toBe(status)
})

test('it needs the scope, and may end neither all sessions of a person nor one by its id', async () => {
  const scopes = ['directory:write']
  const other = await world.served.manager({ client: 'acme-other', organization: 'acme', scopes })
  expect((await end('acme/members/alice', other)).status).toBe(403)
  for (const [method, path] of [
    ['POST', '/v1/users/alice/sessions:revoke'],
    ['DELETE', '/v1/sessions/some'],
  ] as const)
    expect((await world.send(world.tenant, method, path)).status).toBe(403)
})
