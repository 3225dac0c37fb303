/** A company's directory over SCIM: what it brings, changes and takes away, and what of others it never sees or touches. */
import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { ENVIRONMENT, TOKENS } from '../../../../pdp/domain/log.ts'
import { createIsSignedIn } from '../../../../pdp/identity/sign-in/sign-in-validity.ts'
import { CONTEXT, type Json, type SendOptions, type Served, seedAcme, serve } from '../harness.ts'

let served: Served
/** Bound to acme, with nothing but the scope scim. */
let directory: string
let other: string
let name: string
beforeAll(async () => {
  served = await serve()
  await seedAcme(served)
  for (const [id, parent] of [
    ['beta', null],
    ['acme-eu', 'acme'],
  ] as const)
    await served.store.write(ENVIRONMENT, [{ kind: 'organization', id, organization: { id, name: id, parent } }], {
      context: CONTEXT,
    })
  await served.store.write(
    ENVIRONMENT,
    [{ kind: 'role', key: 'auditor', role: { key: 'auditor', name: 'Auditor', permissions: ['logs:read'] } }],
    { context: CONTEXT },
  )
  directory = await served.manager({ client: 'acme-directory', organization: 'acme', scopes: ['scim'] })
  other = await served.manager({ client: 'beta-directory', organization: 'beta', scopes: ['scim'] })
})
afterAll(() => served.close())
beforeEach(() => {
  name = `p-${randomUUID()}`
})

const TYPE = { 'content-type': 'application/scim+json' }
type Options = SendOptions & { as?: string }
const send = (method: string, path: string, { as = directory, headers, ...options }: Options = {}) =>
  served.send(method, `/scim/v2${path}`, {
    token: as,
    headers: { ...(options.body === undefined ? {} : TYPE), ...headers },
    ...options,
  })
const at = (kind: 'Users' | 'Groups', id: string): string => `/${kind}/${encodeURIComponent(id)}`
async function create(kind: 'Users' | 'Groups', body: object, as = directory): Promise<Json> {
  const answer = await send('POST', `/${kind}`, { as, body })
  expect([answer.status, answer.body.detail]).toEqual([201, undefined])
  return answer.body
}
const user = (more: object = {}, as = directory): Promise<Json> =>
  create('Users', { userName: `${name}@x.test`, name: { givenName: 'Ann', familyName: 'Lee' }, ...more }, as)
const group = (more: object = {}, as = directory): Promise<Json> => create('Groups', { displayName: name, ...more }, as)
const patch = (path: string, ...operations: readonly object[]) =>
  send('PATCH', path, { body: { Operations: operations } })
const find = async (kind: 'Users' | 'Groups', query: string, as = directory): Promise<Json> =>
  (await send('GET', `/${kind}?${query}`, { as })).body
const membership = async (id: string, org = 'acme') => {
  const { rows } = await served.store.rows([org], [{ log: org, kind: 'membership', user: id }])
  return rows.map((row) => ('membership' in row ? row.membership : null))[0]
}
const held = async (id: string) =>
  (await served.pdp.held({ organization: 'acme', subject: { type: 'user', id }, app: null })).permissions
const mayActSince = (id: string, seconds: number) => createIsSignedIn(served.sql)(id, seconds)

