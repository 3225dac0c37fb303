/** PATCH of SCIM (RFC 7644 section 3.5.2), with what Entra ID and Okta are known to send. */
import { describe, expect, test } from 'vitest'
import { GROUP, USER } from '../../../../../pdp/server/serve/scim/attributes.ts'
import { readDocument } from '../../../../../pdp/server/serve/scim/document.ts'
import { patched } from '../../../../../pdp/server/serve/scim/patch.ts'
import type { JsonObject, JsonValue } from '../../../../../pdp/shared/domain/json.ts'

const ENTERPRISE = 'urn:ietf:params:scim:schemas:extension:enterprise:2.0:User'
const USER_BEFORE: JsonObject = {
  schemas: [USER.schema],
  id: 'acme~1',
  userName: 'ann@x.test',
  name: { givenName: 'Ann', familyName: 'Lee' },
  active: true,
  emails: [
    { value: 'ann@x.test', type: 'work', primary: true },
    { value: 'a@home.test', type: 'home' },
  ],
  [ENTERPRISE]: { department: 'Sales' },
}
const GROUP_BEFORE: JsonObject = { id: 'g', displayName: 'Engineers', members: [{ value: 'a' }, { value: 'b' }] }

const patch = (operations: readonly JsonValue[], before = USER_BEFORE, type = USER): JsonObject =>
  patched(before, { schemas: ['urn:ietf:params:scim:api:messages:2.0:PatchOp'], Operations: operations }, type)
const patchGroup = (...operations: readonly JsonValue[]) => patch(operations, GROUP_BEFORE, GROUP).members

