/** The work that one PATCH may make, since it is done under the locks of the organization. */
import { describe, expect, test } from 'vitest'
import { GROUP, USER } from '../../../../../pdp/server/serve/scim/attributes.ts'
import { ScimError } from '../../../../../pdp/server/serve/scim/errors.ts'
import { patched } from '../../../../../pdp/server/serve/scim/patch.ts'
import type { JsonObject, JsonValue } from '../../../../../pdp/shared/domain/json.ts'

const COUNT = 10_000
const members = Array.from({ length: COUNT }, (_, i) => ({ value: `u${i}` }))
const FULL: JsonObject = { id: 'g', displayName: 'All', members }
const patch = (Operations: readonly JsonValue[], before = FULL, type = GROUP) =>
  patched(before, { Operations: [...Operations] }, type)
const times = (count: number, operation: (i: number) => JsonObject) =>
  Array.from({ length: count }, (_, i) => operation(i))
const refusal = (work: () => unknown): string | null => {
  try {
    work()
    return null
  } catch (err) {
    return err instanceof ScimError ? err.scimType : String(err)
  }
}

describe('a group of 10,000', () => {
  test.each<[string, number, (i: number) => JsonObject]>([
    ['many terms', 10, () => ({ op: 'remove', path: `members[${Array(3).fill('type eq "x"').join(' or ')}]` })],
    ['many passes', 30, () => ({ op: 'remove', path: 'members[type eq "x"]' })],
    [
      'many passes after a look-up each',
      30,
      (i) => ({ op: 'remove', path: `members[value ${i % 2 ? 'sw' : 'eq'} "x"]` }),
    ],
    ['many replacements', 30, () => ({ op: 'replace', path: 'members', value: members })],
    ['many additions of all', 30, () => ({ op: 'add', path: 'members', value: members })],
  ])('is not gone through by %s', (_name, count, operation) => {
    expect(refusal(() => patch(times(count, operation)))).toBe('tooMany')
  })

  test('loses a thousand members and gets them back, in turn, as directories ask', () => {
    const removed = patch(times(1_000, (i) => ({ op: 'Remove', path: `members[value eq "U${i}"]` }))).members
    expect(removed).toEqual(members.slice(1_000))
    const turns = times(1_000, (i) =>
      i % 2 === 0
        ? { op: 'remove', path: `members[value eq "u${i}"]` }
        : { op: 'add', path: 'members', value: [{ value: `u${i - 1}` }] },
    )
    expect(patch(turns).members).toHaveLength(COUNT)
    const lists = times(1_000, (i) => ({ op: 'remove', path: 'members', value: [{ value: `u${i}` }] }))
    expect(patch(lists).members).toEqual(members.slice(1_000))
  })

  test('becomes no larger, not even on the way', () => {
    const operations = [
      { op: 'add', path: 'members', value: [{ value: 'one more' }] },
      { op: 'remove', path: 'members[value eq "one more"]' },
    ]
    expect(refusal(() => patch(operations))).toBe('invalidValue')
  })
})

test('a list of addresses becomes no longer than it may be, not even on the way', () => {
  const before: JsonObject = { id: 'u', userName: 'a' }
  const operations = [
    ...times(60, (i) => ({ op: 'add', path: 'emails', value: [{ value: `${i}@x.test` }] })),
    { op: 'remove', path: 'emails' },
  ]
  expect(refusal(() => patch(operations, before, USER))).toBe('invalidValue')
})
