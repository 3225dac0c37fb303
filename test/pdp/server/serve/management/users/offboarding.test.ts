/** Offboarding: everything that a person holds is shown, and taken away after the person is shut out. */
import { afterAll, beforeEach, expect, test } from 'vitest'
import { MANAGEMENT_MANIFEST } from '../../../../../../pdp/identity/oauth/management-app.ts'
import { ENVIRONMENT } from '../../../../../../pdp/shared/domain/journal.ts'
import { CONTEXT, type Json, type Served, serve } from '../../harness.ts'

let served: Served | null = null
let admin: string
const at = (): Served => served as Served
beforeEach(async () => {
  await served?.close()
  served = await serve()
  admin = await at().manager()
  await at().store.write(ENVIRONMENT, [{ kind: 'manifest', manifest: MANAGEMENT_MANIFEST }], { context: CONTEXT })
  for (const org of ['acme', 'beta', 'gamma']) await send('PUT', `/v1/organizations/${org}`, { name: org })
  await send('PUT', '/v1/roles/reader', { name: 'Reader', permissions: ['doc:read'] })
  for (const user of ['ann', 'bob', 'root']) await send('PUT', `/v1/users/${user}`, { email: `${user}@acme.test` })
  await send('PUT', '/v1/organizations/acme/members/ann', { role: 'owner', status: 'active' })
  await send('PUT', '/v1/organizations/beta/members/ann', { role: 'member', status: 'suspended' })
  await send('PUT', '/v1/organizations/acme/members/bob', { role: 'member', status: 'active' })
  for (const org of ['acme', 'beta'])
    await send('POST', `/v1/organizations/${org}/role-grants`, { role: 'reader', subject: 'user:ann' })
  await send('POST', '/v1/role-grants', { role: 'reader', subject: 'user:ann' })
  await send('POST', '/v1/role-grants', { app: 'portcullis', role: 'administrator', subject: 'user:root' })
  const write = ['doc:1#viewer@user:ann', 'group:g#member@user:ann', 'doc:1#viewer@user:bob']
  for (const org of ['beta', 'gamma']) await send('POST', `/v1/organizations/${org}/relationships`, { write })
})
afterAll(() => served?.close())

const send = async (method: string, path: string, body?: object, token = admin): Promise<readonly [number, Json]> => {
  const answer = await at().send(method, path, { token, ...(body === undefined ? {} : { body }) })
  return [answer.status, answer.body]
}
const EVERYTHING = {
  memberships: [
    { organization: 'acme', role: 'owner', status: 'active' },
    { organization: 'beta', role: 'member', status: 'suspended' },
  ],
  roles: expect.arrayContaining([
    { organization: null, app: null, role: 'reader' },
    { organization: 'acme', app: null, role: 'reader' },
    { organization: 'beta', app: null, role: 'reader' },
  ]),
  relationships: ['beta', 'gamma'].flatMap((organization) =>
    ['doc:1#viewer@user:ann', 'group:g#member@user:ann'].map((tuple) => ({ organization, tuple })),
  ),
  complete: true,
}
const NOTHING = { memberships: [], roles: [], relationships: [], complete: true }

test('a person loses everything everywhere, nobody else loses anything, and each log has one entry of it', async () => {
  expect(await send('GET', '/v1/users/ann/holdings')).toEqual([200, { id: 'ann', blocked: false, ...EVERYTHING }])
  expect(await send('POST', '/v1/users/ann/offboard')).toEqual([200, { id: 'ann', blocked: true, ...EVERYTHING }])
  expect(await send('GET', '/v1/users/ann/holdings')).toEqual([200, { id: 'ann', blocked: true, ...NOTHING }])
  expect(await send('GET', '/v1/organizations/acme/members/bob')).toMatchObject([200, { status: 'active' }])
  expect((await send('GET', '/v1/users/bob/holdings'))[1].relationships).toHaveLength(2)
  const { items } = (await send('GET', '/v1/organizations/gamma/changes'))[1]
  const own = items.filter(({ actor }: Json) => actor === items.at(-1)?.actor).slice(-2)
  expect(own.map(({ revision, request_id }: Json) => [revision, request_id])).toEqual([
    [items.at(-1)?.revision, items.at(-1)?.request_id],
    [items.at(-1)?.revision, items.at(-1)?.request_id],
  ])
})

test('it may be sent again, and finds nothing', async () => {
  await send('POST', '/v1/users/ann/offboard')
  expect(await send('POST', '/v1/users/ann/offboard')).toEqual([200, { id: 'ann', blocked: true, ...NOTHING }])
})

test('who is in more organizations than one call takes loses the rest by the next calls', async () => {
  for (let i = 0; i < 60; i += 1) {
    await send('PUT', `/v1/organizations/o${i}`, { name: 'o' })
    await send('PUT', `/v1/organizations/o${i}/members/bob`, { role: 'member', status: 'active' })
  }
  const [, first] = await send('POST', '/v1/users/bob/offboard')
  expect([first.blocked, first.complete, first.memberships.length]).toEqual([true, false, expect.any(Number)])
  const [, second] = await send('POST', '/v1/users/bob/offboard')
  expect([second.complete, first.memberships.length + second.memberships.length]).toEqual([true, 61])
})

test.each([
  ['without the scope for roles', ['directory:write', 'relationships:write'], 'ann', 403],
  ['without the scope for relationships', ['directory:write', 'roles:write'], 'ann', 403],
  ['of somebody with more management scopes', ['directory:write', 'roles:write', 'relationships:write'], 'root', 403],
])('it is refused %s, and nothing changes', async (_, scopes, user, status) => {
  const narrow = await at().manager({ client: 'narrow', scopes })
  const before = await send('GET', `/v1/users/${user}/holdings`)
  expect((await send('POST', `/v1/users/${user}/offboard`, undefined, narrow))[0]).toBe(status)
  expect(await send('GET', `/v1/users/${user}/holdings`)).toEqual(before)
})

test('nobody is found under an unknown id, and a tenant may not', async () => {
  expect((await send('GET', '/v1/users/nobody/holdings'))[0]).toBe(404)
  expect((await send('POST', '/v1/users/nobody/offboard'))[0]).toBe(404)
  const tenant = await at().manager({
    ...{ client: 'tenant', scopes: ['directory:write', 'roles:write', 'relationships:write'] },
    organization: 'acme',
  })
  expect((await send('POST', '/v1/users/ann/offboard', undefined, tenant))[0]).toBe(403)
})
