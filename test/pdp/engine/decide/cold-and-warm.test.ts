/** What happens to be cached does not change an answer. */
import { describe, expect, test } from 'vitest'
import { createPdp } from '../../../../pdp/engine/decision-point/create-pdp.ts'
import { SET_ROWS_MAX } from '../../../../pdp/engine/store/contract.ts'
import type { Change } from '../../../../pdp/shared/domain/change.ts'
import { ENVIRONMENT } from '../../../../pdp/shared/domain/journal.ts'
import { user } from '../../../../pdp/shared/domain/subjects.ts'
import { remoteMemoryStore } from '../../../support/stores.ts'
import { gate, given, grant, put, renamed } from '../../../support/tuples.ts'

describe('an answer', () => {
  test('is the allow that is there, though a bound was reached before its rows were loaded', async () => {
    const store = remoteMemoryStore()
    const chain = Array.from({ length: 30 }, (_, i) => put(`team:deep${i}#lead@team:deep${i + 1}#lead`))
    await given(
      store,
      'acme',
      ...chain,
      put('doc:1#viewer@team:a#lead'),
      put('doc:1#viewer@team:deep0#lead'),
      put('team:a#lead@user:ann'),
    )
    const ask = async (pdp: ReturnType<typeof createPdp>) => pdp.can('acme', user('ann'), 'viewer', 'doc:1')
    expect(await ask(createPdp({ store, tuplesPerCheckMax: 40 }))).toBe(true)
    const warmed = createPdp({ store, tuplesPerCheckMax: 40 })
    for (const level of [24, 18, 12]) await warmed.can('acme', user('ann'), 'lead', `team:deep${level}`)
    await expect(warmed.can('acme', user('ann'), 'lead', 'team:deep0')).rejects.toMatchObject({
      code: 'evaluation_limit',
    })
    expect(await ask(warmed)).toBe(true)
  })

  test('is the one under the model, though a bound was reached before the model was loaded again', async () => {
    const store = remoteMemoryStore()
    const pdp = createPdp({ store, tuplesPerCheckMax: 40 })
    await given(store, 'acme', ...Array.from({ length: 30 }, (_, i) => put(`doc:${i}#viewer@doc:${i + 1}#viewer`)))
    for (const level of [24, 18, 12]) await pdp.can('acme', user('ann'), 'viewer', `doc:${level}`)
    await expect(pdp.can('acme', user('ann'), 'viewer', 'doc:0')).rejects.toMatchObject({ code: 'evaluation_limit' })
    const model = 'model\n  schema 1.1\ntype doc\n  relations\n    define viewer: [user]\n'
    const manifest = { app: 'docs', audiences: [], permissions: {}, roles: {}, model }
    await given(store, ENVIRONMENT, { kind: 'manifest', manifest })
    // More entries than a cache catches up on one by one, so that it starts anew.
    for (let i = 0; i <= 1_000; i++) await given(store, ENVIRONMENT, renamed('acme', `Acme ${i}`))
    expect(await pdp.can('acme', user('ann'), 'viewer', 'doc:0')).toBe(false)
  })

  test('is the allow of a member whose row is not loaded, though the group’s other rows are', async () => {
    const store = remoteMemoryStore()
    const others = Array.from({ length: SET_ROWS_MAX + 1 }, (_, i) => put(`team:wide#lead@user:u${i}`))
    await given(store, 'acme', put('doc:1#viewer@team:wide#lead'), ...others, put('team:wide#lead@user:zoe'))
    const pdp = createPdp({ store })
    const can = (name: string) => pdp.can('acme', user(name), 'viewer', 'doc:1')
    expect([await can('nobody'), await can('u0'), await can('zoe')]).toEqual([false, true, true])
  })

  // A cache that forgot one of these in a key would give the first answer again.
  const asked = { organization: 'acme', type: 'user', id: 'ann', relation: 'viewer', resource: 'doc:1' } as const
  test.each<[string, Partial<Record<keyof typeof asked, string>>]>([
    ['organization', { organization: 'other' }],
    ['kind of subject', { type: 'service' }],
    ['subject', { id: 'bob' }],
    ['relation', { relation: 'editor' }],
    ['resource', { resource: 'doc:2' }],
    ['type of resource', { resource: 'file:1' }],
  ])('is not given to a question that differs in its %s', async (_, other) => {
    const store = remoteMemoryStore()
    await given(store, 'acme', put('doc:1#viewer@user:ann'))
    await given(store, 'other', put('doc:1#viewer@user:zoe'))
    const pdp = createPdp({ store, tuplesPerCheckMax: 40 })
    const ask = (q: { [key in keyof typeof asked]: string }): Promise<boolean> =>
      pdp.can(q.organization, { type: q.type === 'user' ? 'user' : 'service', id: q.id }, q.relation, q.resource)
    for (let round = 0; round < 2; round++) {
      expect(await ask(asked)).toBe(true)
      expect(await ask({ ...asked, ...other })).toBe(false)
    }
  })

  test('is not given to a question about another app, another gate, or another organization of the same gate', async () => {
    const store = remoteMemoryStore()
    const manifest = (app: string, permissions: readonly string[]): Change => ({
      kind: 'manifest',
      manifest: {
        app,
        audiences: [],
        permissions: { read: 'x' },
        roles: { r: { name: 'R', permissions } },
        model: null,
      },
    })
    await given(store, ENVIRONMENT, manifest('one', ['read']), manifest('two', []))
    await given(store, 'acme', grant('1', 'r', 'user:ann', 'one'), grant('2', 'r', 'user:ann', 'two'), gate('x', true))
    await given(store, 'other', gate('x', false), gate('y', true))
    const pdp = createPdp({ store, tuplesPerCheckMax: 40 })
    const ask = async (app: string): Promise<boolean | undefined> => {
      const permissions = [{ relation: 'read', resource: 'organization:acme' }]
      return (await pdp.decide({ organization: 'acme', subject: user('ann'), app, permissions })).permissions[0]
        ?.allowed
    }
    for (let round = 0; round < 2; round++) {
      expect([await ask('one'), await ask('two')]).toEqual([true, false])
      const gates = [pdp.entitlement('acme', 'x'), pdp.entitlement('other', 'x'), pdp.entitlement('acme', 'y')]
      expect((await Promise.all(gates)).map((found) => found?.boolean())).toEqual([true, false, undefined])
    }
  })
})
