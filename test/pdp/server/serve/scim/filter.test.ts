/** Filters of SCIM (RFC 7644 section 3.4.2.2): the examples of the RFC, what Entra ID and Okta send, and what is no filter. */
import { describe, expect, test } from 'vitest'
import { GROUP, USER } from '../../../../../pdp/server/serve/scim/attributes.ts'
import { FILTER_CHARACTERS_MAX, parseFilter, parsePatchPath } from '../../../../../pdp/server/serve/scim/filter.ts'
import { matches } from '../../../../../pdp/server/serve/scim/match.ts'

const ENTERPRISE = 'urn:ietf:params:scim:schemas:extension:enterprise:2.0:User'
const BJENSEN = {
  id: 'acme~1',
  externalId: 'Ext-7',
  userName: 'bjensen@example.com',
  name: { familyName: "O'Malley", givenName: 'Barbara' },
  displayName: 'Babs "B" Jensen',
  title: 'Tour Guide',
  active: true,
  emails: [
    { value: 'bjensen@example.com', type: 'work', primary: true },
    { value: 'babs@jensen.org', type: 'home' },
  ],
  [ENTERPRISE]: { department: 'Sales', manager: { value: 'acme~9' } },
  meta: { resourceType: 'User', lastModified: '2011-05-13T04:42:34.000Z' },
}
const meets = (filter: string): boolean => matches(parseFilter(filter), BJENSEN, USER)

test.each([
  'userName eq "bjensen@example.com"',
  'userName Eq "BJENSEN@example.com"',
  'USERNAME eq "bjensen@example.com"',
  'name.familyName co "O\'Malley"',
  'userName sw "bj"',
  'userName ew ".com"',
  'urn:ietf:params:scim:schemas:core:2.0:User:userName sw "bj"',
  `${ENTERPRISE}:department eq "sales"`,
  `${ENTERPRISE}:manager.value eq "acme~9"`,
  `${ENTERPRISE}:manager eq "acme~9"`,
  'title pr',
  'displayName eq "Babs \\"B\\" Jensen"',
  'meta.lastModified gt "2011-05-13T04:42:33Z"',
  'meta.lastModified ge "2011-05-13T06:42:34+02:00"',
  'meta.lastModified lt "2012-01-01T00:00:00Z"',
  'meta.lastModified le "2011-05-13T04:42:34Z"',
  'title pr and userType pr or userName pr',
  'userName pr or title pr and userType pr',
  'not (userType pr)',
  'not(userType eq "Employee") and not (emails co "example.net")',
  'userType ne "Employee" and (emails co "example.com" or emails.value co "example.org")',
  'emails[type eq "work" and value co "@example.com"]',
  'emails[type eq "work" and value co "@example.com"] or ims[type eq "xmpp" and value co "@foo.com"]',
  'emails[type eq "home"].value eq "babs@jensen.org"',
  'emails.type eq "home"',
  'active eq true',
  'active eq "True"',
  'active ne false',
  'userType eq null',
  'title ne null',
  'externalId eq "Ext-7"',
  'id eq "acme~1" and active eq true',
  '  userName   eq   "bjensen@example.com"  ',
  '((((userName pr))))',
])('%s is met', (filter) => {
  expect(meets(filter)).toBe(true)
})

test.each([
  'userName eq "someone"',
  'userName ne "bjensen@example.com"',
  'externalId eq "ext-7"',
  'id eq "ACME~1"',
  'userType pr',
  'nickName eq ""',
  'unknown pr',
  'unknown eq "x"',
  'urn:example:unknown:userName pr',
  'urn:ietf:params:scim:schemas:core:2.0:Group:userName pr',
  'department eq "Sales"',
  'emails[type eq "work" and value co "jensen.org"]',
  'emails[type eq "home"].value eq "bjensen@example.com"',
  'active eq false',
  'active eq "maybe"',
  'title pr and userType pr and userName pr',
  'not (userName pr)',
  'meta.lastModified gt "2011-05-13T04:42:34Z"',
  'title gt "Z"',
  'userName eq null',
])('%s is not met', (filter) => {
  expect(meets(filter)).toBe(false)
})

test('of members, the id stands for the whole', () => {
  const group = { id: 'g', displayName: 'G', members: [{ value: 'acme~1', type: 'User' }] }
  const filters = [
    'members eq "acme~1"',
    'members.value eq "acme~1"',
    'members[value eq "acme~1"]',
    'id eq "g" and members eq "acme~1"',
  ]
  for (const filter of filters) expect(matches(parseFilter(filter), group, GROUP), filter).toBe(true)
  expect(matches(parseFilter('members eq "acme~2"'), group, GROUP)).toBe(false)
})

describe('what is no filter', () => {
  test.each([
    '',
    ' ',
    'userName',
    'userName eq',
    'userName eq bjensen',
    "userName eq 'bjensen'",
    'userName eq "bjensen',
    'userName eq "a" "b"',
    'userName is "bjensen"',
    'userName = "bjensen"',
    'eq "bjensen"',
    'userName eq "a" and',
    'userName eq "a" or or title pr',
    'and userName pr',
    'userName pr title pr',
    '(userName pr',
    'userName pr)',
    '()',
    'not userName pr',
    'not ()',
    'emails[type eq "work"',
    'emails[]',
    'emails]type eq "work"[',
    'emails.type[value eq "x"]',
    'emails[type eq "work"].value',
    'user name eq "a"',
    '1userName eq "a"',
    'userName.a.b eq "x"',
    'userName eq "\\x"',
    'userName eq "\u0001"',
    'userName eq 01',
    'userName eq {"a":1}',
    'userName eq [1]',
    'active gt true',
    'userName gt null',
    `userName eq "${'x'.repeat(FILTER_CHARACTERS_MAX)}"`,
    `${'('.repeat(21)}userName pr${')'.repeat(21)}`,
    Array.from({ length: 101 }, () => 'id pr').join(' or '),
    'userName eq "a"; drop table user_account',
  ])('%j', (filter) => {
    expect(() => meets(filter)).toThrow(expect.objectContaining({ name: 'ScimError', scimType: 'invalidFilter' }))
  })

  test('is refused in time that grows with its length alone', () => {
    for (const text of [
      '('.repeat(2_000),
      '"'.repeat(2_000),
      'not '.repeat(499),
      'a['.repeat(999),
      ' '.repeat(2_000),
      '\\'.repeat(2_000),
    ])
      expect(() => parseFilter(text)).toThrow(expect.objectContaining({ scimType: 'invalidFilter' }))
  })
})

describe('the path of a change', () => {
  test.each([
    ['members', { attribute: 'members', sub: null }],
    ['name.familyName', { attribute: 'name', sub: 'familyname' }],
    ['addresses[type eq "work"]', { attribute: 'addresses', sub: null }],
    ['members[value eq "2819c223"].displayName', { attribute: 'members', sub: 'displayname' }],
    [`${ENTERPRISE}:manager.value`, { attribute: 'manager', sub: 'value', schema: ENTERPRISE.toLowerCase() }],
  ])('%s is read', (text, path) => {
    expect(parsePatchPath(text).path).toMatchObject(path)
  })

  test.each([
    '',
    '.',
    'a.',
    'a.b.c',
    'a b',
    'members[',
    'members[]',
    'members[value eq "a"]x',
    'a[b pr] or c pr',
    'name.x[a pr]',
    '"members"',
  ])('%j is refused', (text) => {
    expect(() => parsePatchPath(text)).toThrow(expect.objectContaining({ scimType: 'invalidPath' }))
  })
})
