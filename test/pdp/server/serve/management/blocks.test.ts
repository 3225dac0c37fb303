/** Blocking a person: the state in which a directory puts who leaves, set and taken back by the operator. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { MANAGEMENT_MANIFEST } from '../../../../../pdp/identity/oauth/management-app.ts'
import { ENVIRONMENT } from '../../../../../pdp/shared/domain/journal.ts'
import { CONTEXT, type Json, type Served, serve } from '../harness.ts'

let served: Served
let admin: string
let narrow: string
beforeAll(async () => {
  served = await serve()
  admin = await served.manager()
  narrow = await served.manager({ client: 'narrow', scopes: ['directory:write'] })
  await send('PUT', '/v1/organizations/acme', { name: 'Acme' })
  await served.store.write(ENVIRONMENT, [{ kind: 'manifest', manifest: MANAGEMENT_MANIFEST }], { context: CONTEXT })
  for (const user of ['ann', 'root']) {
    await send('PUT', `/v1/users/${user}`, { email: `${user}@acme.test` })
    await send('PUT', `/v1/organizations/acme/members/${user}`, { role: 'member', status: 'active' })
  }
  await send('PUT', '/v1/roles/reader', { name: 'Reader', permissions: ['doc:read'] })
  await send('POST', '/v1/organizations/acme/role-grants', { role: 'reader', subject: 'user:ann' })
  await send('POST', '/v1/role-grants', { app: 'portcullis', role: 'administrator', subject: 'user:root' })
})
afterAll(() => served.close())

const send = async (method: string, path: string, body?: object, token = admin): Promise<readonly [number, Json]> => {
  const answer = await served.send(method, path, { token, ...(body === undefined ? {} : { body }) })
  return [answer.status, answer.body]
}
const isBlocked = async (id: string): Promise<boolean> =>
  (await served.sql.query("select 1 from user_account where user_id = $1 and signed_out_at = 'infinity'", [id]))
    .length > 0

test('a person is shut out, keeps what they hold, and is let in again', async () => {
  for (let times = 0; times < 2; times += 1)
    expect(await send('POST', '/v1/users/ann/block')).toEqual([200, { id: 'ann', blocked: true }])
  expect(await isBlocked('ann')).toBe(true)
  expect(await send('GET', '/v1/organizations/acme/members/ann')).toMatchObject([200, { status: 'active' }])
  expect((await send('GET', '/v1/organizations/acme/role-grants?subject=user:ann'))[1].items).toHaveLength(1)
  for (let times = 0; times < 2; times += 1)
    expect(await send('POST', '/v1/users/ann/unblock')).toEqual([200, { id: 'ann', blocked: false }])
  expect(await isBlocked('ann')).toBe(false)
})

test('who was blocked is let in only by a caller that may give what the person holds', async () => {
  await send('POST', '/v1/users/ann/block')
  expect(await send('POST', '/v1/users/ann/unblock', undefined, narrow)).toMatchObject([
    403,
    { code: 'permission_denied' },
  ])
  expect(await isBlocked('ann')).toBe(true)
  await send('POST', '/v1/users/ann/unblock')
})

test('who manages Portcullis is blocked only by a caller with the same scopes', async () => {
  expect(await send('POST', '/v1/users/root/block', undefined, narrow)).toMatchObject([403, {}])
  expect(await isBlocked('root')).toBe(false)
})

test('nobody else is blocked: who does not exist, and by a tenant', async () => {
  for (const state of ['block', 'unblock']) expect((await send('POST', `/v1/users/nobody/${state}`))[0]).toBe(404)
  const tenant = await served.manager({ client: 'acme~t', organization: 'acme', scopes: ['directory:write'] })
  expect((await send('POST', '/v1/users/ann/block', undefined, tenant))[0]).toBe(403)
  expect(await isBlocked('ann')).toBe(false)
})