describe('a user', () => {
  test.each<[string, JsonValue, JsonObject]>([
    ['Entra: a text for false', { op: 'Replace', path: 'active', value: 'False' }, { active: false }],
    ['Okta: no path', { op: 'replace', value: { active: false } }, { active: false }],
    [
      'an extension as a resource of its own',
      { op: 'add', path: ENTERPRISE, value: { schemas: [ENTERPRISE], department: 'Legal' } },
      { [ENTERPRISE]: { department: 'Legal' } },
    ],
    ['op in capitals', { op: 'REPLACE', path: 'displayName', value: 'Ann Lee' }, { displayName: 'Ann Lee' }],
    [
      'a sub-attribute',
      { op: 'replace', path: 'name.familyName', value: 'Low' },
      { name: { givenName: 'Ann', familyName: 'Low' } },
    ],
    [
      'add to a complex attribute keeps the rest',
      { op: 'add', path: 'name', value: { middleName: 'M' } },
      { name: { givenName: 'Ann', familyName: 'Lee', middleName: 'M' } },
    ],
    [
      'replace of a complex attribute does not',
      { op: 'replace', path: 'name', value: { familyName: 'Low' } },
      { name: { familyName: 'Low' } },
    ],
    [
      'Entra: paths as names, without a path',
      { op: 'Add', value: { 'name.familyName': 'Low', [`${ENTERPRISE}:department`]: 'R&D', unknown: 1, id: 'other' } },
      { name: { givenName: 'Ann', familyName: 'Low' }, [ENTERPRISE]: { department: 'R&D' }, id: 'acme~1' },
    ],
    [
      'the extension as an object',
      { op: 'replace', value: { [ENTERPRISE]: { employeeNumber: '7' } } },
      { [ENTERPRISE]: { department: 'Sales', employeeNumber: '7' } },
    ],
    [
      'Entra: the manager as a text',
      { op: 'Add', path: `${ENTERPRISE}:manager`, value: 'acme~9' },
      { [ENTERPRISE]: { department: 'Sales', manager: { value: 'acme~9' } } },
    ],
    [
      'the whole extension',
      { op: 'replace', path: ENTERPRISE, value: { costCenter: '7' } },
      { [ENTERPRISE]: { costCenter: '7' } },
    ],
    ['remove', { op: 'remove', path: 'name.givenName' }, { name: { familyName: 'Lee' } }],
    [
      'Entra: an address by its kind',
      { op: 'Replace', path: 'emails[type eq "work"].value', value: 'new@x.test' },
      {
        emails: [
          { value: 'new@x.test', type: 'work', primary: true },
          { value: 'a@home.test', type: 'home' },
        ],
      },
    ],
    [
      'remove by a filter',
      { op: 'remove', path: 'emails[type eq "home"]' },
      { emails: [{ value: 'ann@x.test', type: 'work', primary: true }] },
    ],
    [
      'Entra: an address of a kind that was not there',
      { op: 'Add', path: 'phoneNumbers[type eq "mobile"].value', value: '+1' },
      { phoneNumbers: [{ type: 'mobile', value: '+1' }] },
    ],
    [
      'another primary address',
      { op: 'add', path: 'emails', value: [{ value: 'b@x.test', primary: true }] },
      {
        emails: [
          { value: 'ann@x.test', type: 'work', primary: false },
          { value: 'a@home.test', type: 'home' },
          { value: 'b@x.test', primary: true },
        ],
      },
    ],
    [
      'the URN of the schema before an attribute',
      { op: 'replace', path: `${USER.schema}:title`, value: 'Chief' },
      { title: 'Chief' },
    ],
    ['null is unassigned', { op: 'replace', path: 'name', value: null }, { userName: 'ann@x.test' }],
  ])('%s', (_name, operation, expected) => {
    expect(patch([operation])).toMatchObject(expected)
  })

  test('operations are applied in their order', () => {
    const result = patch([
      { op: 'replace', path: 'title', value: 'A' },
      { op: 'remove', path: 'title' },
      { op: 'add', path: 'nickName', value: 'B' },
    ])
    expect([result.title, result.nickName]).toEqual([undefined, 'B'])
  })

  test('what it was stays as it was', () => {
    const before = structuredClone(USER_BEFORE)
    patch([{ op: 'replace', path: 'emails[type eq "work"].value', value: 'x@x.test' }])
    expect(USER_BEFORE).toEqual(before)
  })

  test.each(['unknown', 'employeeType', 'urn:example:User:title', 'name.unknown', 'emails[type eq "work"].unknown'])(
    'keeps no %s, and is as it was',
    (path) => {
      const operations = [
        { op: 'replace', path, value: 'x' },
        { op: 'add', path, value: { a: 1 } },
        { op: 'remove', path },
      ]
      expect(patch(operations)).toEqual(USER_BEFORE)
    },
  )

  test.each<[JsonValue, string]>([
    [{ op: 'move', path: 'title', value: 'x' }, 'invalidSyntax'],
    [{ path: 'title', value: 'x' }, 'invalidSyntax'],
    ['x', 'invalidSyntax'],
    [{ op: 'remove' }, 'noTarget'],
    [{ op: 'replace', path: 'title[value eq "x"]', value: 'x' }, 'invalidPath'],
    [{ op: 'replace', path: 7, value: 'x' }, 'invalidPath'],
    [{ op: 'replace', path: '__proto__.x', value: 'x' }, 'invalidPath'],
    [{ op: 'replace', path: 'groups', value: [{ value: 'g' }] }, 'mutability'],
    [{ op: 'remove', path: 'userName' }, 'mutability'],
    [{ op: 'replace', path: 'active', value: 'no' }, 'invalidValue'],
    [{ op: 'replace', path: 'active', value: 1 }, 'invalidValue'],
    [{ op: 'replace', path: 'title', value: { a: 1 } }, 'invalidValue'],
    [{ op: 'replace', path: 'title' }, 'invalidValue'],
    [{ op: 'replace', path: 'title', value: 'x'.repeat(1_025) }, 'invalidValue'],
    [{ op: 'replace', path: 'title', value: 'a\u0000b' }, 'invalidValue'],
    [{ op: 'replace', value: 'x' }, 'invalidValue'],
    [{ op: 'add', path: 'phoneNumbers.value', value: '+1' }, 'noTarget'],
    [{ op: 'replace', path: 'phoneNumbers[type co "m"].value', value: '+1' }, 'noTarget'],
    [
      { op: 'add', path: 'emails', value: Array.from({ length: 51 }, (_, i) => ({ value: `${i}@x.test` })) },
      'invalidValue',
    ],
  ])('refuses %j', (operation, scimType) => {
    expect(() => patch([operation])).toThrow(expect.objectContaining({ name: 'ScimError', scimType }))
  })

  test.each([
    {},
    { Operations: [] },
    { Operations: 'x' },
    [],
    null,
    { Operations: Array.from({ length: 1_001 }, () => ({ op: 'remove', path: 'title' })) },
  ])('refuses a body that is not a patch', (body) => {
    expect(() => patched(USER_BEFORE, body as JsonValue, USER)).toThrow(
      expect.objectContaining({ scimType: 'invalidSyntax' }),
    )
  })
})

