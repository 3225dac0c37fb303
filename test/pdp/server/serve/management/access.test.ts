/** Who may manage what: tokens, scopes, organizations. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { SERVICE_SCOPES } from '../../../../../pdp/identity/oauth/scopes.ts'
import { ENVIRONMENT } from '../../../../../pdp/shared/domain/journal.ts'
import { CONTEXT, type Served, seedAcme, serve } from '../harness.ts'

let served: Served
let admin: string
/** Bound to acme. */
let bound: string
beforeAll(async () => {
  served = await serve()
  await seedAcme(served)
  for (const [id, parent] of [
    ['acme-eu', 'acme'],
    ['acme-eu-fr', 'acme-eu'],
    ['other', null],
  ] as const) {
    await served.store.write(ENVIRONMENT, [{ kind: 'organization', id, organization: { id, name: id, parent } }], {
      context: CONTEXT,
    })
  }
  admin = await served.manager()
  bound = await served.manager({ client: 'acme-admin', organization: 'acme' })
})
afterAll(() => served.close())

const call = async (method: string, path: string, options: Parameters<Served['send']>[2] = {}) => {
  const { status, body } = await served.send(method, path, options)
  return [status, body?.code]
}
const service = { subject: { type: 'service', id: 'admin' }, clientId: 'admin', organization: null } as const
const everything = { ...service, scopes: new Set(['directory:write']), audiences: ['https://id.example.test'] }

describe('management refuses', () => {
  test.each([
    ['no token', () => undefined, 401, 'token_missing'],
    ['an inactive token', () => 'unknown', 401, 'token_invalid'],
    [
      'a token for another audience',
      () => served.token({ ...everything, audiences: ['https://api.example.test'] }),
      401,
      'token_invalid',
    ],
    ['a token of a client that is gone', () => served.token({ ...everything, clientId: 'gone' }), 401, 'token_invalid'],
    [
      'a token that is bound to a DPoP key, without a proof',
      () => served.token({ ...everything, jkt: 'x' }),
      401,
      'proof_missing',
    ],
    ['a user', () => served.token({ ...everything, subject: { type: 'user', id: 'alice' } }), 403, 'permission_denied'],
    [
      'a token without the scope',
      () => served.token({ ...everything, scopes: new Set(['clients:write']) }),
      403,
      'scope_insufficient',
    ],
  ])('%s, before it reads the body', async (_, token, status, code) => {
    const found = token()
    const options = found === undefined ? {} : { token: found }
    expect(await call('PUT', '/v1/users/x', { ...options, raw: '{' })).toEqual([status, code])
  })

  test('a scope that the client no longer has, on the very next call of a token that names it', async () => {
    const former = await served.manager({ client: 'former', scopes: ['directory:write', 'clients:write'] })
    expect(await call('GET', '/v1/users', { token: former })).toEqual([200, undefined])
    const body = { grant_types: ['client_credentials'], scope: 'clients:write' }
    expect(await call('PUT', '/v1/clients/former', { token: admin, body })).toEqual([200, undefined])
    expect(await call('GET', '/v1/users', { token: former })).toEqual([403, 'scope_insufficient'])
    const gift = { grant_types: ['client_credentials'], scope: 'directory:write' }
    const given = await call('PUT', '/v1/clients/gift', { token: former, body: gift })
    expect(given).toEqual([403, 'permission_denied'])
  })

  test('a write by a scope for reading, which lists and shows what the scope for writing does', async () => {
    const reader = await served.manager({ client: 'reader', scopes: ['directory:read'] })
    expect(await call('GET', '/v1/users', { token: reader })).toEqual([200, undefined])
    expect(await call('GET', '/v1/organizations/acme/members', { token: reader })).toEqual([200, undefined])
    expect(await call('PUT', '/v1/users/x', { token: reader, body: {} })).toEqual([403, 'scope_insufficient'])
    expect(await call('DELETE', '/v1/organizations/other', { token: reader })).toEqual([403, 'scope_insufficient'])
    expect(await call('GET', '/v1/roles', { token: reader })).toEqual([403, 'scope_insufficient'])
  })

  test('lists of tuples to who may only write them', async () => {
    const writer = await served.manager({ client: 'tuple-writer', scopes: ['relationships:write'] })
    const listed = await call('GET', '/v1/organizations/acme/relationships', { token: writer })
    expect(listed).toEqual([403, 'scope_insufficient'])
  })

  test('a client that gives another the scope for writing where it may only read', async () => {
    const giver = await served.manager({ client: 'giver', scopes: ['directory:read', 'clients:write'] })
    const give = (scope: string) =>
      call('PUT', `/v1/clients/given-${scope.replace(':', '-')}`, {
        token: giver,
        body: { grant_types: ['client_credentials'], scope },
      })
    expect(await give('directory:write')).toEqual([403, 'permission_denied'])
    expect(await give('directory:read')).toEqual([201, undefined])
    const writer = await served.manager({ client: 'writing-giver', scopes: ['roles:write', 'clients:write'] })
    const body = { grant_types: ['client_credentials'], scope: 'roles:read' }
    expect(await call('PUT', '/v1/clients/given-roles', { token: writer, body })).toEqual([201, undefined])
  })

  test('a token that was revoked while the body was on its way', async () => {
    const slow = await served.manager({ client: 'slow' })
    const path = '/v1/organizations/acme/relationships'
    const text = JSON.stringify({ write: ['invoice:late#viewer@user:bob'] })
    const begun = served.asked.length
    const body = new ReadableStream<Uint8Array>({
      async start(pieces) {
        pieces.enqueue(Buffer.from(text.slice(0, 5)))
        while (!served.asked.slice(begun).includes(slow)) await new Promise((done) => setTimeout(done, 5))
        served.setState(slow, { active: false })
        pieces.enqueue(Buffer.from(text.slice(5)))
        pieces.close()
      },
    })
    const headers = { authorization: `Bearer ${slow}`, 'content-type': 'application/json' }
    const answer = await fetch(served.url + path, { method: 'POST', headers, body, duplex: 'half' })
    expect(answer.status).toBe(401)
    const found = await served.send('GET', `${path}?object=invoice:late`, { token: admin })
    expect(found.body.items).toEqual([])
  })

  test('with a challenge that names the missing scope', async () => {
    const token = served.token({ ...everything, scopes: new Set(['openid']) })
    const { headers } = await served.send('GET', '/v1/organizations/acme/relationships', { token })
    expect(headers.get('www-authenticate')).toBe('Bearer error="insufficient_scope", scope="relationships:read"')
  })
})

