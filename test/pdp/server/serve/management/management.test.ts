/** The management calls by themselves: what they take, answer and refuse. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { verifySecret } from '../../../../../pdp/identity/people/passwords/password-hash.ts'
import { type Json, type Served, serve } from '../harness.ts'

let served: Served
let token: string
beforeAll(async () => {
  served = await serve()
  token = await served.manager()
})
afterAll(() => served.close())

const send = async (method: string, path: string, body?: unknown) => {
  const answer = await served.send(method, path, { token, ...(body === undefined ? {} : { body }) })
  return [answer.status, answer.body] as const
}
const places = ([status, body]: readonly [number, Json]) => [
  status,
  ...(body.errors ?? []).map((issue: Json) => issue.pointer ?? issue.parameter),
]
const code = ([status, body]: readonly [number, Json]) => [status, body?.code]

describe('organizations', () => {
  test('are created, read, changed and deleted', async () => {
    expect(await send('PUT', '/v1/organizations/acme', { name: 'Acme' })).toEqual([
      201,
      { id: 'acme', name: 'Acme', parent: null },
    ])
    expect(await send('PUT', '/v1/organizations/child', { name: 'Child', parent: 'acme' })).toMatchObject([
      201,
      { parent: 'acme' },
    ])
    expect(await send('PUT', '/v1/organizations/acme', { name: 'Acme Inc.' })).toMatchObject([
      200,
      { name: 'Acme Inc.' },
    ])
    expect(await send('GET', '/v1/organizations/acme')).toEqual([200, { id: 'acme', name: 'Acme Inc.', parent: null }])
    expect(await send('DELETE', '/v1/organizations/child')).toEqual([204, null])
    expect(code(await send('GET', '/v1/organizations/child'))).toEqual([404, 'organization_unknown'])
    expect(code(await send('DELETE', '/v1/organizations/child'))).toEqual([404, 'organization_unknown'])
  })

  test('take any id that is allowed, percent-encoded', async () => {
    const id = encodeURIComponent('@scope/pkg?x&y=1%')
    expect(await send('PUT', `/v1/organizations/${id}`, { name: 'x' })).toMatchObject([
      201,
      { id: '@scope/pkg?x&y=1%' },
    ])
    const longest = 'x'.repeat(256)
    expect(await send('PUT', `/v1/organizations/${longest}`, { name: 'x' })).toMatchObject([201, { id: longest }])
  })

  test.each([
    ['an unknown parent', 'x1', { name: 'x', parent: 'none' }, 404],
    ['a cycle', 'acme', { name: 'x', parent: 'acme' }, 409],
  ])('refuse %s', async (_, id, body, status) => {
    expect((await send('PUT', `/v1/organizations/${id}`, body))[0]).toBe(status)
  })

  test.each([
    ['an id that is too long', 'x'.repeat(257), { name: 'x' }, ['org']],
    ['an id with a hash', 'a%23b', { name: 'x' }, ['org']],
    ['a wildcard as id', '*', { name: 'x' }, ['org']],
    ['an id that is not ASCII', '%C3%A9', { name: 'x' }, ['org']],
    ['no name and a member that it does not know', 'x', { nme: 'x' }, ['/name', '/nme']],
    ['a name with a control character', 'x', { name: 'a\u0000b' }, ['/name']],
    ['an empty name and a parent that is no id', 'x', { name: '', parent: '*' }, ['/name', '/parent']],
    ['a list', 'x', [], ['']],
    ['a null parent', 'x', { name: 'x', parent: null }, ['/parent']],
  ])('refuse %s', async (_, id, body, pointers) => {
    expect(places(await send('PUT', `/v1/organizations/${id}`, body))).toEqual([400, ...pointers])
  })
})

describe('users and members', () => {
  test('are created, changed, listed and deleted, never showing a password', async () => {
    const user = { email: 'ann@acme.test', email_verified: true, name: 'Ann' }
    expect(await send('PUT', '/v1/users/ann', { ...user, password: 'correct horse' })).toEqual([
      201,
      { id: 'ann', ...user },
    ])
    const stored = await served.directory.userByEmail('ANN@acme.test')
    expect(await verifySecret('correct horse', stored?.passwordHash ?? '')).toBe(true)
    expect(await send('PUT', '/v1/users/ann', user)).toEqual([200, { id: 'ann', ...user }])
    expect((await served.directory.userByEmail('ann@acme.test'))?.passwordHash).toBe(stored?.passwordHash)
    expect(await send('PUT', '/v1/organizations/acme/members/ann', { role: 'owner', status: 'active' })).toEqual([
      201,
      { user: 'ann', role: 'owner', status: 'active' },
    ])
    expect(
      await send('PUT', '/v1/organizations/acme/members/ann', { role: 'viewer', status: 'invited' }),
    ).toMatchObject([200, { role: 'viewer' }])
    expect(await send('GET', '/v1/organizations/acme/members')).toMatchObject([
      200,
      { items: [{ user: 'ann' }], next_page_token: null },
    ])
    expect(await send('DELETE', '/v1/users/ann')).toEqual([204, null])
    expect(await send('GET', '/v1/organizations/acme/members')).toMatchObject([200, { items: [] }])
    expect(code(await send('PUT', '/v1/users/ann', user))).toEqual([409, 'conflict'])
  })

  test('keep ids of users and clients apart, and e-mail addresses unique', async () => {
    await send('PUT', '/v1/users/bo', { email: 'bo@acme.test' })
    expect(code(await send('PUT', '/v1/users/cy', { email: 'BO@acme.test' }))).toEqual([409, 'conflict'])
    expect(code(await send('PUT', '/v1/clients/bo', { grant_types: ['client_credentials'] }))).toEqual([
      409,
      'conflict',
    ])
    expect(code(await send('PUT', '/v1/users/admin', {}))).toEqual([409, 'conflict'])
  })

  test.each([
    ['a verified address that is not there', { email_verified: true }, ['/email_verified']],
    [
      'an address without @, a short password, a number for a name',
      { email: 'x', password: '1234567', name: 1 },
      ['/email', '/password', '/name'],
    ],
    ['a password that is too long', { password: 'x'.repeat(257) }, ['/password']],
  ])('refuse %s', async (_, body, pointers) => {
    const [status, ...found] = places(await send('PUT', '/v1/users/dan', body))
    expect([status, found.toSorted()]).toEqual([400, pointers.toSorted()])
  })

  test('refuse a member who is no user, or of an unknown tier', async () => {
    const path = '/v1/organizations/acme/members/nobody'
    expect(code(await send('PUT', path, { role: 'viewer', status: 'active' }))).toEqual([404, 'not_found'])
    expect(places(await send('PUT', path, { role: 'root', status: 'on' }))).toEqual([400, '/role', '/status'])
    expect(code(await send('DELETE', path))).toEqual([404, 'not_found'])
    expect(code(await send('DELETE', '/v1/users/nobody'))).toEqual([404, 'not_found'])
    expect(code(await send('GET', '/v1/users/nobody'))).toEqual([404, 'not_found'])
  })
})

describe('entitlements', () => {
  const path = '/v1/organizations/acme/entitlements'

  test('are pushed, each write raising the version, and taken away', async () => {
    expect(await send('PUT', `${path}/feature.x`, { value: true })).toEqual([
      201,
      { key: 'feature.x', value: { enabled: true }, enforcement: 'DecisionApi', version: 1 },
    ])
    expect(await send('PUT', `${path}/seats`, { value: { limit: 5 }, enforcement: 'Claims' })).toMatchObject([
      201,
      { version: 2 },
    ])
    expect(await send('GET', `${path}/feature.x`)).toMatchObject([200, { value: { enabled: true }, version: 2 }])
    expect((await send('GET', `${path}?page_size=1`))[1]).toMatchObject({ items: [{ key: 'feature.x' }] })
    expect(await send('DELETE', `${path}/seats`)).toEqual([204, null])
    expect(code(await send('DELETE', `${path}/seats`))).toEqual([404, 'not_found'])
    expect(code(await send('GET', `${path}/seats`))).toEqual([404, 'not_found'])
  })

  const deep = (levels: number): unknown => (levels === 0 ? {} : { a: deep(levels - 1) })
  test.each([
    ['no value', {}, ['/value']],
    ['a value that is text', { value: 'yes' }, ['/value']],
    ['an unknown enforcement', { value: true, enforcement: 'Maybe' }, ['/enforcement']],
    ['NUL in a value', { value: { a: 'x\u0000' } }, ['/value/a']],
    ['half a surrogate pair in a name', { value: { '\ud800': 1 } }, ['/value']],
    ['a value that nests too deep', { value: deep(40) }, ['/value']],
  ])('refuse %s', async (_, body, pointers) => {
    expect(places(await send('PUT', `${path}/feature.y`, body))).toEqual([400, ...pointers])
  })

  test('refuse a key of another form', async () => {
    expect(places(await send('PUT', `${path}/Feature`, { value: true }))).toEqual([400, 'key'])
  })
})

describe('clients', () => {
  const service = { grant_types: ['client_credentials'], scope: 'decisions:read' }

  test('get a generated secret once, and keep it until another is set', async () => {
    const [status, created] = await send('PUT', '/v1/clients/backend', {
      ...service,
      organization: 'acme',
      client_name: 'Back end',
    })
    expect([status, created.organization]).toEqual([201, 'acme'])
    expect(created.client_secret).toMatch(/^[A-Za-z0-9_-]{43}$/)
    const hash = async () => (await served.directory.client('backend'))?.secretHash ?? ''
    expect(await verifySecret(created.client_secret, await hash())).toBe(true)
    const [, again] = await send('PUT', '/v1/clients/backend', { ...service, organization: 'acme' })
    expect(again).toEqual({ client_id: 'backend', app: null, organization: 'acme', ...service })
    expect(await verifySecret(created.client_secret, await hash())).toBe(true)
    const [, own] = await send('PUT', '/v1/clients/backend', { ...service, client_secret: 'a-secret-of-my-own' })
    expect(own).not.toHaveProperty('client_secret')
    expect(await verifySecret('a-secret-of-my-own', await hash())).toBe(true)
    expect((await send('GET', '/v1/clients/backend'))[1]).toEqual({
      client_id: 'backend',
      app: null,
      organization: null,
      ...service,
    })
  })

  test('that are public have none', async () => {
    const body = {
      redirect_uris: ['http://127.0.0.1:8000/callback', 'com.example.app:/callback'],
      token_endpoint_auth_method: 'none',
    }
    expect(await send('PUT', '/v1/clients/spa', body)).toMatchObject([201, body])
    expect((await served.directory.client('spa'))?.secretHash).toBeNull()
  })

  test('are deleted for good', async () => {
    expect(await send('DELETE', '/v1/clients/spa')).toEqual([204, null])
    expect(code(await send('DELETE', '/v1/clients/spa'))).toEqual([404, 'not_found'])
    expect(code(await send('PUT', '/v1/clients/spa', service))).toEqual([409, 'conflict'])
  })

  test('stays while it is the last that may register others', async () => {
    expect(code(await send('DELETE', '/v1/clients/admin'))).toEqual([409, 'conflict'])
  })

  test.each([
    ['an unknown organization', { ...service, organization: 'none' }, 404],
    ['no redirect URI for the code flow', {}, 400],
    ['a fragment', { redirect_uris: ['https://a.test/#x'] }, 400],
    ['plain http', { redirect_uris: ['http://a.test/cb'] }, 400],
    ['a script', { redirect_uris: ['javascript:alert(1)'] }, 400],
    ['a relative URI', { redirect_uris: ['/cb'] }, 400],
    ['a password in a URI', { redirect_uris: ['https://a:b@a.test/'] }, 400],
    [
      'a secret for a public client',
      { redirect_uris: ['https://a.test/'], token_endpoint_auth_method: 'none', client_secret: 'x'.repeat(16) },
      400,
    ],
    ['client_credentials for a public client', { ...service, token_endpoint_auth_method: 'none' }, 400],
    ['a short secret', { ...service, client_secret: 'short' }, 400],
    ['an unknown grant', { grant_types: ['password'] }, 400],
    ['a scope of forbidden characters', { ...service, scope: 'a"b' }, 400],
    ['a member that it does not know', { ...service, sector_identifier_uri: 'https://a.test/' }, 400],
  ])('are refused with %s', async (_, body, status) => {
    expect((await send('PUT', '/v1/clients/bad', body))[0]).toBe(status)
    expect(await served.directory.client('bad')).toBeNull()
  })
})

describe('manifests', () => {
  const manifest = {
    audiences: ['https://invoices.example.test'],
    permissions: { 'invoices:approve': 'Approve invoices' },
    roles: { approver: { name: 'Approver', permissions: ['invoices:approve'] } },
  }
  test('are versioned, and own their audiences', async () => {
    expect(await send('PUT', '/v1/apps/invoices/manifest', manifest)).toMatchObject([
      201,
      { app: 'invoices', version: 1, ...manifest },
    ])
    expect(await send('PUT', '/v1/apps/invoices/manifest', manifest)).toMatchObject([200, { version: 1 }])
    expect(await send('PUT', '/v1/apps/invoices/manifest', { ...manifest, roles: {} })).toMatchObject([
      200,
      { version: 2 },
    ])
    expect(await send('GET', '/v1/apps/invoices/manifest')).toMatchObject([200, { version: 2, roles: {} }])
    expect(code(await send('PUT', '/v1/apps/other/manifest', manifest))).toEqual([409, 'conflict'])
    expect(code(await send('GET', '/v1/apps/other/manifest'))).toEqual([404, 'not_found'])
  })

  test('are refused with every mistake and its place', async () => {
    const body = { audiences: ['x', 'https://a.test/#f'], roles: { r: { name: 'R', permissions: ['a:b'] } } }
    expect(places(await send('PUT', '/v1/apps/bad/manifest', body))).toEqual([
      400,
      '/audiences/0',
      '/audiences/1',
      '/roles/r/permissions/0',
    ])
  })

  test('name the key that is no key, and what other apps own', async () => {
    const named = { permissions: { 'Bad Key': 'x' }, roles: { R: { name: 'R', permissions: [] } } }
    expect(places(await send('PUT', '/v1/apps/bad/manifest', named))).toEqual([400, '/permissions/Bad Key', '/roles/R'])
    const taken = { audiences: ['https://free.example.test', ...manifest.audiences] }
    expect(places(await send('PUT', '/v1/apps/bad/manifest', taken))).toEqual([409, '/audiences/1'])
  })
})

test('says what a text has to be in words, and names a member that is there twice', async () => {
  const details = ([, body]: readonly [number, Json]) => body.errors.map((issue: Json) => issue.detail)
  expect(details(await send('PUT', '/v1/organizations/x', { name: '' }))).toEqual([
    'must be 1 to 256 characters, none of them a control character',
  ])
  expect(details(await send('PUT', '/v1/organizations/*', { name: 'x' }))).toEqual([
    'must be 1 to 256 visible ASCII characters, without #, and not the single character *',
  ])
  expect(details(await send('GET', '/v1/organizations?page_size=0'))).toEqual(['must be a whole number from 1 to 1000'])
  const twice = await served.send('PUT', '/v1/organizations/x', { token, raw: '{"name":"a","name":"b"}' })
  expect([twice.status, twice.body.errors]).toEqual([400, [{ pointer: '/name', detail: 'occurs more than once' }]])
})
