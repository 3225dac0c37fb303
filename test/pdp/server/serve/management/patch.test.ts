/** PATCH of the management API: what a patch does not name stays, under the rules of PUT. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { MANAGEMENT_MANIFEST } from '../../../../../pdp/identity/oauth/management-app.ts'
import { ENVIRONMENT } from '../../../../../pdp/shared/domain/journal.ts'
import { CONTEXT, type Served, serve } from '../harness.ts'

let served: Served
let token: string
beforeAll(async () => {
  served = await serve()
  token = await served.manager()
})
afterAll(() => served.close())

const send = async (method: string, path: string, body?: unknown, headers?: { [name: string]: string }) => {
  const answer = await served.send(method, path, {
    token,
    ...(body === undefined ? {} : { body }),
    ...(headers === undefined ? {} : { headers }),
  })
  return [answer.status, answer.body] as const
}
const PERSON = { email: 'ann@acme.test', email_verified: true, name: 'Ann' }
const WORKER = {
  client_name: 'Worker',
  organization: 'acme',
  scope: 'relationships:read',
  grant_types: ['client_credentials'],
}

describe('a patch', () => {
  beforeAll(async () => {
    await send('PUT', '/v1/organizations/acme', { name: 'Acme' })
    await send('PUT', '/v1/organizations/other', { name: 'Other' })
  })

  test.each<[what: string, path: string, whole: object, patch: object, after: object]>([
    [
      'an organization keeps its parent',
      '/v1/organizations/lab',
      { name: 'Lab', parent: 'acme' },
      { name: 'Lab Ltd' },
      { id: 'lab', name: 'Lab Ltd', parent: 'acme' },
    ],
    [
      'an organization leaves its parent by null',
      '/v1/organizations/lab2',
      { name: 'Lab', parent: 'acme' },
      { parent: null },
      { id: 'lab2', name: 'Lab', parent: null },
    ],
    ['a user keeps address and proof', '/v1/users/ann', PERSON, { name: 'Ann Lee' }, { ...PERSON, name: 'Ann Lee' }],
    [
      'a user with a new address has no proof of it',
      '/v1/users/ben',
      { email: 'ben@acme.test', email_verified: true },
      { email: 'ben@other.test' },
      { email: 'ben@other.test', email_verified: false },
    ],
    [
      'a user without an address has no proof',
      '/v1/users/cid',
      { email: 'cid@acme.test', email_verified: true, name: 'Cid' },
      { email: null },
      { email: null, email_verified: false, name: 'Cid' },
    ],
    [
      'a member keeps the tier',
      '/v1/organizations/acme/members/ann',
      { role: 'owner', status: 'active' },
      { status: 'suspended' },
      { user: 'ann', role: 'owner', status: 'suspended' },
    ],
    [
      'a role keeps its permissions',
      '/v1/roles/reader',
      { name: 'Reader', permissions: ['doc:read'] },
      { name: 'X' },
      { key: 'reader', name: 'X', permissions: ['doc:read'] },
    ],
    [
      'a client keeps its organization and its grants',
      '/v1/clients/imp',
      WORKER,
      { scope: 'relationships:write relationships:read' },
      { ...WORKER, scope: 'relationships:write relationships:read' },
    ],
    [
      'an entitlement keeps what its value had',
      '/v1/organizations/acme/entitlements/seats',
      { value: { limit: 3, region: 'eu' }, enforcement: 'Claims' },
      { value: { limit: 5 } },
      { value: { limit: 5, region: 'eu' }, enforcement: 'Claims' },
    ],
    [
      'an identity provider keeps its domains and its secret',
      '/v1/identity-providers/corp',
      {
        issuer: 'https://login.corp.example',
        client_id: 'x',
        name: 'Corp',
        client_secret: 'a-secret-of-the-provider',
        email_domains: ['corp.example'],
      },
      { name: 'The Corp' },
      { name: 'The Corp', email_domains: ['corp.example'] },
    ],
  ])('keeps what it does not name: %s', async (_, path, whole, patch, after) => {
    expect((await send('PUT', path, whole))[0]).toBe(201)
    expect(await send('PATCH', path, patch)).toMatchObject([200, after])
    expect(await send('GET', path)).toMatchObject([200, after])
  })

  test('leaves the secret of a client and the password of a user', async () => {
    await send('PUT', '/v1/clients/kept', { ...WORKER, client_secret: 'a-secret-of-the-client' })
    const before = await served.directory.client('kept')
    const [, patched] = await send('PATCH', '/v1/clients/kept', { client_name: 'Other' })
    expect(patched.client_secret).toBeUndefined()
    expect((await served.directory.client('kept'))?.secretHash).toBe(before?.secretHash)
    await send('PUT', '/v1/users/dee', { email: 'dee@acme.test', password: 'correct horse' })
    const hash = (await served.directory.userByEmail('dee@acme.test'))?.passwordHash
    await send('PATCH', '/v1/users/dee', { name: 'Dee' })
    expect((await served.directory.userByEmail('dee@acme.test'))?.passwordHash).toBe(hash)
  })

  test('is refused where nothing is stored, with an old tag, and in a form that PUT would refuse', async () => {
    const path = '/v1/roles/strict'
    expect(await send('PATCH', path, { name: 'x' })).toMatchObject([404, { code: 'not_found' }])
    await send('PUT', path, { name: 'Strict', permissions: ['doc:read'] })
    const tag = (await served.send('GET', path, { token })).headers.get('etag') ?? ''
    const match = { 'if-match': tag, 'content-type': 'application/merge-patch+json' }
    expect((await send('PATCH', path, { name: 'Second' }, match))[0]).toBe(200)
    expect(await send('PATCH', path, { name: 'Third' }, match)).toMatchObject([412, {}])
    for (const patch of [
      { name: null },
      { permissions: null },
      { name: '' },
      { nme: 'x' },
      { permissions: ['X'] },
      [],
      1,
    ])
      expect(await send('PATCH', path, patch)).toMatchObject([400, { code: 'request_invalid' }])
    expect((await send('GET', path))[1]).toMatchObject({ name: 'Second', permissions: ['doc:read'] })
  })

  test('that is nested without end is refused', async () => {
    const path = '/v1/organizations/acme/entitlements/deep'
    await send('PUT', path, { value: { a: 1 } })
    const raw = `{"value": ${'{"a":'.repeat(10_000)}1${'}'.repeat(10_000)}}`
    const headers = { 'content-type': 'application/merge-patch+json' }
    expect((await served.send('PATCH', path, { token, raw, headers })).status).toBe(400)
    expect((await send('GET', path))[1]).toMatchObject({ value: { a: 1 } })
  })

  test('of a password or of a secret cannot say null, which would change nothing', async () => {
    expect(await send('PATCH', '/v1/users/ann', { password: null })).toMatchObject([400, {}])
    expect(await send('PATCH', '/v1/clients/imp', { client_secret: null })).toMatchObject([400, {}])
  })

  test('of the tier alone does not let in whom a directory shut out', async () => {
    await send('PUT', '/v1/users/out', { email: 'out@acme.test' })
    const path = '/v1/organizations/other/members/out'
    await send('PUT', path, { role: 'member', status: 'active' })
    await served.sql.query("update user_account set signed_out_at = 'infinity' where user_id = 'out'")
    const isBlocked = async (): Promise<boolean> => {
      const rows = await served.sql.query(
        "select 1 from user_account where user_id = 'out' and signed_out_at = 'infinity'",
      )
      return rows.length > 0
    }
    expect(await send('PATCH', path, { role: 'viewer' })).toMatchObject([200, { role: 'viewer', status: 'active' }])
    expect(await isBlocked()).toBe(true)
    await send('PATCH', path, { status: 'active' })
    expect(await isBlocked()).toBe(false)
  })
})

describe('a client of an organization', () => {
  const path = '/v1/clients/bound'
  beforeAll(async () => {
    await send('PUT', path, WORKER)
  })

  test('leaves it where a caller with authority says null', async () => {
    expect(await send('PATCH', path, { organization: null })).toMatchObject([200, { organization: null }])
    await send('PATCH', path, { organization: 'acme' })
  })

  test('cannot be changed by a tenant that lacks what the result would have', async () => {
    await served.manager({ client: 'acme~tenant', organization: 'acme', scopes: ['clients:write'] })
    const tenant = await served.manager({ client: 'acme~tenant', organization: 'acme', scopes: ['clients:write'] })
    const patch = async (body: object, at = path) => (await served.send('PATCH', at, { token: tenant, body })).status
    await send('PUT', '/v1/clients/acme~own', { organization: 'acme', grant_types: ['client_credentials'] })
    expect(await patch({ client_name: 'Mine' }, '/v1/clients/acme~own')).toBe(200)
    expect(await patch({ scope: 'roles:write' }, '/v1/clients/acme~own')).toBe(403)
    expect(await patch({ organization: null }, '/v1/clients/acme~own')).toBe(403)
    expect(await patch({ client_name: 'Mine' })).toBe(403)
    expect(await patch({ client_name: 'Mine' }, '/v1/clients/nobody')).toBe(404)
    await send('PUT', '/v1/clients/elsewhere', { organization: 'other', grant_types: ['client_credentials'] })
    expect(await patch({ client_name: 'Mine' }, '/v1/clients/elsewhere')).toBe(404)
  })
})

test('a person whom nobody but an administrator may readdress is not readdressed by a patch', async () => {
  await send('PUT', '/v1/users/root', { email: 'root@acme.test' })
  await served.store.write(ENVIRONMENT, [{ kind: 'manifest', manifest: MANAGEMENT_MANIFEST }], { context: CONTEXT })
  const given = await send('POST', '/v1/role-grants', {
    app: 'portcullis',
    role: 'administrator',
    subject: 'user:root',
  })
  expect(given[0]).toBe(200)
  const narrow = await served.manager({ client: 'narrow', scopes: ['directory:write'] })
  const answer = await served.send('PATCH', '/v1/users/root', { token: narrow, body: { email: 'me@evil.test' } })
  expect(answer.status).toBe(403)
})