describe('a client that is bound to an organization', () => {
  test.each([
    ['GET', '/v1/organizations/acme'],
    ['GET', '/v1/organizations/acme-eu-fr'],
    ['GET', '/v1/organizations/acme/members'],
    ['GET', '/v1/organizations/acme-eu/relationships'],
    ['GET', '/v1/organizations/acme-eu/entitlements'],
  ])('may %s %s', async (method, path) => {
    expect(await call(method, path, { token: bound })).toEqual([200, undefined])
  })

  const role = { role: 'owner', status: 'active' }
  test.each([
    ['GET', '/v1/organizations/other', undefined],
    ['GET', '/v1/organizations/there-is-none', undefined],
    ['PUT', '/v1/organizations/other', { name: 'x' }],
    ['PUT', '/v1/organizations/other', { name: 'x', parent: 'acme' }],
    ['DELETE', '/v1/organizations/other', undefined],
    ['PUT', '/v1/organizations/new-root', { name: 'x' }],
    ['PUT', '/v1/organizations/new', { name: 'x', parent: 'other' }],
    ['PUT', '/v1/organizations/acme', { name: 'x', parent: 'acme-eu' }],
    ['PUT', '/v1/organizations/acme-eu', { name: 'x', parent: 'other' }],
    ['PUT', '/v1/organizations/acme-eu', { name: 'x' }],
    ['PUT', '/v1/organizations/other/members/alice', role],
    ['DELETE', '/v1/organizations/other/members/alice', undefined],
    ['GET', '/v1/organizations/other/members', undefined],
    ['POST', '/v1/organizations/other/relationships', { write: ['a:1#b@user:c'] }],
    ['GET', '/v1/organizations/other/relationships', undefined],
    ['PUT', '/v1/organizations/other/entitlements/a', { value: true }],
    ['GET', '/v1/organizations/other/entitlements', undefined],
    ['GET', '/v1/users', undefined],
    ['GET', '/v1/users/alice', undefined],
    ['PUT', '/v1/users/eve', {}],
    ['DELETE', '/v1/users/alice', undefined],
    ['GET', '/v1/apps/x/manifest', undefined],
    ['PUT', '/v1/apps/x/manifest', {}],
    ['PUT', '/v1/clients/new', { grant_types: ['client_credentials'] }],
    ['PUT', '/v1/clients/new', { grant_types: ['client_credentials'], organization: 'other' }],
    ['PUT', '/v1/clients/admin', { grant_types: ['client_credentials'], organization: 'acme' }],
    ['DELETE', '/v1/clients/acme-admin-of-other', undefined],
  ])('may not %s %s', async (method, path, body) => {
    await served.directory.putClient(
      { id: 'acme-admin-of-other', app: null, organization: 'other', metadata: {} },
      CONTEXT,
    )
    const [status] = await call(method, path, { token: bound, ...(body === undefined ? {} : { body }) })
    expect(path.includes('of-other') ? 404 : 403).toBe(status)
  })

  test('may create, rename and move organizations below its own, and rename its own', async () => {
    const put = (org: string, body: object) => call('PUT', `/v1/organizations/${org}`, { token: bound, body })
    expect(await put('acme~us', { name: 'US', parent: 'acme' })).toEqual([201, undefined])
    expect(await put('acme~us', { name: 'USA', parent: 'acme-eu' })).toEqual([200, undefined])
    expect(await put('acme', { name: 'Acme Inc.' })).toEqual([200, undefined])
  })

  test('sees only what it manages in lists', async () => {
    const ids = async (token: string) =>
      (await served.send('GET', '/v1/organizations', { token })).body.items.map(({ id }: { id: string }) => id)
    expect(await ids(bound)).toEqual(['acme', 'acme-eu', 'acme-eu-fr', 'acme~us'])
    expect(await ids(admin)).toContain('other')
    const { body } = await served.send('GET', '/v1/clients', { token: bound })
    expect(body.items.map(({ client_id }: { client_id: string }) => client_id)).toEqual(['acme-admin'])
  })

  test('stays within its organization when only the token, or only the client, is bound', async () => {
    const token = served.token({ ...everything, organization: 'acme' })
    expect(await call('GET', '/v1/organizations/other', { token })).toEqual([403, 'permission_denied'])
    const late = served.token({ ...everything, clientId: 'acme-admin' })
    expect(await call('GET', '/v1/organizations/other', { token: late })).toEqual([403, 'permission_denied'])
    expect(await call('GET', '/v1/organizations/acme', { token: late })).toEqual([200, undefined])
  })
})

