import { describe, expect, test } from 'vitest'
import { ISSUER } from '../../harness.ts'
import { openTenantWorld } from '../tenant-world.ts'

const world = openTenantWorld()
const PATH = '/v1/identity-providers/corp'
const SECRET = 'the-secret-that-corp-gave-us'
const corp = { issuer: 'https://login.corp.example', client_id: 'portcullis', name: 'Corp' }
const put = (body: object, path = PATH, token = world.admin) => world.send(token, 'PUT', path, body)

describe('an identity provider', () => {
  test('is put, listed and deleted, and its secret is never shown nor stored in the clear', async () => {
    const made = await put({ ...corp, client_secret: SECRET, email_domains: ['corp.example'] })
    expect(made).toMatchObject({ status: 201, body: { id: 'corp', ...corp, email_domains: ['corp.example'] } })
    expect((await put({ ...corp, name: 'Corp Inc' })).body).toEqual({ id: 'corp', ...corp, name: 'Corp Inc' })
    const listed = await world.send(world.admin, 'GET', '/v1/identity-providers')
    expect(listed.body.items).toEqual([{ id: 'corp', ...corp, name: 'Corp Inc' }])
    const rows = await world.served.sql.query('select row_to_json(p)::text as text from identity_provider p')
    expect(JSON.stringify([made.body, listed.body, rows])).not.toContain(SECRET)
    expect((await world.send(world.admin, 'DELETE', PATH)).status).toBe(204)
    expect((await world.send(world.admin, 'GET', PATH)).status).toBe(404)
    const log = await world.served.sql.query<{ op: string }>(
      `select change ->> 'op' as op from change_log where change ->> 'kind' = 'identity_provider' order by revision`,
    )
    expect(log.map(({ op }) => op)).toEqual(['write', 'write', 'delete'])
  })

  test('gives the secret of one issuer to no other', async () => {
    await put({ ...corp, client_secret: SECRET })
    expect((await put({ ...corp, issuer: 'https://evil.example' })).status).toBe(400)
    expect((await put({ ...corp, client_id: 'another' })).status).toBe(400)
    expect((await put(corp)).status).toBe(200)
    expect((await put({ ...corp, client_secret: SECRET }, '/v1/identity-providers/corp-2')).status).toBe(409)
    await world.send(world.admin, 'DELETE', PATH)
  })

  test.each([
    ['no secret', corp],
    ['plain http', { ...corp, issuer: 'http://login.corp.example' }],
    ['an issuer with a query', { ...corp, issuer: 'https://login.corp.example?a=b' }],
    ['an issuer with a password', { ...corp, issuer: 'https://a:b@login.corp.example' }],
    ['no URL', { ...corp, issuer: 'corp' }],
    ['an empty list of domains', { ...corp, email_domains: [] }],
    ['a domain in capitals', { ...corp, email_domains: ['Corp.example'] }],
    ['an address as a domain', { ...corp, email_domains: ['@corp.example'] }],
    ['accounts for members only', { ...corp, organizations: ['acme'], creates_accounts: true }],
    ['an unknown method', { ...corp, token_endpoint_auth_method: 'client_secret_jwt' }],
    ['a scope with a space', { ...corp, scopes: ['email profile'] }],
    ['a name with a line break', { ...corp, name: 'a\nb' }],
    ['an unknown member', { ...corp, link_by_email: true }],
  ])('is refused with %s', async (name, body) => {
    const secret = name === 'no secret' ? {} : { client_secret: SECRET }
    expect((await put({ ...body, ...secret })).status).toBe(400)
  })

  test.each(['Corp', 'a_b', '-a', 'a'.repeat(64)])('has no id such as %s', async (id) => {
    expect((await put({ ...corp, client_secret: SECRET }, `/v1/identity-providers/${id}`)).status).toBe(400)
  })

  test('needs a scope of its own', async () => {
    const reader = await world.served.manager({ client: 'r', scopes: ['identity-providers:read', 'issuers:write'] })
    expect((await put({ ...corp, client_secret: SECRET }, PATH, reader)).status).toBe(403)
    expect((await world.send(reader, 'GET', '/v1/identity-providers')).status).toBe(200)
    const other = await world.served.manager({ client: 'o', scopes: ['issuers:write'] })
    expect((await world.send(other, 'GET', '/v1/identity-providers')).status).toBe(403)
  })
})

