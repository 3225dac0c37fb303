/** What a tenant's client may not get by way of what others do: secrets, names, roles, members, organizations. */
import { beforeEach, describe, expect, test } from 'vitest'
import { CONTEXT } from '../harness.ts'
import { client, openTenantWorld } from './tenant-world.ts'

const world = openTenantWorld()
const { write, send, revocations } = world

describe('names that a tenant gives', () => {
  test.each(['newhire@corp.com', 'ops-automation', 'acme', 'acmeX~1', 'beta~1', '~acme', 'acme-eu'])(
    'are its own, and not %s',
    async (id) => {
      const wanted = client('acme', { grant_types: ['client_credentials'] })
      expect((await send(world.tenant, 'PUT', `/v1/clients/${encodeURIComponent(id)}`, wanted)).status).toBe(403)
      if (id.startsWith('acme')) return
      expect((await send(world.tenant, 'PUT', `/v1/organizations/${id}`, { name: 'X', parent: 'acme' })).status).toBe(
        403,
      )
    },
  )

  test('do not lie in the namespace of an organization that was moved away', async () => {
    expect(
      (await send(world.tenant, 'PUT', `/v1/organizations/${world.name}`, { name: 'X', parent: 'acme' })).status,
    ).toBe(201)
    expect((await send(world.tenant, 'PUT', `/v1/clients/${world.name}~a`, client(world.name))).status).toBe(201)
    expect((await send(world.admin, 'PUT', `/v1/organizations/${world.name}`, { name: 'X' })).status).toBe(200)
    expect((await send(world.tenant, 'PUT', `/v1/clients/${world.name}~b`, client('acme'))).status).toBe(403)
  })

  test('leave a person the id that a deleted client had, once', async () => {
    const id = `person-${world.count}`
    await world.served.directory.putClient({ id, app: null, organization: 'acme', metadata: {} }, CONTEXT)
    const put = () => send(world.admin, 'PUT', `/v1/users/${id}`, {})
    expect((await put()).status).toBe(409)
    expect((await send(world.tenant, 'DELETE', `/v1/clients/${id}`)).status).toBe(204)
    expect((await put()).status).toBe(201)
    expect((await send(world.admin, 'DELETE', `/v1/users/${id}`)).status).toBe(204)
    expect((await put()).status).toBe(409)
    expect((await send(world.admin, 'PUT', `/v1/clients/${id}`, client(null))).status).toBe(409)
  })

  test('never begin as those of other issuers’ subjects, whoever gives them', async () => {
    expect((await send(world.admin, 'PUT', '/v1/users/~idp:eve', {})).status).toBe(409)
    expect((await send(world.admin, 'PUT', '/v1/clients/~idp:eve', client(null))).status).toBe(409)
  })
})

describe('an organization that is moved out of a tenant’s reach', () => {
  test('keeps nothing that the tenant’s clients held in it, and no secret that they set', async () => {
    await send(world.tenant, 'PUT', `/v1/organizations/${world.name}`, { name: 'X', parent: 'acme' })
    await send(world.tenant, 'PUT', `/v1/clients/${world.name}~theirs`, client(world.name))
    await send(world.admin, 'PUT', `/v1/clients/${world.name}~ours`, client(world.name))
    const grant = { id: 'g', app: null, role: 'auditor', subject: 'service:acme-admin' }
    const person = { id: 'p', app: null, role: 'auditor', subject: 'user:alice' }
    const tuple = { object: 'doc:1', relation: 'reader', subject: 'service:acme-admin', expiresAtMs: null }
    await write(world.name, [
      { kind: 'role_grant', op: 'write', grant },
      { kind: 'role_grant', op: 'write', grant: person },
      { kind: 'tuple', op: 'write', tuple },
      { kind: 'membership', user: 'alice', membership: { role: 'owner', status: 'active' } },
    ])
    const before = await revocations('acme-admin')
    const { status, body } = await send(world.admin, 'PUT', `/v1/organizations/${world.name}`, { name: 'X' })
    expect([status, body.moved.lost_secrets]).toEqual([200, [`${world.name}~theirs`]])
    expect(body.moved.lost_access).toContain('acme-admin')
    expect((await world.served.directory.client(`${world.name}~theirs`))?.secretHash).toBeNull()
    expect((await world.served.directory.client(`${world.name}~ours`))?.secretHash).not.toBeNull()
    expect([await revocations('acme-admin'), await revocations(`${world.name}~theirs`)]).toEqual([before + 1, 1])
    const grants = await world.served.store.roleGrants({ log: world.name }, { after: null, countMax: 10 })
    expect(grants.map(({ id }) => id)).toEqual(['p'])
    expect(await world.served.store.tuples(world.name, {}, { after: null, countMax: 10 })).toEqual([])
    expect(await world.served.store.members(world.name, { after: null, countMax: 10 })).toHaveLength(1)
  })

  test('keeps no secret that was set by whoever had such a secret', async () => {
    await send(world.tenant, 'PUT', `/v1/organizations/${world.name}`, { name: 'X', parent: 'acme' })
    await send(world.tenant, 'PUT', `/v1/clients/${world.name}~a`, client(world.name, { scope: 'clients:write' }))
    await send(world.admin, 'PUT', `/v1/clients/${world.name}~b`, client(world.name))
    await world.served.sql.query('update client set secret_set_by = $1 where client_id = $2', [
      `${world.name}~a`,
      `${world.name}~b`,
    ])
    const { body } = await send(world.admin, 'PUT', `/v1/organizations/${world.name}`, { name: 'X' })
    expect(body.moved.lost_secrets).toEqual([`${world.name}~a`, `${world.name}~b`])
  })
})