describe('a user', () => {
  test('becomes an account and an active member, and is shown with its address and version', async () => {
    const answer = await send('POST', '/Users', {
      body: {
        schemas: ['x'],
        userName: `${name}@x.test`,
        externalId: 'e1',
        displayName: 'Ann Lee',
        password: 'ignored',
        active: true,
      },
    })
    const { id, meta } = answer.body
    expect(answer.headers.get('content-type')).toBe('application/scim+json; charset=utf-8')
    expect(answer.headers.get('location')).toBe(meta.location)
    expect(answer.headers.get('etag')).toBe(meta.version)
    expect(answer.body).toMatchObject({
      schemas: ['urn:ietf:params:scim:schemas:core:2.0:User'],
      userName: `${name}@x.test`,
      externalId: 'e1',
      active: true,
      roles: [{ value: 'member' }],
      meta: { resourceType: 'User', location: `https://id.example.test/scim/v2/Users/${encodeURIComponent(id)}` },
    })
    expect(JSON.stringify(answer.body)).not.toContain('ignored')
    expect(id).toMatch(/^acme~/)
    // A directory's word does not verify an address.
    expect(await served.directory.user(id)).toEqual({
      id,
      email: `${name}@x.test`,
      emailVerified: false,
      name: 'Ann Lee',
    })
    expect(await membership(id)).toEqual({ role: 'member', status: 'active' })
    expect((await send('GET', at('Users', id))).body).toEqual(answer.body)
  })

  test('may come inactive, in another tier, with an address of its own', async () => {
    const { id } = await user({
      active: 'False',
      roles: [{ value: 'Developer' }],
      userName: name,
      emails: [{ value: 'x@y.test' }, { value: `${name}@z.test`, primary: true }],
    })
    expect(await membership(id)).toEqual({ role: 'developer', status: 'suspended' })
    expect(await served.directory.user(id)).toMatchObject({ email: `${name}@z.test`, name: 'Ann Lee' })
  })

  test.each([
    [{ userName: 'taken@acme.test', emails: [{ value: 'alice@acme.test' }] }, 409, 'uniqueness'],
    [{ userName: 'ALICE@acme.test' }, 409, 'uniqueness'],
    [{ userName: 'a', emails: [{ value: 'no address' }] }, 400, 'invalidValue'],
    [{ userName: 'a', roles: [{ value: 'owner' }] }, 400, 'invalidValue'],
    [{ userName: 'a', roles: [{ value: 'king' }] }, 400, 'invalidValue'],
    [{ userName: 'a', roles: [{ value: 'admin' }, { value: 'viewer' }] }, 400, 'invalidValue'],
    [{ displayName: 'no user name' }, 400, 'invalidValue'],
    [[], 400, 'invalidSyntax'],
  ])('as %j is refused', async (body, status, scimType) => {
    const answer = await send('POST', '/Users', { body })
    expect([answer.status, answer.body]).toEqual([
      status,
      {
        schemas: ['urn:ietf:params:scim:api:messages:2.0:Error'],
        status: String(status),
        scimType,
        detail: expect.any(String),
      },
    ])
  })

  test('is there once: the same user name is a conflict, and nothing of the second is left', async () => {
    await user()
    const before = (await find('Users', 'count=0')).totalResults
    const second = await send('POST', '/Users', {
      body: { userName: `${name.toUpperCase()}@X.test`, emails: [{ value: `${name}@other.test` }] },
    })
    expect([second.status, second.body.scimType]).toEqual([409, 'uniqueness'])
    expect((await find('Users', 'count=0')).totalResults).toBe(before)
    expect(await served.directory.userByEmail(`${name}@other.test`)).toBe(null)
  })

  test('is replaced by PUT; what it does not say about active and roles stays', async () => {
    const { id } = await user({ active: false, title: 'Chief', roles: [{ value: 'admin' }] })
    const { status, body } = await send('PUT', at('Users', id), {
      body: { userName: `${name}-2@x.test`, displayName: 'New' },
    })
    expect([status, body.active, body.title, body.roles]).toEqual([
      200,
      false,
      undefined,
      [{ value: 'admin', primary: true }],
    ])
    expect(await served.directory.user(id)).toMatchObject({ email: `${name}-2@x.test`, name: 'New' })
  })

  test('gets the role that Entra ID adds beside the former one', async () => {
    const { id } = await user()
    await patch(at('Users', id), { op: 'Add', path: 'roles', value: [{ value: 'admin' }] })
    expect(await membership(id)).toEqual({ role: 'admin', status: 'active' })
    await patch(at('Users', id), { op: 'Replace', path: 'roles[primary eq "True"].value', value: 'viewer' })
    expect((await membership(id))?.role).toBe('viewer')
  })

  test('keeps the address that the operator gave it when the directory changes something else', async () => {
    const { id } = await user()
    await served.directory.putUser(
      { id, email: `${name}@operator.test`, emailVerified: true, name: 'Operator' },
      CONTEXT,
    )
    expect((await patch(at('Users', id), { op: 'replace', path: 'title', value: 'Chief' })).status).toBe(200)
    expect(await served.directory.user(id)).toMatchObject({ email: `${name}@operator.test`, emailVerified: true })
  })

  test('whose address another user has stays as it was', async () => {
    const { id } = await user()
    const { status, body } = await patch(
      at('Users', id),
      { op: 'replace', path: 'title', value: 'X' },
      { op: 'replace', path: 'userName', value: 'alice@acme.test' },
    )
    expect([status, body.scimType]).toEqual([409, 'uniqueness'])
    expect((await send('GET', at('Users', id))).body).toMatchObject({ userName: `${name}@x.test` })
    expect((await send('GET', at('Users', id))).body.title).toBe(undefined)
  })
})