describe('the members of a group', () => {
  test('are added once', () => {
    expect(patchGroup({ op: 'Add', path: 'members', value: [{ value: 'b' }, { value: 'c' }] })).toEqual([
      ...[{ value: 'a' }, { value: 'b' }, { value: 'c' }],
    ])
  })

  test.each<[string, JsonValue]>([
    ['by a filter', { op: 'remove', path: 'members[value eq "b"]' }],
    ['as Entra ID lists them', { op: 'Remove', path: 'members', value: [{ value: 'b' }] }],
    ['as a single value', { op: 'Remove', path: 'members', value: { value: 'b' } }],
  ])('are removed %s', (_name, operation) => {
    expect(patchGroup(operation)).toEqual([{ value: 'a' }])
  })

  test('are removed all, or replaced', () => {
    expect(patchGroup({ op: 'remove', path: 'members' })).toBe(undefined)
    expect(patchGroup({ op: 'replace', path: 'members', value: [{ value: 'z' }] })).toEqual([{ value: 'z' }])
    expect(patchGroup({ op: 'replace', value: { id: 'g', displayName: 'New', members: [{ value: 'z' }] } })).toEqual([
      { value: 'z' },
    ])
  })

  test('of which none is meant are left alone', () => {
    expect(patchGroup({ op: 'remove', path: 'members[value eq "none"]' })).toHaveLength(2)
  })

  test('are up to 10,000', () => {
    const many = (count: number) => Array.from({ length: count }, (_, i) => ({ value: String(i) }))
    expect(readDocument({ displayName: 'G', members: many(10_000) }, GROUP).members).toHaveLength(10_000)
    expect(() => readDocument({ displayName: 'G', members: many(10_001) }, GROUP)).toThrow('more than 10000')
  })
})

describe('a document', () => {
  test.each<[JsonValue | undefined, string]>([
    [undefined, 'invalidSyntax'],
    [null, 'invalidSyntax'],
    [[], 'invalidSyntax'],
    ['x', 'invalidSyntax'],
    [{}, 'invalidValue'],
    [{ userName: '' }, 'invalidValue'],
    [{ userName: null }, 'invalidValue'],
    [{ userName: 7 }, 'invalidValue'],
    [{ userName: ['a'] }, 'invalidValue'],
    [{ userName: 'a', name: 7 }, 'invalidValue'],
    [{ userName: 'a', emails: [7] }, 'invalidValue'],
    [{ userName: 'a', [ENTERPRISE]: 'x' }, 'invalidValue'],
    [{ userName: 'a', title: 'x\ud800' }, 'invalidValue'],
    [
      { userName: 'a', phoneNumbers: Array.from({ length: 50 }, (_, i) => ({ value: `${i}${'x'.repeat(1_000)}` })) },
      'invalidValue',
    ],
  ])('%j is refused', (sent, scimType) => {
    expect(() => readDocument(sent, USER)).toThrow(expect.objectContaining({ scimType }))
  })

  test('keeps what it knows, whatever the case of its names, and ignores the rest', () => {
    const sent = {
      USERNAME: 'a',
      password: 'secret',
      id: 'x',
      meta: {},
      groups: [{ value: 'g' }],
      'x-y': 1,
      emails: { value: 'a@x.test' },
    }
    expect(readDocument(sent, USER)).toEqual({ userName: 'a', emails: [{ value: 'a@x.test' }] })
  })
})
