import { describe, expect, test } from 'vitest'
import { CONTEXT, type Json } from '../harness.ts'
import { at, find, group, held, name, openWorld, other, patch, send, served, user } from './world.ts'

openWorld()

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
    ['POST', '/Bulk', 501],
    ['POST', '/.search', 501],
    ['GET', '/Me', 501],
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