describe('a client that is bound to an organization', () => {
  const own = '/v1/identity-providers/acme~corp'
  const theirs = { ...corp, issuer: 'https://login.acme.example', client_secret: SECRET }
  const bound = (method: string, path: string, body?: object) => world.send(world.tenant, method, path, body)

  test('manages a provider for its organization and those below, and sees no other', async () => {
    await put({ ...corp, client_secret: SECRET })
    const made = await bound('PUT', own, theirs)
    expect(made).toMatchObject({ status: 201, body: { organization: 'acme', organizations: ['acme'] } })
    const changed = await bound('PATCH', own, { organizations: ['acme', 'acme-eu'] })
    expect(changed).toMatchObject({ status: 200, body: { organization: 'acme', organizations: ['acme', 'acme-eu'] } })
    expect((await bound('GET', '/v1/identity-providers')).body.items).toMatchObject([{ id: 'acme~corp' }])
    expect((await world.send(world.admin, 'GET', '/v1/identity-providers')).body.items).toHaveLength(2)
    for (const method of ['GET', 'DELETE']) expect((await bound(method, PATH)).status).toBe(404)
    expect((await bound('PATCH', PATH, { name: 'Mine' })).status).toBe(404)
    expect((await bound('PUT', PATH, theirs)).status).toBe(403)
    expect((await world.send(world.admin, 'GET', PATH)).body.name).toBe('Corp')
    expect((await bound('DELETE', own)).status).toBe(204)
    await world.send(world.admin, 'DELETE', PATH)
  })

  test.each<[string, object, number]>([
    ['for another organization', { organizations: ['beta'] }, 403],
    ['for one that does not exist', { organizations: ['nowhere'] }, 403],
    ['that belongs to another one', { organization: 'beta' }, 403],
    ['whose word is a second factor', { trusted_acr: ['mfa'] }, 403],
    ['whose assertions are tokens', { identity_assertions: true }, 403],
    ['that makes accounts', { creates_accounts: true, organizations: ['acme'] }, 400],
    ['that is our own issuer', { issuer: 'ISSUER' }, 409],
  ])('may not have one %s', async (_, more, status) => {
    const body = JSON.parse(JSON.stringify({ ...theirs, ...more }).replace('ISSUER', ISSUER))
    expect((await bound('PUT', own, body)).status).toBe(status)
    expect((await bound('GET', own)).status).toBe(404)
  })

  test('takes no id outside its namespace, nor one that the operator has in it', async () => {
    expect((await bound('PUT', '/v1/identity-providers/beta~corp', theirs)).status).toBe(403)
    await put({ ...corp, client_secret: SECRET }, own)
    expect((await bound('PUT', own, theirs)).status).toBe(403)
    await world.send(world.admin, 'DELETE', own)
  })

  test('keeps what the operator trusts, until it names another issuer', async () => {
    await bound('PUT', own, theirs)
    await world.send(world.admin, 'PATCH', own, { trusted_acr: ['mfa'] })
    expect((await bound('PATCH', own, { name: 'Ours' })).body).toMatchObject({ name: 'Ours', trusted_acr: ['mfa'] })
    const moved = { issuer: 'https://other.acme.example', client_secret: SECRET }
    expect((await bound('PATCH', own, moved)).status).toBe(403)
    expect((await bound('PATCH', own, { ...moved, trusted_acr: null })).status).toBe(200)
    await bound('DELETE', own)
  })
})
