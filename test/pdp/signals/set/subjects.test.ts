import { expect, test } from 'vitest'
import { SetError } from '../../../../pdp/signals/set/errors.ts'
import { formatSubject, parseSubject, subjectKey, subjectsMatch } from '../../../../pdp/signals/set/subjects.ts'

const ALICE = { format: 'iss_sub', iss: 'https://idp.example', sub: 'alice' }
const ACME = { format: 'opaque', id: 'acme' }
const SIMPLE = [
  { format: 'account', uri: 'acct:example.user@service.example.com' },
  { format: 'email', email: 'user@example.com' },
  ALICE,
  ACME,
  { format: 'phone_number', phone_number: '+12065550100' },
  { format: 'did', url: 'did:example:123456/did/url/path?versionId=1' },
  { format: 'uri', uri: 'urn:uuid:4e851e98-83c4-4743-a5da-150ecb53042f' },
  { format: 'aliases', identifiers: [ALICE, ACME] },
  { format: 'jwt_id', iss: 'https://idp.example', jti: 'B70BA622' },
  { format: 'saml_assertion_id', issuer: 'https://idp.example', assertion_id: '_8e8dc5f6' },
  { format: 'ip-addresses', 'ip-addresses': ['10.29.37.75', '2001:db8:0:0:0:0:0:1'] },
]

test.each(SIMPLE)('reads a subject of the format $format, and writes it as it was', (subject) => {
  expect(formatSubject(parseSubject(subject))).toEqual(subject)
})

test('reads a complex subject with the members of the specification and others', () => {
  const subject = { format: 'complex', user: ALICE, session: ACME, tenant: ACME, workload: ACME }
  expect(formatSubject(parseSubject(subject))).toEqual(subject)
})

test.each([
  [undefined, 'sub_id is not a JSON object'],
  [null, 'sub_id is not a JSON object'],
  ['alice', 'sub_id is not a JSON object'],
  [[ALICE], 'sub_id is not a JSON object'],
  [{}, 'sub_id.format is missing'],
  [{ format: 7 }, 'sub_id.format is missing'],
  [{ ...ALICE, format: 'ISS_SUB' }, 'sub_id.format is not a known format'],
  [{ format: 'toString' }, 'sub_id.format is not a known format'],
  [{ format: '__proto__' }, 'sub_id.format is not a known format'],
  [{ format: 'iss_sub', iss: 'https://idp.example' }, 'sub_id.sub is malformed'],
  [{ ...ALICE, sub: '' }, 'sub_id.sub is malformed'],
  [{ ...ALICE, sub: 7 }, 'sub_id.sub is malformed'],
  [{ ...ALICE, sub: 'a\0b' }, 'sub_id.sub is malformed'],
  [{ ...ALICE, sub: 'a'.repeat(1_025) }, 'sub_id.sub is malformed'],
  [{ ...ALICE, email: 'a@b' }, 'sub_id has members that its format does not define'],
  [{ format: 'email', email: 'nobody' }, 'sub_id.email is malformed'],
  [{ format: 'phone_number', phone_number: '206 555 0100' }, 'sub_id.phone_number is malformed'],
  [{ format: 'account', uri: 'mailto:a@b' }, 'sub_id.uri is malformed'],
  [{ format: 'did', url: 'https://idp.example' }, 'sub_id.url is malformed'],
  [{ format: 'uri', uri: 'no scheme' }, 'sub_id.uri is malformed'],
  [{ format: 'aliases', identifiers: [] }, 'sub_id.identifiers is not a list of 1 to 20'],
  [{ format: 'aliases', identifiers: Array(21).fill(ACME) }, 'sub_id.identifiers is not a list of 1 to 20'],
  [
    { format: 'aliases', identifiers: [{ format: 'aliases', identifiers: [ACME] }] },
    'sub_id.identifiers[0] is a list of aliases itself',
  ],
  [{ format: 'aliases', identifiers: [ACME], id: '1' }, 'sub_id has members that its format does not define'],
  [{ format: 'ip-addresses', 'ip-addresses': ['10.0.0.256'] }, 'sub_id.ip-addresses[0] is not an IP address'],
  [{ format: 'ip-addresses', 'ip-addresses': '10.0.0.1' }, 'sub_id.ip-addresses is not a list of 1 to 20'],
  [{ format: 'complex' }, 'sub_id has not 1 to 16 members'],
  [
    { format: 'complex', ...Object.fromEntries(Array.from({ length: 17 }, (_, i) => [`m${i}`, ACME])) },
    'sub_id has not 1 to 16 members',
  ],
  [{ format: 'complex', user: 'alice' }, 'sub_id.user is not a JSON object'],
  [{ format: 'complex', user: [ALICE] }, 'sub_id.user is not a JSON object'],
  [{ format: 'complex', 'a b': ACME }, 'sub_id has a member whose name is malformed'],
  [
    JSON.parse('{"format":"complex","__proto__":{"format":"opaque","id":"1"}}'),
    'sub_id has a member whose name is malformed',
  ],
  [
    { format: 'complex', user: { format: 'complex', user: ALICE } },
    'sub_id.user is a complex subject inside another subject',
  ],
])('refuses %j', (subject, message) => {
  expect(() => parseSubject(subject)).toThrow(new SetError('invalid_request', message))
})

test('subjects are one subject whatever the order of their members', () => {
  const [a, b] = [parseSubject(ALICE), parseSubject({ sub: 'alice', format: 'iss_sub', iss: 'https://idp.example' })]
  expect(subjectKey(a)).toBe(subjectKey(b))
})

const complex = (parts: object): object => ({ format: 'complex', ...parts })
const BOB = { ...ALICE, sub: 'bob' }
test.each([
  ['identical simple subjects', ALICE, ALICE, true],
  ['simple subjects of different values', ALICE, BOB, false],
  ['simple subjects of different formats', ALICE, ACME, false],
  ['an address of another case', { format: 'email', email: 'A@b' }, { format: 'email', email: 'a@b' }, false],
  ['identical complex subjects', complex({ user: ALICE }), complex({ user: ALICE }), true],
  ['a member that one of them lacks', complex({ user: ALICE }), complex({ user: ALICE, tenant: ACME }), true],
  ['no member in common', complex({ user: ALICE }), complex({ tenant: ACME }), true],
  ['a member that differs', complex({ user: ALICE, tenant: ACME }), complex({ user: BOB, tenant: ACME }), false],
  ['a simple subject and the user of a complex one', ALICE, complex({ user: ALICE, session: ACME }), true],
  ['a simple subject and another user', BOB, complex({ user: ALICE }), false],
  ['a simple subject and a complex one without a user', ACME, complex({ tenant: ACME }), false],
])('matching compares %s', (_, a, b, matches) => {
  expect(subjectsMatch(parseSubject(a), parseSubject(b))).toBe(matches)
  expect(subjectsMatch(parseSubject(b), parseSubject(a))).toBe(matches)
})
