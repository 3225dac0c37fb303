/** Who leaves is shut out whatever else the directory sends with it, and what changes nothing makes no version. */
import { describe, expect, test } from 'vitest'
import type { Json } from '../harness.ts'
import { at, create, directory, group, name, openWorld, patch, send, served, user } from './world.ts'

openWorld()

const OP = 'urn:ietf:params:scim:api:messages:2.0:PatchOp'
const ENTERPRISE = 'urn:ietf:params:scim:schemas:extension:enterprise:2.0:User'
const read = async (id: string): Promise<Json> => (await send('GET', at('Users', id))).body
const isBlocked = async (id: string): Promise<boolean> =>
  (await served.sql.query("select 1 from user_account where user_id = $1 and signed_out_at = 'infinity'", [id]))
    .length > 0

/** What is refused by itself. */
const REFUSED = { op: 'replace', path: 'userName', value: 'two\nlines' }
const FORMS: readonly (readonly [directory: string, operations: readonly object[]])[] = [
  ['Entra, with a text', [{ op: 'Replace', path: 'active', value: 'False' }]],
  ['Entra, without a path', [{ op: 'Replace', value: { active: false, title: 'Was here' } }]],
  ['Okta', [{ op: 'replace', value: { active: false } }]],
  [
    'Google',
    [
      { op: 'replace', path: 'active', value: false },
      { op: 'replace', path: 'name.givenName', value: 'Ann' },
    ],
  ],
  ['JumpCloud', [{ op: 'replace', value: { active: false, id: 'x' } }]],
  [
    'the whole name of the attribute',
    [{ op: 'add', path: 'urn:ietf:params:scim:schemas:core:2.0:User:active', value: false }],
  ],
]

describe('a PATCH that ends a person', () => {
  test.each(FORMS)('does so: %s', async (_, operations) => {
    const { id } = await user()
    expect((await patch(at('Users', id), ...operations)).status).toBe(200)
    expect([(await read(id)).active, await isBlocked(id)]).toEqual([false, true])
  })

  test.each(FORMS)('does so first where the rest is refused: %s', async (_, operations) => {
    for (const whole of [
      [...operations, REFUSED],
      [REFUSED, ...operations],
      [{ op: 'move', path: 'title' }, ...operations],
      [...operations, { op: 'replace', path: 'title[', value: 'x' }],
      [...operations, { op: 'replace', path: 'title', value: 'x'.repeat(5_000) }],
      [...operations, { op: 'remove', path: 'userName' }],
      [...operations, null as unknown as object],
    ]) {
      const { id, userName } = await user({ userName: `${crypto.randomUUID()}@x.test` })
      const answer = await patch(at('Users', id), ...whole)
      expect([answer.status, answer.body.schemas]).toEqual([400, ['urn:ietf:params:scim:api:messages:2.0:Error']])
      expect(await read(id)).toMatchObject({ active: false, userName })
      expect(await isBlocked(id)).toBe(true)
    }
  })

  test('takes a name that another has, and still shuts the person out', async () => {
    const { userName } = await user()
    const { id } = await create('Users', { userName: `other-${name}@x.test` })
    const answer = await patch(at('Users', id), { op: 'replace', value: { active: false, userName } })
    expect([answer.status, answer.body.scimType]).toEqual([409, 'uniqueness'])
    expect((await read(id)).active).toBe(false)
  })

  test('is judged by its last word, its conditions and its caller', async () => {
    const { id } = await user()
    const path = at('Users', id)
    await patch(
      path,
      { op: 'replace', path: 'active', value: false },
      { op: 'replace', path: 'active', value: true },
      REFUSED,
    )
    expect((await read(id)).active).toBe(true)
    await patch(path, { op: 'replace', path: 'active', value: 'no' }, REFUSED)
    await patch(path, { op: 'remove', path: 'active' }, REFUSED)
    expect((await read(id)).active).toBe(true)
    const body = { schemas: [OP], Operations: [{ op: 'replace', path: 'active', value: false }, REFUSED] }
    expect((await send('PATCH', path, { body, headers: { 'if-match': '"old"' } })).status).toBe(412)
    const stranger = await served.manager({ client: 'stranger', organization: 'acme', scopes: ['directory:read'] })
    expect((await send('PATCH', path, { body, as: stranger })).status).toBe(403)
    expect((await read(id)).active).toBe(true)
  })
})

