/** What a tenant's client may not get by way of what others do: secrets, names, roles, members, organizations. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { ENVIRONMENT } from '../../../../pdp/domain/log.ts'
import { CONTEXT, type Json, type Served, seedAcme, serve } from '../harness.ts'

let served: Served
let admin: string
/** Bound to acme, with every scope; it holds no role. */
let tenant: string
let count = 0
/** Of acme's namespace, another one for each test. */
let name: string
beforeAll(async () => {
  served = await serve()
  await seedAcme(served)
  for (const [id, parent] of [
    ['beta', null],
    ['acme-eu', 'acme'],
  ] as const) {
    await write(ENVIRONMENT, [{ kind: 'organization', id, organization: { id, name: id, parent } }])
  }
  await write(ENVIRONMENT, [
    { kind: 'role', key: 'auditor', role: { key: 'auditor', name: 'Auditor', permissions: ['logs:read'] } },
  ])
  admin = await served.manager()
  tenant = await served.manager({ client: 'acme-admin', organization: 'acme' })
})
afterAll(() => served.close())
beforeEach(() => {
  name = `acme~${++count}`
})

const write = (log: string, changes: Parameters<Served['store']['write']>[1]) =>
  served.store.write(log, changes, { context: CONTEXT })
const send = async (token: string, method: string, path: string, body?: object, headers: Json = {}) => {
  const answer = await served.send(method, path, { token, headers, ...(body === undefined ? {} : { body }) })
  return { status: answer.status, body: answer.body, etag: answer.headers.get('etag') }
}
const client = (organization: string | null, rest: object = {}) => ({
  grant_types: ['client_credentials'],
  ...(organization === null ? {} : { organization }),
  ...rest,
})
const deaths = async (id: string) =>
  (
    await served.sql.query(
      `select 1 from change_log where organization_id = '#tokens' and change = jsonb_build_object('kind', 'token', 'by', 'client', 'id', $1::text)`,
      [id],
    )
  ).length

describe('names that a tenant gives', () => {
  test.each(['newhire@corp.com', 'ops-automation', 'acme', 'acmeX~1', 'beta~1', '~acme', 'acme-eu'])(
    'are its own, and not %s',
    async (id) => {
      const wanted = client('acme', { grant_types: ['client_credentials'] })
      expect((await send(tenant, 'PUT', `/v1/clients/${encodeURIComponent(id)}`, wanted)).status).toBe(403)
      if (id.startsWith('acme')) return
      expect((await send(tenant, 'PUT', `/v1/organizations/${id}`, { name: 'X', parent: 'acme' })).status).toBe(403)
    },
  )

  test('do not lie in the namespace of an organization that was moved away', async () => {
    expect((await send(tenant, 'PUT', `/v1/organizations/${name}`, { name: 'X', parent: 'acme' })).status).toBe(201)
    expect((await send(tenant, 'PUT', `/v1/clients/${name}~a`, client(name))).status).toBe(201)
    expect((await send(admin, 'PUT', `/v1/organizations/${name}`, { name: 'X' })).status).toBe(200)
    expect((await send(tenant, 'PUT', `/v1/clients/${name}~b`, client('acme'))).status).toBe(403)
  })

  test('leave a person the id that a deleted client had, once', async () => {
    const id = `person-${count}`
    await served.directory.putClient({ id, app: null, organization: 'acme', metadata: {} }, CONTEXT)
    const put = () => send(admin, 'PUT', `/v1/users/${id}`, {})
    expect((await put()).status).toBe(409)
    expect((await send(tenant, 'DELETE', `/v1/clients/${id}`)).status).toBe(204)
    expect((await put()).status).toBe(201)
    expect((await send(admin, 'DELETE', `/v1/users/${id}`)).status).toBe(204)
    expect((await put()).status).toBe(409)
    expect((await send(admin, 'PUT', `/v1/clients/${id}`, client(null))).status).toBe(409)
  })

  test('never begin as those of other issuers’ subjects, whoever gives them', async () => {
    expect((await send(admin, 'PUT', '/v1/users/~idp:eve', {})).status).toBe(409)
    expect((await send(admin, 'PUT', '/v1/clients/~idp:eve', client(null))).status).toBe(409)
  })
})

