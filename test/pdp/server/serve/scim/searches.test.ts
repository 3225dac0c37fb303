/** Lists and filters over an organization with much in it. */
import { beforeAll, describe, expect, test } from 'vitest'
import { find, name, openWorld, other, send, served, user } from './world.ts'

openWorld()

describe('a filter over a large organization', () => {
  beforeAll(async () => {
    await served.sql.query(
      `insert into provisioned (organization_id, kind, id, name, document)
       select 'beta', 'User', 'beta~' || i, 'u' || i, jsonb_build_object('userName', 'u' || i) from generate_series(1, 9000) i`,
      [],
    )
    await served.sql.query(
      `insert into provisioned (organization_id, kind, id, name, document)
       select 'beta', 'Group', 'dir-' || i, 'g' || i, jsonb_build_object('displayName', 'g' || i) from generate_series(1, 6) i`,
      [],
    )
    // One statement for all would come near the time that a statement has, on a machine with more to do.
    for (let group = 1; group <= 6; group += 1)
      await served.sql.query(
        `insert into relationship (organization_id, object, relation, subject)
         select 'beta', 'group:dir-' || $1::int, 'member', 'user:beta~' || i from generate_series(1, 9000) i`,
        [group],
      )
  })
  const search = (kind: string, filter: string) =>
    send('GET', `/${kind}?count=1&filter=${encodeURIComponent(filter)}`, { as: other })

  test('reads no more members than fit', async () => {
    const { status, body } = await search('Groups', 'members.value eq "nobody"')
    expect([status, body.scimType]).toEqual([400, 'tooMany'])
  })

  test('is not compared with everything as often as it likes', async () => {
    const { status, body } = await search('Users', Array(100).fill('title pr').join(' or '))
    expect([status, body.scimType]).toEqual([400, 'tooMany'])
    expect((await search('Users', 'title pr or userName eq "u7"')).body.totalResults).toBe(1)
  })

  test('is one of few at once, and takes no place from look-ups', async () => {
    const searches = await Promise.all(Array.from({ length: 12 }, () => search('Users', 'title pr')))
    const statuses = new Set(searches.map(({ status }) => status))
    expect([...statuses].sort()).toEqual([200, 429])
    const lookups = await Promise.all(Array.from({ length: 12 }, () => search('Users', 'userName eq "u7"')))
    expect(lookups.every(({ status }) => status === 200)).toBe(true)
  })

  test('shortens a page of groups, from whose end the next one begins', async () => {
    const first = await find('Groups', 'count=20', other)
    expect([first.totalResults, first.itemsPerPage]).toEqual([6, 5])
    expect((await find('Groups', 'startIndex=6', other)).itemsPerPage).toBe(1)
  })
})

describe('a search by POST', () => {
  const search = (body: object, kind = 'Users') => send('POST', `/${kind}/.search`, { body })
  const everything = {
    schemas: ['urn:ietf:params:scim:api:messages:2.0:SearchRequest'],
    attributes: ['userName', 'displayName'],
    filter: 'title eq "Searched"',
    startIndex: 1,
    count: 1,
  }

  test('is the list that a query gives', async () => {
    for (const more of ['', 'x']) await user({ userName: `${name}${more}`, title: 'Searched', displayName: 'Ann' })
    const { status, body } = await search(everything)
    expect(status).toBe(200)
    expect(body).toEqual(
      await find(
        'Users',
        `attributes=userName,displayName&startIndex=1&count=1&filter=${encodeURIComponent(everything.filter)}`,
      ),
    )
    expect([body.totalResults, Object.keys(body.Resources[0]).sort()]).toEqual([
      2,
      ['displayName', 'id', 'schemas', 'userName'],
    ])
    expect((await search({}, 'Groups')).status).toBe(200)
  })

  test('sees no other organization, and needs the scope', async () => {
    const { id } = await user({}, other)
    const { body } = await search({ filter: `id eq "${id}"` })
    expect(body.totalResults).toBe(0)
    const without = await served.manager({ client: 'acme-without', organization: 'acme', scopes: ['directory:read'] })
    expect((await send('POST', '/Users/.search', { body: {}, as: without })).status).toBe(403)
  })

  test.each([
    ['no object', [], 'invalidSyntax'],
    ['an object for a filter', { filter: {} }, 'invalidValue'],
    ['a filter that is none', { filter: 'title eq' }, 'invalidFilter'],
    ['numbers for attributes', { attributes: [1] }, 'invalidValue'],
    ['a fraction for count', { count: 1.5 }, 'invalidValue'],
    ['a parameter in two spellings', { count: 1, Count: 2 }, 'invalidValue'],
    ['true for startIndex', { startIndex: true }, 'invalidValue'],
  ])('with %s is refused', async (_, body, scimType) => {
    const answer = await search(body)
    expect([answer.status, answer.body.scimType]).toEqual([400, scimType])
  })
})
