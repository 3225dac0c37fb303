/** What the provisioning services of Entra ID and Okta send, word for word in shape, one life of a person and a group each. */
import { describe, expect, test } from 'vitest'
import { CONTEXT } from '../harness.ts'
import {
  at,
  create,
  find,
  group,
  held,
  membership,
  name,
  openWorld,
  patch,
  send,
  served,
  storeAddress,
  user,
} from './world.ts'

openWorld()
const USER = 'urn:ietf:params:scim:schemas:core:2.0:User'
const ENTERPRISE = 'urn:ietf:params:scim:schemas:extension:enterprise:2.0:User'
const PATCH_OP = 'urn:ietf:params:scim:api:messages:2.0:PatchOp'
const asEntra = (path: string, ...Operations: readonly object[]) =>
  send('PATCH', path, { body: { schemas: [PATCH_OP], Operations } })

describe('Entra ID', () => {
  test('tests the connection by asking for somebody whom there is not, and gets an empty list', async () => {
    for (const [kind, attribute] of [
      ['Users', 'userName'],
      ['Groups', 'displayName'],
    ] as const)
      expect(
        await find(kind, `filter=${encodeURIComponent(`${attribute} eq "e9e30dba-f08f-4109-8486-d5c6a331660a"`)}`),
      ).toMatchObject({
        schemas: ['urn:ietf:params:scim:api:messages:2.0:ListResponse'],
        totalResults: 0,
      })
  })

  test('creates a person with its default mapping, changes every attribute of it by path, and disables and deletes them', async () => {
    const created = await create('Users', {
      schemas: [USER, ENTERPRISE],
      externalId: name,
      userName: `${name}@x.test`,
      active: true,
      displayName: 'Ann Lee',
      emails: [{ primary: true, type: 'work', value: `${name}@x.test` }],
      meta: { resourceType: 'User' },
      name: { formatted: 'Ann Lee', familyName: 'Lee', givenName: 'Ann' },
      addresses: [
        { type: 'work', streetAddress: '1 Main St', locality: 'Ulm', region: 'BW', postalCode: '89073', country: 'DE' },
      ],
      roles: [],
    })
    const path = at('Users', created.id)
    const answer = await asEntra(
      path,
      { op: 'Replace', path: 'displayName', value: 'Ann Berg' },
      { op: 'Replace', path: 'name.familyName', value: 'Berg' },
      { op: 'Add', path: 'name.formatted', value: 'Ann Berg' },
      { op: 'Replace', path: 'emails[type eq "work"].value', value: `${name}-2@x.test` },
      { op: 'Add', path: 'addresses[type eq "work"].formatted', value: '2 Main St, Ulm' },
      { op: 'Replace', path: 'addresses[type eq "work"].streetAddress', value: '2 Main St' },
      { op: 'Add', path: 'addresses[type eq "other"].country', value: 'FR' },
      { op: 'Add', path: 'phoneNumbers[type eq "mobile"].value', value: '+49 1' },
      { op: 'Add', path: 'phoneNumbers[type eq "fax"].value', value: '+49 2' },
      { op: 'Add', path: 'title', value: 'Chief' },
      { op: 'Add', path: 'preferredLanguage', value: 'de' },
      { op: 'Add', path: `${ENTERPRISE}:department`, value: 'Sales' },
      { op: 'Add', path: `${ENTERPRISE}:employeeNumber`, value: '7' },
      { op: 'Add', path: `${ENTERPRISE}:manager`, value: created.id },
    )
    expect([answer.status, answer.body.detail]).toEqual([200, undefined])
    expect(answer.body).toMatchObject({
      displayName: 'Ann Berg',
      name: { familyName: 'Berg', givenName: 'Ann', formatted: 'Ann Berg' },
      emails: [{ type: 'work', value: `${name}-2@x.test`, primary: true }],
      addresses: [
        { type: 'work', streetAddress: '2 Main St', locality: 'Ulm', formatted: '2 Main St, Ulm' },
        { type: 'other', country: 'FR' },
      ],
      [ENTERPRISE]: { department: 'Sales', employeeNumber: '7', manager: { value: created.id } },
    })
    const removed = await asEntra(
      path,
      { op: 'Remove', path: 'addresses[type eq "work"].streetAddress' },
      { op: 'Remove', path: 'title' },
    )
    expect([removed.status, removed.body.title, removed.body.addresses[0].streetAddress]).toEqual([
      200,
      undefined,
      undefined,
    ])
    expect((await asEntra(path, { op: 'Replace', path: 'active', value: 'False' })).body.active).toBe(false)
    expect(
      (await asEntra(path, { op: 'Replace', value: { active: 'True', 'name.givenName': 'Anna' } })).body,
    ).toMatchObject({
      active: true,
      name: { givenName: 'Anna' },
    })
    expect((await send('DELETE', path)).status).toBe(204)
    const gone = await send('GET', path)
    expect([gone.status, gone.body.status]).toEqual([404, '404'])
    expect((await asEntra(path, { op: 'Replace', path: 'active', value: 'False' })).status).toBe(404)
    expect((await send('DELETE', path)).status).toBe(404)
  })

  test('finds a person by the attribute that it matches with, and by two', async () => {
    const { id } = await user({ externalId: name, emails: [{ value: `${name}@x.test`, type: 'work' }] })
    for (const filter of [
      `externalId eq "${name}"`,
      `userName eq "${name}@x.test"`,
      `emails[type eq "work"].value eq "${name}@x.test"`,
      `emails[type eq "work" and value eq "${name}@x.test"]`,
      `(userName eq "${name}@X.TEST")`,
      `userName Eq "${name}@x.test" AND active eq true`,
      `active eq "True" and externalId eq "${name}"`,
      `urn:ietf:params:scim:schemas:core:2.0:User:userName eq "${name}@x.test"`,
    ]) {
      const found = await find('Users', `filter=${encodeURIComponent(filter)}&startIndex=1&count=100`)
      expect([filter, found.Resources?.map((one: { id: string }) => one.id)]).toEqual([filter, [id]])
    }
  })

  test('adds and removes members of a group in each of its spellings, and asks without members', async () => {
    const [one, other] = [await user(), await create('Users', { userName: `${name}-b@x.test` })]
    const { id } = await create('Groups', {
      schemas: [
        'urn:ietf:params:scim:schemas:core:2.0:Group',
        'http://schemas.microsoft.com/2006/11/ResourceManagement/ADSCIM/2.0/Group',
      ],
      externalId: name,
      displayName: name,
      meta: { resourceType: 'Group' },
    })
    const path = at('Groups', id)
    const members = async () =>
      ((await send('GET', path)).body.members ?? []).map((member: { value: string }) => member.value).toSorted()
    await asEntra(path, { op: 'Add', path: 'members', value: [{ value: one.id }, { value: other.id }] })
    expect(await members()).toEqual([one.id, other.id].toSorted())
    await asEntra(path, { op: 'Remove', path: 'members', value: [{ value: one.id }] })
    expect(await members()).toEqual([other.id])
    await asEntra(path, { op: 'Add', path: 'members', value: [{ $ref: null, value: one.id }] })
    await asEntra(path, { op: 'Remove', path: `members[value eq "${other.id}"]` })
    expect(await members()).toEqual([one.id])
    expect((await asEntra(path, { op: 'Remove', path: `members[value eq "nobody"]` })).status).toBe(200)
    const listed = await find(
      'Groups',
      `excludedAttributes=members&filter=${encodeURIComponent(`displayName eq "${name}"`)}`,
    )
    expect([listed.totalResults, listed.Resources[0].id, listed.Resources[0].members]).toEqual([1, id, undefined])
    const asked = await send('GET', `${path}?excludedAttributes=members`)
    expect([asked.status, asked.body.members]).toEqual([200, undefined])
    expect((await asEntra(path, { op: 'Replace', path: 'displayName', value: `${name}-2` })).body.displayName).toBe(
      `${name}-2`,
    )
    expect((await send('DELETE', path)).status).toBe(204)
  })
})

