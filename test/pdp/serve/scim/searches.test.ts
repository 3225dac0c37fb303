/** Lists and filters over an organization with much in it. */
import { beforeAll, describe, expect, test } from 'vitest'
import { find, openWorld, other, send, served } from './world.ts'

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
    await served.sql.query(
      `insert into relationship (organization_id, object, relation, subject)
       select 'beta', 'group:dir-' || g, 'member', 'user:beta~' || i from generate_series(1, 6) g, generate_series(1, 9000) i`,
      [],
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
