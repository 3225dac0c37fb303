/** A relation with 100,000 parents and a set of 100,000 usersets are asked from the subject's side, in memory and on PostgreSQL. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createPdp } from '../../../../../pdp/engine/decision-point/create-pdp.ts'
import type { Pdp } from '../../../../../pdp/shared/domain/decision.ts'
import { ENVIRONMENT } from '../../../../../pdp/shared/domain/journal.ts'
import { user } from '../../../../../pdp/shared/domain/subjects.ts'
import { type OpenedStore, STORES } from '../../../../support/stores.ts'
import { drop, given, put } from '../../../../support/tuples.ts'

const COUNT = 100_000
const TIMEOUT_MS = 600_000
const MODEL = `model
  schema 1.1
type user
type folder
  relations
    define viewer: [user]
type team
  relations
    define member: [user, team#member]
type doc
  relations
    define parent: [folder]
    define viewer: viewer from parent
    define editor: [user, team#member]
    define banned: [team#member]
    define signer: viewer but not banned
`

describe.each(Object.entries(STORES))('100,000 parents and usersets in %s', (_, open) => {
  let opened: OpenedStore
  let pdp: Pdp
  const can = (who: string, relation: string) => pdp.can('acme', user(who), relation, 'doc:1')

  beforeAll(async () => {
    opened = await open()
    const { store } = opened
    const manifest = { app: 'app', audiences: [], permissions: {}, roles: {}, model: MODEL }
    await given(store, ENVIRONMENT, { kind: 'manifest', manifest })
    await given(store, 'acme')
    for (let i = 0; i < COUNT; i += 1_000) {
      const numbers = Array.from({ length: 1_000 }, (_, k) => i + k)
      await given(store, 'acme', ...numbers.map((k) => put(`doc:1#parent@folder:${k}`)))
      await given(store, 'acme', ...numbers.map((k) => put(`doc:1#editor@team:${k}#member`)))
      await given(store, 'acme', ...numbers.map((k) => put(`doc:1#banned@team:${k}#member`)))
    }
    await given(store, 'acme', put('folder:99999#viewer@user:ann'), put('folder:0#viewer@user:cut'))
    await given(store, 'acme', put('team:50000#member@team:deep#member'), put('team:deep#member@user:bob'))
    await given(store, 'acme', put('team:7#member@user:cut'), put('folder:other#viewer@user:eve'))
    pdp = createPdp({ store })
  }, TIMEOUT_MS)
  afterAll(() => opened.close())

  test('finds the one that holds the subject, and denies who is in none', { timeout: TIMEOUT_MS }, async () => {
    const found = async (who: string) =>
      Promise.all(['viewer', 'editor', 'signer'].map((relation) => can(who, relation)))
    expect(await found('ann')).toEqual([true, false, true])
    expect(await found('bob')).toEqual([false, true, false])
    expect(await found('cut')).toEqual([true, true, false])
    expect(await found('eve')).toEqual([false, false, false])
  })

  test('follows what is written to them', { timeout: TIMEOUT_MS }, async () => {
    await given(opened.store, 'acme', drop('doc:1#parent@folder:99999'), put('doc:1#parent@folder:other'))
    expect([await can('ann', 'viewer'), await can('eve', 'viewer')]).toEqual([false, true])
    await given(opened.store, 'acme', drop('team:50000#member@team:deep#member'), drop('doc:1#banned@team:7#member'))
    expect([await can('bob', 'editor'), await can('cut', 'signer')]).toEqual([false, true])
  })
})