describe('Okta', () => {
  test('looks for a person, creates them, replaces their profile, deactivates them and lets them in again', async () => {
    const query = `filter=${encodeURIComponent(`userName eq "${name}@x.test"`)}&startIndex=1&count=100`
    expect(await find('Users', query)).toMatchObject({ totalResults: 0, startIndex: 1, Resources: [] })
    const created = await create('Users', {
      schemas: [USER],
      userName: `${name}@x.test`,
      name: { givenName: 'Ann', familyName: 'Lee' },
      emails: [{ primary: true, value: `${name}@x.test`, type: 'work' }],
      displayName: 'Ann Lee',
      locale: 'en-US',
      externalId: `00u${name}`,
      groups: [],
      password: '1mz050nq',
      active: true,
    })
    expect(created.password).toBe(undefined)
    expect((await find('Users', query)).Resources).toHaveLength(1)
    const path = at('Users', created.id)
    const { body: shown } = await send('GET', path)
    const put = await send('PUT', path, { body: { ...shown, name: { givenName: 'Anna', familyName: 'Lee' } } })
    expect([put.status, put.body.name.givenName]).toEqual([200, 'Anna'])
    const off = await send('PATCH', path, {
      body: { schemas: [PATCH_OP], Operations: [{ op: 'replace', value: { active: false } }] },
    })
    expect([off.status, off.body.active]).toEqual([200, false])
    expect((await membership(created.id))?.status).toBe('suspended')
    const on = await send('PUT', path, { body: { ...shown, active: true } })
    expect([on.status, on.body.active]).toEqual([200, true])
  })

  test('reads all people page by page', async () => {
    await user()
    const all = await find('Users', 'startIndex=1&count=1')
    expect([all.itemsPerPage, all.startIndex, all.Resources.length]).toEqual([1, 1, 1])
    const none = await find('Users', `startIndex=${all.totalResults + 1}&count=100`)
    expect([none.totalResults, none.Resources]).toEqual([all.totalResults, []])
    expect((await find('Users', 'startIndex=0&count=0')).Resources ?? []).toEqual([])
    expect((await find('Users', 'startIndex=-3&count=-1')).Resources ?? []).toEqual([])
  })

  test('pushes a group, and changes its name and its members together', async () => {
    const person = await user()
    const { id } = await group({ schemas: ['urn:ietf:params:scim:schemas:core:2.0:Group'], members: [] })
    const path = at('Groups', id)
    const renamed = await patch(path, { op: 'replace', value: { id, displayName: `${name}-2` } })
    expect([renamed.status, renamed.body.displayName]).toEqual([200, `${name}-2`])
    await patch(path, { op: 'add', path: 'members', value: [{ value: person.id, display: `${name}@x.test` }] })
    await patch(path, { op: 'replace', path: 'members', value: [{ value: person.id, display: `${name}@x.test` }] })
    expect((await send('GET', path)).body.members).toMatchObject([{ value: person.id }])
    const replaced = await send('PUT', path, {
      body: { schemas: ['urn:ietf:params:scim:schemas:core:2.0:Group'], id, displayName: name, members: [] },
    })
    expect([replaced.status, replaced.body.members ?? []]).toEqual([200, []])
    expect(await held(person.id)).toEqual([])
  })
})