describe('nobody gives a scope that they do not hold', () => {
  const put = (id: string, token: string, scope: string) =>
    call('PUT', `/v1/clients/${id}`, { token, body: { grant_types: ['client_credentials'], scope } })

  test('to a new client', async () => {
    const weak = await served.manager({ client: 'weak', scopes: ['clients:write'] })
    expect(await put('w1', weak, 'clients:write openid invoices.read')).toEqual([201, undefined])
    expect(await put('w2', weak, 'directory:write')).toEqual([403, 'permission_denied'])
  })

  test('nor takes over a client that holds more', async () => {
    const weak = await served.manager({ client: 'weak', scopes: ['clients:write'] })
    expect(await put('strong', admin, 'directory:write')).toEqual([201, undefined])
    expect(await put('strong', weak, 'clients:write')).toEqual([403, 'permission_denied'])
    expect(await call('DELETE', '/v1/clients/strong', { token: weak })).toEqual([403, 'permission_denied'])
  })
})

test('writes who did what, under which request, into the log', async () => {
  const headers = { 'x-request-id': 'request-0001' }
  const path = '/v1/organizations/acme/entitlements/feature.audit'
  await served.send('PUT', path, { token: admin, body: { value: true }, headers })
  const { logs } = await served.store.vector(['acme'])
  const to = logs.get('acme')?.revision ?? 0
  const entries = await served.store.entries([{ log: 'acme', from: to - 1, to }], 10)
  expect(entries.filter(({ revision }) => revision === to)).toMatchObject([
    { actor: 'service:admin', requestId: 'request-0001', change: { kind: 'entitlement', key: 'feature.audit' } },
  ])
})