test('a PUT that ends a person does so where the rest is refused', async () => {
  const { id } = await user()
  expect((await send('PUT', at('Users', id), { body: { active: 'False', userName: 'two\nlines' } })).status).toBe(400)
  expect((await read(id)).active).toBe(false)
})

describe('texts of several lines', () => {
  test('are kept, as RFC 7643 has them in addresses', async () => {
    const address = {
      type: 'work',
      streetAddress: '1 Long Plaza\r\nBuilding B',
      formatted: '1 Long Plaza\nTown, CA 91608 US',
    }
    const made = await user({ addresses: [address], title: 'Head\tof', displayName: 'Ann Lee\n' })
    expect(made).toMatchObject({ addresses: [address], title: 'Head\tof' })
    expect((await served.directory.user(made.id))?.name).toBe('Ann Lee')
    const path = at('Users', made.id)
    const answer = await patch(
      path,
      { op: 'Replace', path: 'active', value: 'False' },
      { op: 'Add', path: 'addresses[type eq "work"].streetAddress', value: '1 Long\r\nBuilding B' },
    )
    expect([answer.status, answer.body.active]).toEqual([200, false])
  })

  test.each([
    ['userName', { userName: 'two\nlines' }],
    ['externalId', { externalId: 'a\tb' }],
    ['a title with NUL', { title: 'a\u0000b' }],
    ['a title that moves the cursor', { title: 'a\u001b[2Jb' }],
  ])('are no names, and nothing else that controls: %s', async (_, more) => {
    expect((await send('POST', '/Users', { body: { userName: `${name}@x.test`, ...more } })).status).toBe(400)
  })
})

describe('a write that changes nothing', () => {
  test.each<[string, object]>([
    ['a title that is there', { op: 'add', path: 'title', value: 'Head' }],
    ['an address that is there', { op: 'add', path: 'emails', value: [{ value: 'a@X', type: 'work' }] }],
    ['active', { op: 'replace', path: 'active', value: true }],
    ['the role that is there', { op: 'add', path: 'roles', value: [{ value: 'member' }] }],
    ['an extension', { op: 'add', path: `${ENTERPRISE}:department`, value: 'Sales' }],
    ['what is not there taken away', { op: 'remove', path: 'nickName' }],
    ['what is not kept', { op: 'add', path: 'employeeType', value: 'x' }],
  ])('of a user makes no version: %s', async (_, { ...operation }: { value?: Json }) => {
    const address = { value: `a-${name}@x.test`, type: 'work' }
    if (Array.isArray(operation.value) && operation.value[0].type === 'work') operation.value = [address]
    const before = await user({
      title: 'Head',
      emails: [address],
      roles: [{ value: 'member', primary: true }],
      [ENTERPRISE]: { department: 'Sales' },
    })
    for (let times = 0; times < 2; times += 1) {
      const answer = await patch(at('Users', before.id), operation)
      expect([answer.status, answer.body]).toEqual([200, before])
    }
  })

  test('of a group makes no version, and a change of its members does', async () => {
    const { id } = await user()
    const made = await group({ members: [{ value: id }] })
    const path = at('Groups', made.id)
    const add = { op: 'add', path: 'members', value: [{ value: id }] }
    expect((await patch(path, add)).body.meta).toEqual(made.meta)
    expect((await patch(path, { op: 'remove', path: 'members[value eq "nobody"]' })).body.meta).toEqual(made.meta)
    const emptied = await patch(path, { op: 'remove', path: 'members' })
    expect(emptied.body.meta.version).not.toBe(made.meta.version)
    expect((await patch(path, add)).body.meta.version).not.toBe(emptied.body.meta.version)
  })

  test('of a membership makes a version, for it is shown', async () => {
    const before = await user()
    const { body } = await patch(at('Users', before.id), { op: 'replace', path: 'active', value: false })
    expect(body.meta.version).not.toBe(before.meta.version)
    expect(directory).toBeDefined()
  })
})
