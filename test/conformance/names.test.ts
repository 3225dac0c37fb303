/** Both stores give the names that lists choose from: distinct, in key order, page by page, of the snapshot's moment. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Store } from '../../pdp/engine/store/contract.ts'
import { ENVIRONMENT } from '../../pdp/shared/domain/journal.ts'
import type { NameSource } from '../../pdp/shared/domain/tuple.ts'
import { STORES } from '../support/stores.ts'
import { drop, given, grant, member, put } from '../support/tuples.ts'

describe.each(Object.entries(STORES))('names in store %s', (_, open) => {
  let store: Store
  let close: () => Promise<void>
  const names = (log: string, source: NameSource, after: string | null = null, countMax = 100) =>
    store.snapshot((at) => at.names(log, source, { after, countMax }))
  beforeAll(async () => {
    ;({ store, close } = await open())
    await given(
      store,
      'acme',
      put('doc:b#viewer@user:z'),
      put('doc:b#editor@user:z'),
      put('doc:a#viewer@user:z'),
      put('doc:B#viewer@user:y', 1),
      put('docs:c#viewer@group:g#member'),
      put('do:c#viewer@group:g'),
      put('x:c#viewer@group:h#member'),
      put('x:c#viewer@user:*'),
      member('m', 'owner'),
      member('z', 'owner', 'suspended'),
      grant('1', 'r', 'user:k'),
      grant('2', 's', 'user:k'),
      grant('3', 'r', 'group:g'),
    )
    await given(store, ENVIRONMENT, grant('4', 'r', 'service:s'))
    await given(store, 'other', put('doc:elsewhere#viewer@user:else'), member('else', 'owner'))
  })
  afterAll(() => close())

  test.each<[string, string, NameSource, readonly string[]]>([
    ['objects of one type, expired ones too', 'acme', { kind: 'objects', type: 'doc' }, ['doc:B', 'doc:a', 'doc:b']],
    ['subjects with wildcards', 'acme', { kind: 'subjects', type: 'user' }, ['user:*', 'user:y', 'user:z']],
    [
      'subjects with usersets',
      'acme',
      { kind: 'subjects', type: 'group' },
      ['group:g', 'group:g#member', 'group:h#member'],
    ],
    ['members of any status', 'acme', { kind: 'members' }, ['user:m', 'user:z']],
    ['those who were granted a role', 'acme', { kind: 'grantees', type: 'user' }, ['user:k']],
    ['groups that were', 'acme', { kind: 'grantees', type: 'group' }, ['group:g']],
    ['those who were everywhere', ENVIRONMENT, { kind: 'grantees', type: 'service' }, ['service:s']],
    ['nothing of a type that nothing has', 'acme', { kind: 'objects', type: 'doq' }, []],
    ['nothing of an unknown organization', 'nowhere', { kind: 'subjects', type: 'user' }, []],
  ])('are %s', async (_, log, source, expected) => {
    expect(await names(log, source)).toEqual(expected)
    const paged: string[] = []
    for (let after: string | null = null, page = await names(log, source, after, 1); page.length > 0; ) {
      paged.push(...page)
      after = page.at(-1) ?? null
      page = await names(log, source, after, 1)
    }
    expect(paged).toEqual(expected)
  })

  test('begin after a name that is not there', async () => {
    expect(await names('acme', { kind: 'objects', type: 'doc' }, 'doc:C')).toEqual(['doc:a', 'doc:b'])
    expect(await names('acme', { kind: 'members' }, 'user:*')).toEqual(['user:m', 'user:z'])
  })

  test('forget an object with its last tuple', async () => {
    await given(store, 'acme', drop('doc:b#viewer@user:z'))
    expect(await names('acme', { kind: 'objects', type: 'doc' })).toContain('doc:b')
    await given(store, 'acme', drop('doc:b#editor@user:z'))
    expect(await names('acme', { kind: 'objects', type: 'doc' })).toEqual(['doc:B', 'doc:a'])
  })
})