describe('who is deactivated', () => {
  test.each([
    ['Okta', { op: 'replace', value: { active: false } }],
    ['Entra ID', { op: 'Replace', path: 'active', value: 'False' }],
  ])(
    'by %s is signed out for good, in the same write, and comes back with the next sign-in',
    async (_name, operation) => {
      const { id } = await user()
      const now = Math.floor(Date.now() / 1_000)
      expect(await mayActSince(id, now + 60)).toBe(true)
      const before = (await served.store.vector([TOKENS])).logs.get(TOKENS)?.revision
      expect((await patch(at('Users', id), operation)).body.active).toBe(false)
      expect(await membership(id)).toMatchObject({ status: 'suspended' })
      expect(await mayActSince(id, now + 1_000_000)).toBe(false)
      await served.sessions.revokeUser(id, CONTEXT)
      expect(await mayActSince(id, now + 1_000_000)).toBe(false)
      expect(
        (
          await served.sql.query(
            "select 1 from (select type, payload from outbox union all select type, payload from outbox_arrival) events where type = 'user.signed_out' and payload ->> 'user' = $1",
            [id],
          )
        ).length,
      ).toBe(2)
      expect(before).toEqual(expect.any(Number))

      expect((await patch(at('Users', id), { op: 'replace', path: 'active', value: true })).body.active).toBe(true)
      expect(await mayActSince(id, now - 60)).toBe(false)
      expect(await mayActSince(id, now + 60)).toBe(true)
    },
  )

  test('cannot sign in with a password, which comes back with them', async () => {
    const { id } = await user()
    await served.directory.putUser(
      { id, email: `${name}@x.test`, emailVerified: false, name: null, passwordHash: '$scrypt$x' },
      CONTEXT,
    )
    await patch(at('Users', id), { op: 'replace', path: 'active', value: false })
    expect((await served.directory.userByEmail(`${name}@x.test`))?.passwordHash).toBe(null)
    await patch(at('Users', id), { op: 'replace', path: 'active', value: true })
    expect((await served.directory.userByEmail(`${name}@x.test`))?.passwordHash).toBe('$scrypt$x')
  })

  test('and is a member of an organization below is signed out as well', async () => {
    const { id } = await user()
    await served.store.write(
      'acme-eu',
      [{ kind: 'membership', user: id, membership: { role: 'member', status: 'active' } }],
      { context: CONTEXT },
    )
    await patch(at('Users', id), { op: 'replace', path: 'active', value: false })
    expect(await mayActSince(id, Date.now() / 1_000 + 60)).toBe(false)
  })
})

