/** Names and paths that a directory may send to reach what is not its own. */
import { describe, expect, test } from 'vitest'
import { at, create, find, group, membership, name, openWorld, other, patch, send, user } from './world.ts'

openWorld()

describe('the names that every object has', () => {
  test.each(['constructor pr', 'userName.constructor pr', 'name.hasOwnProperty pr', 'toString eq "x"', 'password pr'])(
    'are no attribute in the filter %s',
    async (filter) => {
      await user()
      expect(await find('Users', `filter=${encodeURIComponent(filter)}`)).toMatchObject({ totalResults: 0 })
    },
  )

  test.each(['__proto__ pr', 'emails.__proto__ pr', 'emails[__proto__ pr]'])('are no filter: %s', async (filter) => {
    const answer = await send('GET', `/Users?filter=${encodeURIComponent(filter)}`)
    expect([answer.status, answer.body.scimType]).toEqual([400, 'invalidFilter'])
  })

  test.each([
    ['__proto__', 'invalidPath'],
    ['name.__proto__', 'invalidPath'],
    ['emails[constructor eq "x"].value', 'noTarget'],
    ['groups', 'mutability'],
  ])('and what is not its to write are no path of a change: %s', async (path, scimType) => {
    const before = await user()
    const answer = await patch(at('Users', String(before.id)), { op: 'replace', path, value: 'x' })
    expect([answer.status, answer.body.scimType]).toEqual([400, scimType])
    expect((await send('GET', at('Users', String(before.id)))).body).toEqual(before)
  })

  test.each([
    'constructor',
    'name.constructor',
    'id',
    'meta.version',
    'password',
    'urn:ietf:params:scim:schemas:core:2.0:Group:members',
  ])('of what is not kept change nothing, and make no version: %s', async (path) => {
    const before = await user()
    const answer = await patch(at('Users', String(before.id)), { op: 'replace', path, value: 'x' })
    expect([answer.status, answer.body]).toEqual([200, before])
  })

  test('in a value are refused, and change nothing that others have', async () => {
    const { id } = await user()
    const value = JSON.parse('{"__proto__": {"polluted": true}, "title": "x"}')
    expect((await patch(at('Users', String(id)), { op: 'add', value })).status).toBe(400)
    expect({}).not.toHaveProperty('polluted')
  })
})

test('a document that is nested without end is read as far as it is known', async () => {
  const deep = JSON.parse(`${'{"a":'.repeat(3_000)}1${'}'.repeat(3_000)}`)
  const stored = await create('Users', { userName: `${name}@x.test`, unknown: deep, name: deep })
  expect(stored).not.toHaveProperty('name')
})

test('the same externalId may stand at two, and the same user name in another case may not', async () => {
  await user({ externalId: name })
  await create('Users', { userName: `second-${name}@x.test`, externalId: name })
  expect(await find('Users', `filter=${encodeURIComponent(`externalId eq "${name}"`)}`)).toMatchObject({
    totalResults: 2,
  })
  const again = await send('POST', '/Users', { body: { userName: `${name}@X.TEST`.toUpperCase() } })
  expect([again.status, again.body.scimType]).toEqual([409, 'uniqueness'])
})

test('of several that create the same person at once, in any case, one does', async () => {
  const names = [`${name}@x.test`, `${name}@X.test`, `${name.toUpperCase()}@x.test`]
  const answers = await Promise.all(names.map((userName) => send('POST', '/Users', { body: { userName } })))
  expect(answers.map(({ status }) => status).sort()).toEqual([201, 409, 409])
})

test('an id is not chosen by who creates, and nobody of another organization is found by it', async () => {
  const { id } = await create('Users', { userName: `${name}@x.test`, id: 'acme-directory' })
  expect(id).toMatch(/^acme~[\w-]{22}$/)
  const path = at('Users', String(id))
  const body = { userName: `${name}@x.test`, Operations: [{ op: 'replace', path: 'active', value: false }] }
  for (const method of ['GET', 'PUT', 'PATCH', 'DELETE'])
    expect((await send(method, path, { as: other, ...(method.startsWith('P') ? { body } : {}) })).status).toBe(404)
  expect(await membership(String(id))).toMatchObject({ status: 'active' })
  const { id: theirs } = await group()
  for (const value of [id, 'bob', 'acme-directory', '__proto__']) {
    const added = await patch(at('Groups', String(theirs)), { op: 'add', path: 'members', value: [{ value }] })
    expect([value, added.status]).toEqual([value, value === id ? 200 : 400])
  }
})