describe('roles that follow from something else', () => {
  const grantTo = (subject: string, log = 'acme') =>
    write(log, [
      { kind: 'role_grant', op: 'write', grant: { id: `r-${subject}`, app: null, role: 'auditor', subject } },
    ])
  const join = (token: string, tuple: string) =>
    send(token, 'POST', '/v1/organizations/acme/relationships', { write: [tuple] })

  test.each([
    ['a person', (group: string) => `${group}#member@user:bob`],
    ['a service', (group: string) => `${group}#member@service:web`],
    ['another group', (group: string) => `${group}#member@group:b#member`],
    ['a group above which it is', (group: string) => `group:below-${world.count}#member@user:bob#${group}`],
  ])('are not given to %s by who holds none of them', async (_, tupleOf) => {
    const group = `group:g${world.count}`
    await grantTo(group)
    const above = { object: group, relation: 'member', subject: `group:below-${world.count}#member`, expiresAtMs: null }
    await write('acme', [{ kind: 'tuple', op: 'write', tuple: above }])
    const tuple = tupleOf(group).replace(/^(.*@user:bob)#.*$/, '$1')
    expect((await join(world.tenant, tuple)).body).toMatchObject({ code: 'permission_denied' })
    const lines = await fetch(`${world.served.url}/v1/organizations/acme/relationships:import`, {
      method: 'POST',
      headers: { authorization: `Bearer ${world.tenant}`, 'content-type': 'text/plain' },
      body: tuple,
    })
    expect(lines.status).toBe(403)
    const weak = await world.served.manager({ client: 'relations', scopes: ['relationships:write'] })
    expect((await join(weak, tuple)).status).toBe(403)
    expect((await join(world.admin, tuple)).status).toBe(200)
  })

  test('are given to everybody by nobody, where no model lets a wildcard count', async () => {
    const tuple = `group:g${world.count}#member@user:*`
    for (const token of [world.tenant, world.admin])
      expect((await join(token, tuple)).body).toMatchObject({ code: 'request_invalid' })
  })

  test('are given by who holds them, and a group without roles is joined freely', async () => {
    const group = `group:g${world.count}`
    await grantTo(group)
    const holder = await world.served.manager({ client: 'acme-holder', organization: 'acme' })
    await grantTo('service:acme-holder')
    expect((await join(holder, `${group}#member@user:bob`)).status).toBe(200)
    expect((await join(world.tenant, `group:free-${world.count}#member@user:bob`)).status).toBe(200)
  })

  test('are not given by a move below them', async () => {
    await send(world.admin, 'PUT', `/v1/organizations/${world.name}`, { name: 'X', parent: 'acme' })
    await grantTo('user:bob', 'acme-eu')
    const move = (token: string) =>
      send(token, 'PUT', `/v1/organizations/${world.name}`, { name: 'X', parent: 'acme-eu' })
    expect((await move(world.tenant)).body).toMatchObject({ code: 'permission_denied' })
    const weak = await world.served.manager({ client: 'mover', scopes: ['directory:write'] })
    expect((await move(weak)).body).toMatchObject({ code: 'permission_denied' })
    expect((await move(world.admin)).status).toBe(200)
  })

  test('are not widened by a manifest alone', async () => {
    const manifest = (keys: readonly string[]) => ({
      permissions: { a: 'A', b: 'B' },
      roles: { r: { name: 'R', permissions: keys } },
    })
    const weak = await world.served.manager({ client: 'deployer', scopes: ['manifest:write'] })
    const put = (token: string, keys: readonly string[]) =>
      send(token, 'PUT', `/v1/apps/app${world.count}/manifest`, manifest(keys))
    expect((await put(weak, ['a'])).status).toBe(201)
    const grant = { id: `m${world.count}`, app: `app${world.count}`, role: 'r', subject: 'user:bob' }
    await write('acme', [{ kind: 'role_grant', op: 'write', grant }])
    expect((await put(weak, ['a', 'b'])).body).toMatchObject({ code: 'permission_denied' })
    expect((await put(weak, [])).status).toBe(200)
    expect((await put(world.admin, ['a', 'b'])).status).toBe(200)
  })
})

describe('a member whom a tenant makes', () => {
  const member = (token: string, status: string, org = 'acme') =>
    send(token, 'PUT', `/v1/organizations/${org}/members/${world.name}`, { role: 'owner', status })
  beforeEach(async () => {
    await send(world.admin, 'PUT', `/v1/users/${world.name}`, {})
  })

  test.each(['active', 'suspended'])('begins as invited, and not as %s', async (status) => {
    expect(await member(world.tenant, status)).toMatchObject({ status: 201, body: { status: 'invited' } })
    expect((await member(world.tenant, 'active')).body.status).toBe('invited')
    expect((await member(world.admin, 'active')).body.status).toBe('active')
    expect((await member(world.tenant, 'suspended')).body.status).toBe('suspended')
    expect((await member(world.tenant, 'active')).body.status).toBe('active')
  })

  test.each(['suspended', 'invited'])('and is %s is not let in by being removed', async (status) => {
    const grant = { id: `g-${world.name}`, app: null, role: 'auditor', subject: `user:${world.name}` }
    await write('acme', [{ kind: 'role_grant', op: 'write', grant }])
    await member(world.admin, status)
    const remove = () => send(world.tenant, 'DELETE', `/v1/organizations/acme/members/${world.name}`)
    expect(await remove()).toMatchObject({
      status: 409,
      body: { code: 'conflict', detail: expect.stringContaining('their roles here') },
    })
    await write('acme', [{ kind: 'role_grant', op: 'delete', grant }])
    expect((await remove()).status).toBe(204)
  })

  test('is active at once when they are one of its people already', async () => {
    await member(world.admin, 'active', 'acme-eu')
    expect((await member(world.tenant, 'active')).body.status).toBe('active')
  })

  test('begins as invited when they are another tenant’s', async () => {
    await member(world.admin, 'active', 'beta')
    expect((await member(world.tenant, 'active')).body.status).toBe('invited')
  })
})

describe('other issuers', () => {
  const document = (subject_prefix: string) => ({
    jwks: { keys: [{ kty: 'OKP' }] },
    algorithms: ['ES256'],
    audience: 'https://api.example',
    subject_prefix,
    organizations: ['acme'],
  })
  const put = (token: string, prefix: string) =>
    send(
      token,
      'PUT',
      `/v1/trusted-issuers/${encodeURIComponent(`https://idp${world.count}.example`)}`,
      document(prefix),
    )

  test('are trusted by who has issuers:write, and not by who registers clients', async () => {
    const registrar = await world.served.manager({ client: 'registrar', scopes: ['clients:write'] })
    expect((await put(registrar, 'b')).body).toMatchObject({ code: 'scope_insufficient' })
    expect((await put(world.admin, 'b')).status).toBe(201)
    expect((await put(world.admin, 'b')).status).toBe(200)
  })

  test.each(['b', 'bo', 'bob:'])('share no subject: %s', async (prefix) => {
    expect((await put(world.admin, prefix)).status).toBe(409)
  })

  test('have no prefix by which a user of before would be theirs', async () => {
    await world.served.sql.query(`insert into principal (id, kind) values ('~old:eve', 'user')`)
    await world.served.sql.query(`insert into user_account (user_id) values ('~old:eve')`)
    expect((await put(world.admin, 'old:')).status).toBe(409)
  })
})

describe('a client of a tenant that exchanges tokens', () => {
  const put = (token: string, exchange_clients: readonly string[], organization: string | null = 'acme') => {
    const grants = { grant_types: ['urn:ietf:params:oauth:grant-type:token-exchange'], exchange_clients }
    return send(token, 'PUT', `/v1/clients/${world.name}`, client(organization, grants))
  }

  test('names clients of its organization and of those below it, and itself', async () => {
    expect((await send(world.tenant, 'PUT', `/v1/clients/${world.name}~eu`, client('acme-eu'))).status).toBe(201)
    expect((await put(world.tenant, ['acme-admin', `${world.name}~eu`, world.name])).status).toBe(201)
  })

  test.each(['nobody', 'of-beta', 'of-all'])('is refused at once, in the same words, with %s', async (other) => {
    if (other === 'of-beta') await send(world.admin, 'PUT', '/v1/clients/of-beta', client('beta'))
    if (other === 'of-all') await send(world.admin, 'PUT', '/v1/clients/of-all', client(null))
    for (const token of [world.tenant, world.admin]) {
      const { status, body } = await put(token, ['acme-admin', other])
      expect([status, body.errors]).toEqual([
        400,
        [{ pointer: '/exchange_clients/1', detail: 'is not a client of acme or of an organization below it' }],
      ])
    }
    expect((await put(world.admin, [other], null)).status).toBe(201)
  })

  test.each([
    'client_credentials',
    'urn:openid:params:grant-type:ciba',
    'urn:ietf:params:oauth:grant-type:token-exchange',
  ])('is refused without a secret for %s', async (grant) => {
    const body = client('acme', { grant_types: [grant], token_endpoint_auth_method: 'none' })
    expect(await send(world.tenant, 'PUT', `/v1/clients/${world.name}`, body)).toMatchObject({
      status: 400,
      body: { errors: [{ pointer: '/grant_types' }] },
    })
  })
})