describe('a user who also belongs elsewhere', () => {
  async function shared(): Promise<string> {
    const { id } = await user()
    await served.store.write(
      'beta',
      [{ kind: 'membership', user: id, membership: { role: 'member', status: 'active' } }],
      { context: CONTEXT },
    )
    return id
  }

  test('loses what they have here, and keeps their sign-in', async () => {
    const id = await shared()
    await patch(at('Users', id), { op: 'replace', path: 'active', value: false })
    expect(await membership(id)).toMatchObject({ status: 'suspended' })
    expect(await mayActSince(id, Date.now() / 1_000)).toBe(true)
    expect((await send('DELETE', at('Users', id))).status).toBe(204)
    expect([await membership(id), await membership(id, 'beta')]).toEqual([null, { role: 'member', status: 'active' }])
    expect(await served.directory.user(id)).toMatchObject({ id })
  })

  test('gets no other address from this directory, by any spelling', async () => {
    const id = await shared()
    for (const value of [{ userName: `${name}-evil@x.test` }, { emails: [{ value: `${name}-evil@x.test` }] }]) {
      const answer = await patch(at('Users', id), { op: 'replace', value })
      expect([answer.status, answer.body.scimType]).toEqual([403, undefined])
    }
    expect((await send('PUT', at('Users', id), { body: { userName: `${name}-evil@x.test` } })).status).toBe(403)
    expect(await served.directory.user(id)).toMatchObject({ email: `${name}@x.test` })
    expect((await patch(at('Users', id), { op: 'replace', path: 'displayName', value: 'New name' })).status).toBe(200)
  })
})

test.each([
  ['directly', null],
  ['through a group', 'admins'],
])('an administrator, %s, gets no other address from a directory', async (_name, of) => {
  const { id } = await user()
  const subject = of === null ? `user:${id}` : `group:${of}`
  const tuple = { object: `group:${of}`, relation: 'member', subject: `user:${id}`, expiresAtMs: null }
  await served.store.write(
    ENVIRONMENT,
    [
      {
        kind: 'manifest',
        manifest: {
          app: 'portcullis',
          audiences: [],
          permissions: { 'portcullis:directory:write': 'x' },
          roles: { administrator: { name: 'A', permissions: ['portcullis:directory:write'] } },
          model: null,
        },
      },
    ],
    { context: CONTEXT },
  )
  await served.store.write(
    'acme',
    [
      {
        kind: 'role_grant',
        op: 'write',
        grant: { id: `g-${name}`, app: 'portcullis', role: 'administrator', subject },
      },
      ...(of === null ? [] : [{ kind: 'tuple', op: 'write', tuple } as const]),
    ],
    { context: CONTEXT },
  )
  expect((await patch(at('Users', id), { op: 'replace', path: 'userName', value: `${name}-evil@x.test` })).status).toBe(
    403,
  )
  await patch(at('Users', id), { op: 'replace', path: 'active', value: false })
  expect(await mayActSince(id, Date.now() / 1_000 + 60)).toBe(false)
})

describe('DELETE', () => {
  test('ends the account and its places in groups; the id never comes back', async () => {
    const { id } = await user()
    const { id: team } = await group({ members: [{ value: id }] })
    expect((await send('DELETE', at('Users', id), { headers: TYPE })).status).toBe(204)
    expect(await served.directory.user(id)).toBe(null)
    expect((await send('GET', at('Users', id))).status).toBe(404)
    expect((await send('GET', at('Groups', team))).body.members).toBe(undefined)
    expect((await send('DELETE', at('Users', id))).status).toBe(404)
    expect((await user()).id).not.toBe(id)
  })

  test('by the operator takes the user out of the directory', async () => {
    const { id } = await user()
    await served.directory.deleteUser(id, CONTEXT)
    expect((await send('GET', at('Users', id))).status).toBe(404)
  })

  test('of an organization takes what its directory brought with it', async () => {
    const admin = await served.manager()
    await served.send('PUT', '/v1/organizations/gone', { token: admin, body: { name: 'Gone' } })
    const token = await served.manager({ client: 'gone-directory', organization: 'gone', scopes: ['scim'] })
    await group({}, token)
    await served.send('DELETE', '/v1/clients/gone-directory', { token: admin })
    expect((await served.send('DELETE', '/v1/organizations/gone', { token: admin })).status).toBe(204)
  })
})