test('a stale version is refused, and the present one is taken', async () => {
  const { id, meta } = await user()
  const path = at('Users', id)
  const headers = { 'if-match': meta.version }
  const body = { Operations: [{ op: 'replace', path: 'title', value: 'A' }] }
  expect((await send('PATCH', path, { headers, body })).status).toBe(200)
  expect((await send('PATCH', path, { headers, body })).status).toBe(412)
  expect((await send('GET', path, { headers: { 'if-none-match': meta.version } })).status).toBe(200)
  const { body: now } = await send('GET', path)
  expect((await send('GET', path, { headers: { 'if-none-match': now.meta.version } })).status).toBe(304)
})

test('somebody whose address is one that today would be refused is shut out, and gets a right one', async () => {
  const { id } = await user({ emails: [{ value: `${name}@x.test`, primary: true }] })
  await storeAddress(id, `${name}\u200b@x.test`)
  const path = at('Users', id)
  expect((await patch(path, { op: 'replace', path: 'active', value: false })).status).toBe(200)
  expect((await membership(id))?.status).toBe('suspended')
  const address = { op: 'replace', path: 'emails', value: [{ value: `${name}\u200c@x.test`, primary: true }] }
  expect(await patch(path, address)).toMatchObject({ status: 400, body: { scimType: 'invalidValue' } })
  const right = { op: 'replace', path: 'emails', value: [{ value: `${name}@y.test`, primary: true }] }
  expect((await patch(path, right)).status).toBe(200)
})

describe('the role of a user', () => {
  test('keeps the words that the directory has for the tier, as long as it has that tier', async () => {
    const roles = [{ value: 'developer', display: 'Maker', type: 'AppRole', primary: true }]
    const { id, roles: shown } = await user({ roles })
    expect(shown).toEqual(roles)
    expect((await patch(at('Users', id), { op: 'add', path: 'title', value: 'Dr' })).body.roles).toEqual(roles)
    await served.store.write(
      'acme',
      [{ kind: 'membership', user: id, membership: { role: 'admin', status: 'active' } }],
      {
        context: CONTEXT,
      },
    )
    expect((await send('GET', at('Users', id))).body.roles).toEqual([{ value: 'admin', primary: true }])
  })
})
