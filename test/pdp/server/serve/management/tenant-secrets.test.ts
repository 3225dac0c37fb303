/** Secrets of clients that tenants write, and conditional requests. */
import { describe, expect, test } from 'vitest'
import { CONTEXT, type Json } from '../harness.ts'
import { client, openTenantWorld } from './tenant-world.ts'

const world = openTenantWorld()
const { send, revocations } = world

describe('the secret of a client', () => {
  const secret = { client_secret: 'a-secret-of-the-tenant' }
  const put = (token: string, body: object) => send(token, 'PUT', `/v1/clients/${world.name}`, body)

  test.each([
    ['is taken into the environment', client(null)],
    ['moves to another tenant', client('beta')],
    ['gets a scope that its tenant may not give', client('acme', { scope: 'ledger:write' })],
    ['gets another app', client('beta', { app: 'ledger' })],
  ])('ends with its tokens, people’s too, when it %s', async (_, wanted) => {
    expect((await put(world.tenant, client('acme', secret))).status).toBe(201)
    await world.served.sql.query(`insert into grant_binding (grant_id, user_id, client_id) values ($1, 'alice', $1)`, [
      world.name,
    ])
    await world.served.sql.query(
      `insert into oidc_record (kind, id, payload, grant_id) values ('Grant', $1, '{}', null), ('RefreshToken', $1, '{}', $1)`,
      [world.name],
    )
    const before = await world.served.directory.client(world.name)
    const answer = await put(world.admin, wanted)
    expect(answer).toMatchObject({ status: 200, body: { client_secret: expect.stringMatching(/^[\w-]{43}$/) } })
    const after = await world.served.directory.client(world.name)
    expect(after?.secretHash).not.toBe(before?.secretHash)
    expect(after?.secretSetBy).toBe('admin')
    expect(await revocations(world.name)).toBe(1)
    expect(await world.served.sql.query('select 1 from oidc_record where id = $1', [world.name])).toEqual([])
  })

  test('ends when its tenant may no longer give what the administrator gives', async () => {
    const former = await world.served.manager({
      client: 'acme-former',
      organization: 'acme',
      scopes: ['clients:write'],
    })
    expect((await put(former, client('acme', secret))).status).toBe(201)
    expect((await put(world.admin, client('acme', { scope: 'clients:write' }))).body.client_secret).toBeUndefined()
    await world.served.directory.deleteClient('acme-former', CONTEXT)
    expect((await put(world.admin, client('acme', { scope: 'clients:write openid' }))).body.client_secret).toBeDefined()
  })

  test('ends when nobody knows who set it', async () => {
    await put(world.tenant, client('acme', secret))
    await world.served.sql.query('update client set secret_set_by = null where client_id = $1', [world.name])
    expect((await put(world.admin, client('acme'))).body.client_secret).toBeUndefined()
    expect((await put(world.admin, client('acme', { scope: 'openid' }))).body.client_secret).toBeDefined()
  })

  test('stays while its tenant could have made the registration itself', async () => {
    await put(world.tenant, client('acme', secret))
    const before = await world.served.directory.client(world.name)
    for (const wanted of [
      client('acme', { client_name: 'Renamed' }),
      client('acme', { scope: 'openid' }),
      client('acme-eu'),
    ]) {
      expect((await put(world.admin, wanted)).body.client_secret).toBeUndefined()
    }
    expect((await world.served.directory.client(world.name))?.secretHash).toBe(before?.secretHash)
  })

  test('is the administrator’s when the administrator chose it', async () => {
    await put(world.tenant, client('acme', secret))
    const answer = await put(world.admin, client(null, { client_secret: 'a-secret-of-the-operator' }))
    expect(answer.body.client_secret).toBeUndefined()
    expect((await world.served.directory.client(world.name))?.secretSetBy).toBe('admin')
    expect(await revocations(world.name)).toBe(1)
  })
})

describe('conditional requests', () => {
  const user = () => `/v1/users/${world.name}`

  test('change only what still is as it was read', async () => {
    const made = await send(world.admin, 'PUT', user(), { name: 'One' }, { 'if-none-match': '*' })
    expect(made).toMatchObject({ status: 201, etag: expect.stringMatching(/^"[\w-]+"$/) })
    expect((await send(world.admin, 'PUT', user(), {}, { 'if-none-match': '*' })).status).toBe(412)
    const read = await send(world.admin, 'GET', user())
    expect(read.etag).toBe(made.etag)
    const tag = String(read.etag)
    const changed = await send(world.admin, 'PUT', user(), { name: 'Two' }, { 'if-match': `"other", ${tag}` })
    expect([changed.status, changed.etag === tag]).toEqual([200, false])
    expect((await send(world.admin, 'DELETE', user(), undefined, { 'if-match': tag })).status).toBe(412)
    expect((await send(world.admin, 'GET', user())).body.name).toBe('Two')
    expect((await send(world.admin, 'DELETE', user(), undefined, { 'if-match': '*' })).status).toBe(204)
  })

  test.each([
    ['If-Match of a weak tag', (tag: string) => ({ 'if-match': `W/${tag}` }), 412],
    ['If-Match of another', () => ({ 'if-match': '"other"' }), 412],
    ['If-None-Match of what is there', (tag: string) => ({ 'if-none-match': `"other", W/${tag}` }), 412],
    ['If-None-Match of another', () => ({ 'if-none-match': '"other"' }), 200],
    ['If-Match that is no list of tags', () => ({ 'if-match': 'other' }), 400],
    ['If-None-Match that is no list of tags', () => ({ 'if-none-match': '"a" "b"' }), 400],
  ])('with %s', async (_, headers, status) => {
    const { etag } = await send(world.admin, 'PUT', user(), { name: 'One' })
    expect((await send(world.admin, 'PUT', user(), { name: 'One' }, headers(String(etag)))).status).toBe(status)
  })

  test('If-Match of anything fails where there is nothing', async () => {
    expect((await send(world.admin, 'PUT', user(), {}, { 'if-match': '*' })).status).toBe(412)
  })

  test('a GET of what the reader has is answered without it', async () => {
    const { etag } = await send(world.admin, 'PUT', user(), { name: 'One' })
    const answer = await send(world.admin, 'GET', user(), undefined, { 'if-none-match': String(etag) })
    expect(answer).toEqual({ status: 304, body: null, etag })
  })

  test('another secret is another tag, which says nothing of it', async () => {
    const path = `/v1/clients/${world.name}`
    const { etag } = await send(world.tenant, 'PUT', path, client('acme'))
    await send(world.tenant, 'PUT', path, client('acme', { client_secret: 'another-secret-of-the-tenant' }))
    const late = await send(world.admin, 'PUT', path, client('acme'), { 'if-match': String(etag) })
    expect(late.status).toBe(412)
  })

  test('are described for each PUT', async () => {
    const { body } = await world.served.send('GET', '/openapi.json')
    for (const [path, { put }] of Object.entries<Json>(body.paths)) {
      // The conditions of SSF are its own.
      if (put === undefined || path.startsWith('/ssf/')) continue
      const headers = put.parameters.filter((parameter: Json) => parameter.in === 'header')
      expect([path, headers.map((parameter: Json) => parameter.name)]).toEqual([path, ['if-match', 'if-none-match']])
    }
  })
})