describe('a group', () => {
  test('gives its members the roles that were granted to it, from the write on until they leave', async () => {
    const { id } = await user()
    const team = await group({ members: [{ value: id }] })
    expect(team).toMatchObject({ displayName: name, members: [{ value: id, type: 'User', display: `${name}@x.test` }] })
    const grant = { id: `g-${name}`, app: null, role: 'auditor', subject: `group:${team.id}` }
    await served.store.write('acme', [{ kind: 'role_grant', op: 'write', grant }], { context: CONTEXT })
    expect(await held(id)).toEqual(['logs:read'])
    await patch(at('Groups', team.id), { op: 'Remove', path: `members[value eq "${id}"]` })
    expect(await held(id)).toEqual([])
    await patch(at('Groups', team.id), { op: 'Add', path: 'members', value: [{ value: id }] })
    expect(await held(id)).toEqual(['logs:read'])
    expect((await send('DELETE', at('Groups', team.id))).status).toBe(204)
    expect(await held(id)).toEqual([])
    expect(await served.store.roleGrants({ log: 'acme', id: grant.id }, { after: null, countMax: 1 })).toEqual([])
  })

  test('may be in a group, and shows a user in which it is', async () => {
    const { id } = await user()
    const inner = await group({ members: [{ value: id }] })
    const outer = await group({ displayName: `${name} all`, members: [{ value: inner.id }] })
    expect(outer.members).toEqual([{ value: inner.id, $ref: inner.meta.location, type: 'Group', display: name }])
    const { body } = await send('GET', `${at('Users', id)}?attributes=groups`)
    expect(body).toMatchObject({ id, groups: [{ value: inner.id, display: name }] })
    expect(body.userName).toBe(undefined)
    expect((await send('GET', at('Users', id))).body.groups).toBe(undefined)
  })

  test('has no members that the directory did not bring, and not itself', async () => {
    const foreign = await user({}, other)
    const { id } = await group()
    for (const value of ['alice', 'nobody', foreign.id, 'accounting', id, '', '*']) {
      const answer = await patch(at('Groups', id), { op: 'add', path: 'members', value: [{ value }] })
      expect([value, answer.status, answer.body.scimType]).toEqual([value, 400, 'invalidValue'])
    }
  })

  test('keeps members that others wrote, and does not show them', async () => {
    const { id } = await group()
    const tuple = { object: `group:${id}`, relation: 'member', subject: 'user:bob', expiresAtMs: null }
    await served.store.write('acme', [{ kind: 'tuple', op: 'write', tuple }], { context: CONTEXT })
    expect((await send('PUT', at('Groups', id), { body: { displayName: `${name} 2` } })).body.members).toBe(undefined)
    expect(await served.store.tuples('acme', { object: `group:${id}` }, { after: null, countMax: 10 })).toHaveLength(1)
  })

  test('has a name that no other has', async () => {
    await group()
    expect((await send('POST', '/Groups', { body: { displayName: name.toUpperCase() } })).body.scimType).toBe(
      'uniqueness',
    )
  })

  test('with more members than one write holds is written whole', async () => {
    const members = await Promise.all(Array.from({ length: 3 }, (_, i) => user({ userName: `${name}-${i}@x.test` })))
    const { id } = await group({ members: members.map((one) => ({ value: one.id })) })
    const filter = `filter=${encodeURIComponent(`members eq "${members[0].id}"`)}`
    expect((await find('Groups', `${filter}&excludedAttributes=members`)).Resources.map((one: Json) => one.id)).toEqual(
      [id],
    )
    expect(
      (
        await find(
          'Groups',
          `filter=${encodeURIComponent(`id eq "${id}" and members eq "${members[1].id}"`)}&attributes=id`,
        )
      ).totalResults,
    ).toBe(1)
  })
})

