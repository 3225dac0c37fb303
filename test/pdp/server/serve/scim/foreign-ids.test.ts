/** A directory that names what the directory of another tenant brought is answered as about what nobody has. */
import { randomUUID } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { hidden } from '../foreign-world.ts'
import { group, name, openWorld, other, served, TYPE, user } from './world.ts'

openWorld()

type Call = { readonly method: string; readonly path: string; readonly body?: object }
const USER = { userName: '{own}@x.test', name: { givenName: 'Ann', familyName: 'Lee' } }
const search = (filter: string): readonly Call[] =>
  ['Users', 'Groups'].flatMap((kind) => [
    { method: 'GET', path: `/${kind}?filter=${encodeURIComponent(filter)}` },
    {
      method: 'POST',
      path: `/${kind}/.search`,
      body: { schemas: ['urn:ietf:params:scim:api:messages:2.0:SearchRequest'], filter },
    },
  ])
const operations = (...all: readonly object[]): object => ({ Operations: all })
/** Each route of the directory's, with names that somebody else's directory has: `{user}` and `{group}`. */
const CALLS: readonly Call[] = [
  ...['Users', 'Groups'].flatMap((kind) => {
    const body = kind === 'Users' ? USER : { displayName: '{own}' }
    const one = kind === 'Users' ? '{user}' : '{group}'
    const value = kind === 'Users' ? 'active' : 'displayName'
    return [
      { method: 'GET', path: `/${kind}/${one}` },
      { method: 'GET', path: `/${kind}/${one}?attributes=id` },
      { method: 'PUT', path: `/${kind}/${one}`, body },
      { method: 'PATCH', path: `/${kind}/${one}`, body: operations({ op: 'remove', path: value }) },
      { method: 'DELETE', path: `/${kind}/${one}` },
    ]
  }),
  ...[
    'id eq "{user}"',
    'id eq "{group}"',
    'userName eq "{name}@x.test"',
    'displayName eq "{name}"',
    'externalId eq "{external}"',
    'emails.value eq "{name}@x.test"',
    'groups.value eq "{group}"',
    'members.value eq "{user}"',
    'members[value eq "{user}"]',
    'meta.location co "{user}"',
    'id sw "{user}"',
    'userName sw "{name}"',
  ].flatMap(search),
  { method: 'POST', path: '/Groups', body: { displayName: '{own}', members: [{ value: '{user}' }] } },
  { method: 'POST', path: '/Groups', body: { displayName: '{own}', members: [{ value: '{group}' }] } },
  {
    method: 'PATCH',
    path: '/Groups/{mine}',
    body: operations({ op: 'add', path: 'members', value: [{ value: '{user}' }] }),
  },
  { method: 'PATCH', path: '/Groups/{mine}', body: operations({ op: 'remove', path: 'members[value eq "{user}"]' }) },
  { method: 'PUT', path: '/Groups/{mine}', body: { displayName: '{own}', members: [{ value: '{group}' }] } },
  { method: 'PUT', path: '/Users/{person}', body: { ...USER, externalId: '{external}' } },
  { method: 'PUT', path: '/Users/{person}', body: { ...USER, id: '{user}', groups: [{ value: '{group}' }] } },
]

/** As the source registers them. */
function registered(): readonly string[] {
  const source = readFileSync(new URL('../../../../../pdp/server/serve/scim/scim.ts', import.meta.url), 'utf8')
  return [...source.matchAll(/method: '(\w+)',\s*path(?:: `\$\{path\}([^`]*)`)?,/g)].map(
    ([, method, rest = '']) => `${method} ${rest}`,
  )
}

/** Each write of one's own resource gives it others. */
const withoutTimes = (text: string): string =>
  text.replaceAll(/"(?:lastModified|created)":"[^"]*"/g, '').replaceAll(/"version":"\\"[^"]*""/g, '')

test('there is a call for each route', () => {
  const shape = ({ method, path }: Call) =>
    `${method} ${path
      .replace(/\?.*/, '')
      .replace(/^\/(?:Users|Groups)/, '')
      .replace(/\{\w+\}/, ':id')}`
  const all = registered()
  expect(all).toHaveLength(7)
  // What makes a user has no name in it but an address, which only one account has: a directory that wants it learns that it is taken.
  expect(new Set(CALLS.map(shape))).toEqual(new Set(all))
})

test.each(CALLS)('$method $path says no more about another tenant’s than about nobody’s', async (call) => {
  const theirUser = await user({ externalId: `e-${name}` })
  const theirGroup = await group({ members: [{ value: theirUser.id }] })
  const mine = await group({ displayName: `mine-${randomUUID()}` }, other)
  const person = await user({ userName: `${randomUUID()}@x.test` }, other)
  const own = { own: `own-${randomUUID()}`, mine: mine.id, person: person.id }
  const told = async (names: { readonly [name: string]: string }) => {
    const filled = (text: string): string =>
      text.replaceAll(/\{(\w+)\}|%7B(\w+)%7D/g, (whole, plain, encoded) => names[plain ?? encoded] ?? whole)
    const answer = await fetch(served.url + filled(`/scim/v2${call.path}`), {
      method: call.method,
      headers: { authorization: `Bearer ${other}`, ...(call.body === undefined ? {} : TYPE) },
      body: call.body === undefined ? null : filled(JSON.stringify(call.body)),
    })
    const text = await answer.text()
    // What this call made is deleted, so that the next one makes it again.
    const { id } = call.method === 'POST' && answer.status === 201 ? JSON.parse(text) : { id: '' }
    if (id !== '')
      await fetch(`${served.url}/scim/v2/Groups/${id}`, {
        method: 'DELETE',
        headers: { authorization: `Bearer ${other}` },
      })
    const all = [...Object.values(names), id].filter((one) => one !== '')
    return { status: answer.status, text: withoutTimes(hidden(all, text)) }
  }
  const theirs = { user: theirUser.id, group: theirGroup.id, name, external: `e-${name}`, ...own }
  const nobodys = {
    user: `acme~nobody-${name}`,
    group: `nobody-${name}`,
    name: `n-${name}`,
    external: `n-e-${name}`,
    ...own,
  }
  const [first, second] = [await told(theirs), await told(nobodys)]
  expect(first).toEqual(second)
})