describe('a client of a tenant that registers others', () => {
  let registrar: string
  const nameIn = (id: string): string => (id.startsWith('acme~') ? id : `acme~${id}`)
  const put = (id: string, scope = '', token = registrar) =>
    call('PUT', `/v1/clients/${nameIn(id)}`, {
      token,
      body: {
        grant_types: ['client_credentials'],
        organization: 'acme',
        client_secret: 'a-secret-from-outside',
        ...(scope === '' ? {} : { scope }),
      },
    })
  const write = (log: string, changes: Parameters<Served['store']['write']>[1]) =>
    served.store.write(log, changes, { context: CONTEXT })
  const grant = (log: string, id: string, subject: string, app: string | null = 'ledger') =>
    write(log, [
      { kind: 'role_grant', op: 'write', grant: { id, app, role: app === null ? 'auditor' : 'clerk', subject } },
    ])
  beforeAll(async () => {
    const scopes = ['clients:write', 'ledger:read']
    registrar = await served.manager({ client: 'registrar', organization: 'acme', scopes })
    const roles = { clerk: { name: 'Clerk', permissions: ['ledger:book'] } }
    const manifest = { app: 'ledger', audiences: [], permissions: { 'ledger:book': 'Book' }, roles, model: null }
    await write(ENVIRONMENT, [
      { kind: 'manifest', manifest },
      { kind: 'role', key: 'auditor', role: { key: 'auditor', name: 'Auditor', permissions: ['logs:read'] } },
    ])
  })

  test('gives the scopes of APIs that it is registered for itself, and no others', async () => {
    expect(await put('reader', 'ledger:read openid offline_access')).toEqual([201, undefined])
    expect(await put('writer', 'ledger:read ledger:write')).toEqual([403, 'permission_denied'])
  })

  test.each([
    ['an app’s role in its organization', (id: string) => grant('acme', `a-${id}`, `service:${id}`)],
    ['an organization-wide role', (id: string) => grant('acme', `b-${id}`, `service:${id}`, null)],
    ['a role below', (id: string) => grant('acme-eu-fr', `c-${id}`, `service:${id}`)],
    ['a role everywhere', (id: string) => grant(ENVIRONMENT, `d-${id}`, `service:${id}`)],
    [
      'a role by way of a group',
      async (id: string) => {
        await grant('acme', `e-${id}`, `group:${id}`)
        const tuple = { object: `group:${id}`, relation: 'member', subject: `service:${id}`, expiresAtMs: null }
        await write('acme', [{ kind: 'tuple', op: 'write', tuple }])
      },
    ],
    [
      'a relationship below',
      (id: string) => {
        const tuple = { object: 'invoice:1', relation: 'viewer', subject: `service:${id}`, expiresAtMs: null }
        return write('acme-eu', [{ kind: 'tuple', op: 'write', tuple }])
      },
    ],
  ])('does not take over a service that holds %s', async (what, give) => {
    const id = `acme~held-${what.length}`
    expect(await put(id)).toEqual([201, undefined])
    expect(await put(id)).toEqual([200, undefined])
    await give(id)
    expect(await put(id)).toEqual([403, 'permission_denied'])
    expect(await call('DELETE', `/v1/clients/${id}`, { token: registrar })).toEqual([403, 'permission_denied'])
    expect(await put(id, '', admin)).toEqual([200, undefined])
  })

  test('does not take an id that relationships wait for', async () => {
    const tuple = { object: 'invoice:1', relation: 'viewer', subject: 'service:acme~awaited', expiresAtMs: null }
    await write('acme', [{ kind: 'tuple', op: 'write', tuple }])
    expect(await put('awaited')).toEqual([403, 'permission_denied'])
  })

  test('may manage a service that holds what it holds itself', async () => {
    const scopes = ['clients:write', 'relationships:write']
    const peer = await served.manager({ client: 'peer', organization: 'acme', scopes })
    expect(await put('colleague', '', peer)).toEqual([201, undefined])
    await grant('acme', 'f1', 'service:acme~colleague')
    const tuple = { object: 'invoice:1', relation: 'viewer', subject: 'service:acme~colleague', expiresAtMs: null }
    await write('acme', [{ kind: 'tuple', op: 'write', tuple }])
    expect(await put('colleague', '', peer)).toEqual([403, 'permission_denied'])
    await grant('acme', 'f2', 'service:peer')
    expect(await put('colleague', '', peer)).toEqual([200, undefined])
  })
})

describe('the last client that may register others for the environment', () => {
  const put = (body: object) => call('PUT', '/v1/clients/admin', { token: admin, body })
  const whole = { grant_types: ['client_credentials'], scope: SERVICE_SCOPES.join(' ') }

  test('is not deleted, and does not lose what makes it one', async () => {
    const others = await served.sql.query<{ id: string }>(
      `select client_id as id from client where client_id <> 'admin' and organization_id is null`,
    )
    for (const { id } of others) await served.directory.deleteClient(id, CONTEXT)
    for (const body of [
      { ...whole, scope: whole.scope.replace('clients:write', '').replaceAll('  ', ' ').trim() },
      { ...whole, organization: 'acme' },
      { grant_types: ['authorization_code'], redirect_uris: ['https://a.example/cb'], scope: whole.scope },
    ]) {
      expect(await put(body)).toEqual([409, 'conflict'])
    }
    expect(await call('DELETE', '/v1/clients/admin', { token: admin })).toEqual([409, 'conflict'])
    expect(await put(whole)).toEqual([200, undefined])
  })

  test('is left when two of them give up their charge at the same time', async () => {
    const second = await served.manager({ client: 'second' })
    const less = { ...whole, scope: 'directory:write' }
    const answers = await Promise.all([put(less), call('PUT', '/v1/clients/second', { token: second, body: less })])
    expect(answers.map(([status]) => status).toSorted()).toEqual([200, 409])
  })
})