describe('a list', () => {
  const filter = (text: string): string => `filter=${encodeURIComponent(text)}`

  test('is found by user name, externalId and id, and shows only what is asked for', async () => {
    const { id } = await user({ externalId: name, title: 'Chief' })
    for (const text of [
      `userName eq "${name.toUpperCase()}@x.test"`,
      `externalId eq "${name}"`,
      `id eq "${id}"`,
      `emails.value eq "none" or userName sw "${name}"`,
    ])
      expect(
        (await find('Users', filter(text))).Resources.map((one: Json) => one.id),
        text,
      ).toEqual([id])
    const { Resources } = await find('Users', `${filter(`id eq "${id}"`)}&attributes=name.givenName,TITLE`)
    expect(Resources).toEqual([{ schemas: expect.any(Array), id, name: { givenName: 'Ann' }, title: 'Chief' }])
    const [without] = (await find('Users', `${filter(`id eq "${id}"`)}&excludedAttributes=meta,name`)).Resources
    expect([without.meta, without.name, without.title]).toEqual([undefined, undefined, 'Chief'])
  })

  test('is paged from 1, and every resource is on one page', async () => {
    for (let i = 0; i < 3; i += 1) await user({ userName: `${name}-${i}@x.test` })
    const query = filter(`userName sw "${name}"`)
    const ids = []
    for (const startIndex of [1, 2, 3, 4]) {
      const page = await find('Users', `${query}&startIndex=${startIndex}&count=1`)
      expect([page.totalResults, page.startIndex]).toEqual([3, startIndex])
      ids.push(...page.Resources.map((one: Json) => one.id))
    }
    expect(new Set(ids).size).toBe(3)
    expect(await find('Users', `${query}&count=0`)).toMatchObject({ totalResults: 3, itemsPerPage: 0, Resources: [] })
    expect(await find('Users', `${query}&startIndex=-5&count=-1`)).toMatchObject({ startIndex: 1, itemsPerPage: 0 })
    expect((await find('Users', 'count=1000000')).itemsPerPage).toBeLessThanOrEqual(200)
    expect(await find('Users', 'startIndex=100000')).toMatchObject({ itemsPerPage: 0, Resources: [] })
  })

  test.each([
    ['filter=userName', 'invalidFilter'],
    ['filter=', 'invalidFilter'],
    ['count=many', 'invalidValue'],
    ['startIndex=1.5', 'invalidValue'],
    ['attributes=a b', 'invalidValue'],
    ['count=1&count=2', 'invalidValue'],
  ])('with ?%s is refused', async (query, scimType) => {
    expect(await find('Users', query)).toMatchObject({ status: '400', scimType })
  })
})

describe('conditions', () => {
  test('keep two directories from overwriting each other', async () => {
    const { id, meta } = await user()
    const first = await send('PATCH', at('Users', id), {
      headers: { 'if-match': meta.version },
      body: { Operations: [{ op: 'replace', path: 'title', value: 'A' }] },
    })
    expect([first.status, first.headers.get('etag')]).toEqual([200, first.body.meta.version])
    const second = await send('DELETE', at('Users', id), { headers: { 'if-match': meta.version } })
    expect([second.status, second.body.status]).toEqual([412, '412'])
    const known = await send('GET', at('Users', id), { headers: { 'if-none-match': first.body.meta.version } })
    expect(known.status).toBe(304)
  })
})