describe('an organization that is moved out of a tenant’s reach', () => {
  test('keeps nothing that the tenant’s clients held in it, and no secret that they set', async () => {
    await send(tenant, 'PUT', `/v1/organizations/${name}`, { name: 'X', parent: 'acme' })
    await send(tenant, 'PUT', `/v1/clients/${name}~theirs`, client(name))
    await send(admin, 'PUT', `/v1/clients/${name}~ours`, client(name))
    const grant = { id: 'g', app: null, role: 'auditor', subject: 'service:acme-admin' }
    const person = { id: 'p', app: null, role: 'auditor', subject: 'user:alice' }
    const tuple = { object: 'doc:1', relation: 'reader', subject: 'service:acme-admin', expiresAtMs: null }
    await write(name, [
      { kind: 'role_grant', op: 'write', grant },
      { kind: 'role_grant', op: 'write', grant: person },
      { kind: 'tuple', op: 'write', tuple },
      { kind: 'membership', user: 'alice', membership: { role: 'owner', status: 'active' } },
    ])
    const before = await deaths('acme-admin')
    const { status, body } = await send(admin, 'PUT', `/v1/organizations/${name}`, { name: 'X' })
    expect([status, body.moved.lost_secrets]).toEqual([200, [`${name}~theirs`]])
    expect(body.moved.lost_access).toContain('acme-admin')
    expect((await served.directory.client(`${name}~theirs`))?.secretHash).toBeNull()
    expect((await served.directory.client(`${name}~ours`))?.secretHash).not.toBeNull()
    expect([await deaths('acme-admin'), await deaths(`${name}~theirs`)]).toEqual([before + 1, 1])
    const grants = await served.store.roleGrants({ log: name }, { after: null, countMax: 10 })
    expect(grants.map(({ id }) => id)).toEqual(['p'])
    expect(await served.store.tuples(name, {}, { after: null, countMax: 10 })).toEqual([])
    expect(await served.store.members(name, { after: null, countMax: 10 })).toHaveLength(1)
  })

  test('keeps no secret that was set by whoever had such a secret', async () => {
    await send(tenant, 'PUT', `/v1/organizations/${name}`, { name: 'X', parent: 'acme' })
    await send(tenant, 'PUT', `/v1/clients/${name}~a`, client(name, { scope: 'clients:write' }))
    await send(admin, 'PUT', `/v1/clients/${name}~b`, client(name))
    await served.sql.query('update client set secret_set_by = $1 where client_id = $2', [`${name}~a`, `${name}~b`])
    const { body } = await send(admin, 'PUT', `/v1/organizations/${name}`, { name: 'X' })
    expect(body.moved.lost_secrets).toEqual([`${name}~a`, `${name}~b`])
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
    ['everybody', (group: string) => `${group}#member@user:*`],
    ['a service', (group: string) => `${group}#member@service:web`],
    ['another group', (group: string) => `${group}#member@group:b#member`],
    ['a group above which it is', (group: string) => `group:below-${count}#member@user:bob#${group}`],
  ])('are not given to %s by who holds none of them', async (_, tupleOf) => {
    const group = `group:g${count}`
    await grantTo(group)
    const above = { object: group, relation: 'member', subject: `group:below-${count}#member`, expiresAtMs: null }
    await write('acme', [{ kind: 'tuple', op: 'write', tuple: above }])
    const tuple = tupleOf(group).replace(/^(.*@user:bob)#.*$/, '$1')
    expect((await join(tenant, tuple)).body).toMatchObject({ code: 'permission_denied' })
    const lines = await fetch(`${served.url}/v1/organizations/acme/relationships:import`, {
      method: 'POST',
      headers: { authorization: `Bearer ${tenant}`, 'content-type': 'text/plain' },
      body: tuple,
    })
    expect(lines.status).toBe(403)
    const weak = await served.manager({ client: 'relations', scopes: ['relationships:write'] })
    expect((await join(weak, tuple)).status).toBe(403)
    expect((await join(admin, tuple)).status).toBe(200)
  })

  test('are given by who holds them, and a group without roles is joined freely', async () => {
    const group = `group:g${count}`
    await grantTo(group)
    const holder = await served.manager({ client: 'acme-holder', organization: 'acme' })
    await grantTo('service:acme-holder')
    expect((await join(holder, `${group}#member@user:bob`)).status).toBe(200)
    expect((await join(tenant, `group:free-${count}#member@user:bob`)).status).toBe(200)
  })

  test('are not given by a move below them', async () => {
    await send(admin, 'PUT', `/v1/organizations/${name}`, { name: 'X', parent: 'acme' })
    await grantTo('user:bob', 'acme-eu')
    const move = (token: string) => send(token, 'PUT', `/v1/organizations/${name}`, { name: 'X', parent: 'acme-eu' })
    expect((await move(tenant)).body).toMatchObject({ code: 'permission_denied' })
    const weak = await served.manager({ client: 'mover', scopes: ['directory:write'] })
    expect((await move(weak)).body).toMatchObject({ code: 'permission_denied' })
    expect((await move(admin)).status).toBe(200)
  })

  test('are not widened by a manifest alone', async () => {
    const manifest = (keys: readonly string[]) => ({
      permissions: { a: 'A', b: 'B' },
      roles: { r: { name: 'R', permissions: keys } },
    })
    const weak = await served.manager({ client: 'deployer', scopes: ['manifest:write'] })
    const put = (token: string, keys: readonly string[]) =>
      send(token, 'PUT', `/v1/apps/app${count}/manifest`, manifest(keys))
    expect((await put(weak, ['a'])).status).toBe(201)
    const grant = { id: `m${count}`, app: `app${count}`, role: 'r', subject: 'user:bob' }
    await write('acme', [{ kind: 'role_grant', op: 'write', grant }])
    expect((await put(weak, ['a', 'b'])).body).toMatchObject({ code: 'permission_denied' })
    expect((await put(weak, [])).status).toBe(200)
    expect((await put(admin, ['a', 'b'])).status).toBe(200)
  })
})

describe('a member whom a tenant makes', () => {
  const member = (token: string, status: string, org = 'acme') =>
    send(token, 'PUT', `/v1/organizations/${org}/members/${name}`, { role: 'owner', status })
  beforeEach(async () => {
    await send(admin, 'PUT', `/v1/users/${name}`, {})
  })

  test.each(['active', 'suspended'])('begins as invited, and not as %s', async (status) => {
    expect(await member(tenant, status)).toMatchObject({ status: 201, body: { status: 'invited' } })
    expect((await member(tenant, 'active')).body.status).toBe('invited')
    expect((await member(admin, 'active')).body.status).toBe('active')
    expect((await member(tenant, 'suspended')).body.status).toBe('suspended')
    expect((await member(tenant, 'active')).body.status).toBe('active')
  })

  test('is active at once when they are one of its people already', async () => {
    await member(admin, 'active', 'acme-eu')
    expect((await member(tenant, 'active')).body.status).toBe('active')
  })

  test('begins as invited when they are another tenant’s', async () => {
    await member(admin, 'active', 'beta')
    expect((await member(tenant, 'active')).body.status).toBe('invited')
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
    send(token, 'PUT', `/v1/trusted-issuers/${encodeURIComponent(`https://idp${count}.example`)}`, document(prefix))

  test('are trusted by who has issuers:write, and not by who registers clients', async () => {
    const registrar = await served.manager({ client: 'registrar', scopes: ['clients:write'] })
    expect((await put(registrar, 'b')).body).toMatchObject({ code: 'scope_insufficient' })
    expect((await put(admin, 'b')).status).toBe(201)
    expect((await put(admin, 'b')).status).toBe(200)
  })

  test.each(['b', 'bo', 'bob:'])('share no subject: %s', async (prefix) => {
    expect((await put(admin, prefix)).status).toBe(409)
  })

  test('have no prefix by which a user of before would be theirs', async () => {
    await served.sql.query(`insert into principal (id, kind) values ('~old:eve', 'user')`)
    await served.sql.query(`insert into user_account (user_id) values ('~old:eve')`)
    expect((await put(admin, 'old:')).status).toBe(409)
  })
})
