/** A stored tuple counts only if the model that is in force allows it, whatever was in force when it was written. */
import { beforeEach, describe, expect, test } from 'vitest'
import { createPdp } from '../../../../pdp/engine/decision-point/create-pdp.ts'
import type { Store } from '../../../../pdp/engine/store/contract.ts'
import { memoryStore } from '../../../../pdp/engine/store/memory/memory.ts'
import type { Pdp } from '../../../../pdp/shared/domain/decision.ts'
import { ENVIRONMENT } from '../../../../pdp/shared/domain/journal.ts'
import { user } from '../../../../pdp/shared/domain/subjects.ts'
import { remoteMemoryStore } from '../../../support/stores.ts'
import { given, put } from '../../../support/tuples.ts'

const modelText = (types: { viewer: string; parent: string }): string => `model
  schema 1.1
type team
  relations
    define lead: [user]
type folder
  relations
    define viewer: [user]
type doc
  relations
    define parent: [${types.parent}]
    define viewer: [${types.viewer}]
    define reader: viewer from parent
`

describe.each([
  ['memory', memoryStore],
  ['the cache', remoteMemoryStore],
])('type restrictions with %s', (_, open) => {
  let store: Store
  let pdp: Pdp
  const model = (types: { viewer: string; parent: string }): Promise<void> =>
    given(store, ENVIRONMENT, {
      kind: 'manifest',
      manifest: { app: 'docs', audiences: [], permissions: {}, roles: {}, model: modelText(types) },
    })
  const can = (relation: string, resource = 'doc:1') => pdp.can('acme', user('ann'), relation, resource)
  beforeEach(async () => {
    store = open()
    pdp = createPdp({ store })
    await given(store, 'acme')
  })

  test.each([
    ['a user', 'doc:1#viewer@user:ann', 'user', 'service'],
    ['a wildcard', 'doc:1#viewer@user:*', 'user:*', 'user, service'],
    ['a userset', 'doc:1#viewer@team:x#lead', 'team#lead', 'user, team'],
    ['a group', 'doc:1#viewer@group:x#member', 'group#member', 'user'],
  ])('let %s count as long as the model names it', async (_name, text, allowed, forbidden) => {
    await given(store, 'acme', put(text), put('team:x#lead@user:ann'), put('group:x#member@user:ann'))
    for (let round = 0; round < 2; round++) {
      await model({ viewer: allowed, parent: 'folder' })
      expect(await can('viewer')).toBe(true)
      await model({ viewer: forbidden, parent: 'folder' })
      expect(await can('viewer')).toBe(false)
    }
  })

  describe('take no id that ends like a wildcard for one', () => {
    beforeEach(() => model({ viewer: 'user, user:*', parent: 'folder' }))

    test.each(['x:*', '*:*', ':*'])('of the subject user:%s', async (id) => {
      await given(store, 'acme', put(`doc:1#viewer@user:${id}`))
      expect(await can('viewer')).toBe(false)
      expect(await pdp.can('acme', user(id), 'viewer', 'doc:1')).toBe(true)
    })

    test('of the object or of its parent', async () => {
      await given(store, 'acme', put('doc:1#viewer@user:bob'), put('doc:2#viewer@user:bob'))
      await given(store, 'acme', put('doc:x:*#viewer@user:ann'), put('doc:1:*#viewer@user:ann'))
      expect(await Promise.all(['doc:1', 'doc:2', 'doc:x:*'].map((doc) => can('viewer', doc)))).toEqual([
        false,
        false,
        true,
      ])
      await given(store, 'acme', put('doc:3#parent@folder:f:*'), put('folder:f:*#viewer@user:ann'))
      expect(await can('reader', 'doc:3')).toBe(true)
    })
  })

  test('let a parent count as long as the model names its type', async () => {
    await given(store, 'acme', put('doc:1#parent@folder:f'), put('folder:f#viewer@user:ann'))
    await model({ viewer: 'user', parent: 'doc, folder' })
    expect(await can('reader')).toBe(true)
    await model({ viewer: 'user', parent: 'doc' })
    expect(await can('reader')).toBe(false)
  })

  test('let one of many parents count as long as the model names its type', async () => {
    const folders = Array.from({ length: 20 }, (_, i) => `folder:f${i}`)
    await given(store, 'acme', ...folders.map((folder) => put(`doc:1#parent@${folder}`)))
    await given(store, 'acme', put(`${folders.at(-1)}#viewer@user:ann`))
    await model({ viewer: 'user', parent: 'doc, folder' })
    expect(await can('reader')).toBe(true)
    await model({ viewer: 'user', parent: 'doc' })
    expect(await can('reader')).toBe(false)
  })

  test('let nothing count of a relation that the model dropped', async () => {
    await given(store, 'acme', put('doc:1#editor@user:ann'), put('doc:2#viewer@doc:1#editor'))
    expect(await can('editor')).toBe(true)
    await model({ viewer: 'user', parent: 'doc' })
    expect(await can('editor')).toBe(false)
    expect(await can('viewer', 'doc:2')).toBe(false)
  })
})