describe('nobody but the directory of the organization', () => {
  test('sees or changes what it brought', async () => {
    const { id } = await user()
    const team = await group({ members: [{ value: id }] })
    for (const [kind, one] of [
      ['Users', id],
      ['Groups', team.id],
    ] as const) {
      expect((await find(kind, `filter=${encodeURIComponent(`id eq "${one}"`)}`, other)).totalResults).toBe(0)
      for (const method of ['GET', 'DELETE'])
        expect((await send(method, at(kind, one), { as: other })).status).toBe(404)
      const body = { userName: 'x', displayName: 'x', Operations: [{ op: 'replace', path: 'displayName', value: 'x' }] }
      for (const method of ['PUT', 'PATCH'])
        expect((await send(method, at(kind, one), { as: other, body })).status).toBe(404)
    }
  })

  test('and it sees nobody who was there before it', async () => {
    for (const id of ['alice', 'bob']) {
      expect((await send('GET', at('Users', id))).status).toBe(404)
      expect((await send('DELETE', at('Users', id))).status).toBe(404)
    }
    expect((await send('GET', at('Groups', 'accounting'))).status).toBe(404)
    expect((await find('Users', `filter=${encodeURIComponent('userName eq "alice@acme.test"')}`)).totalResults).toBe(0)
  })

  test.each<[string, () => Promise<string | undefined>, number]>([
    ['nobody', async () => undefined, 401],
    ['an unknown token', async () => 'unknown', 401],
    ['a person', async () => served.token({ scopes: new Set(['scim']), audiences: ['https://id.example.test'] }), 403],
    [
      'a client without the scope',
      () => served.manager({ client: 'no-scim', organization: 'acme', scopes: ['directory:write'] }),
      403,
    ],
    ['a client of no organization', () => served.manager({ client: 'unbound', scopes: ['scim'] }), 403],
  ])('is heard: not %s', async (_name, token, status) => {
    const as = await token()
    const answer = await served.send('GET', '/scim/v2/Users', as === undefined ? {} : { token: as })
    expect([answer.status, answer.body]).toEqual([
      status,
      expect.objectContaining({ schemas: ['urn:ietf:params:scim:api:messages:2.0:Error'], status: String(status) }),
    ])
    expect(answer.headers.get('content-type')).toMatch(/^application\/scim\+json/)
    if (status === 401) expect(answer.headers.get('www-authenticate')).toContain('Bearer')
  })
})

describe('what it can do', () => {
  test('is described', async () => {
    expect((await send('GET', '/ServiceProviderConfig')).body).toMatchObject({
      patch: { supported: true },
      filter: { supported: true },
      etag: { supported: true },
      bulk: { supported: false },
    })
    expect((await send('GET', '/ResourceTypes')).body.Resources.map((one: Json) => one.endpoint)).toEqual([
      '/Users',
      '/Groups',
    ])
    const { Resources } = (await send('GET', '/Schemas')).body
    for (const { id } of Resources) expect((await send('GET', `/Schemas/${id}`)).body.id).toBe(id)
    expect((await send('GET', '/ResourceTypes/User')).body.schema).toBe('urn:ietf:params:scim:schemas:core:2.0:User')
    expect((await send('GET', '/Schemas?filter=id%20pr')).status).toBe(403)
  })

  test.each([
    ['GET', '/Nothing', 404],
    ['DELETE', '/Users', 405],
    ['POST', '/Bulk', 404],
    ['GET', '/Schemas/urn:none', 404],
  ])('is not %s %s', async (method, path, status) => {
    const answer = await send(method, path)
    expect([answer.status, answer.body.schemas]).toEqual([status, ['urn:ietf:params:scim:api:messages:2.0:Error']])
  })

  test.each([
    ['no JSON', '{', 'application/scim+json', 400],
    ['a name twice', '{"userName":"a","userName":"b"}', 'application/scim+json', 400],
    ['nothing', '', 'application/scim+json', 400],
    ['another type', '<x/>', 'application/xml', 415],
    ['too much', JSON.stringify({ userName: 'x'.repeat(1_100_000) }), 'application/scim+json', 413],
  ])('is not a body of %s', async (_name, raw, type, status) => {
    const answer = await send('POST', '/Users', { raw, headers: { 'content-type': type } })
    expect([answer.status, answer.body.status]).toEqual([status, String(status)])
  })
})

test('each write is in the log of changes, in the name of the directory', async () => {
  const { id } = await user()
  const rows = await served.sql.query<{ actor: string; log: string }>(
    `select actor, organization_id as log from change_log where change ->> 'user' = $1 or change ->> 'id' = $1 order by organization_id`,
    [id],
  )
  expect(rows).toEqual([
    { actor: 'service:acme-directory', log: '#directory' },
    { actor: 'service:acme-directory', log: 'acme' },
  ])
})
