/** Requests as a whole, on every store: batches, malformed ones, bounds, and a store that fails. */
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { createPdp } from '../../../../pdp/engine/decision-point/create-pdp.ts'
import type { Store } from '../../../../pdp/engine/store/contract.ts'
import type { Pdp } from '../../../../pdp/shared/domain/decision.ts'
import { ENVIRONMENT } from '../../../../pdp/shared/domain/journal.ts'
import { user } from '../../../../pdp/shared/domain/subjects.ts'
import { STORES } from '../../../support/stores.ts'
import { drop, gate, given, PARADOX, put } from '../../../support/tuples.ts'

describe.each(Object.entries(STORES))('requests on %s', (_, open) => {
  let store: Store
  let pdp: Pdp
  let close: () => Promise<void>

  beforeEach(async () => {
    ;({ store, close } = await open())
    pdp = createPdp({ store })
    await given(store, 'acme')
  })
  afterEach(() => close())

  test('answers a batch in order at one moment, with its revision', async () => {
    await given(store, 'acme', put('doc:1#viewer@user:ann'), gate('feature.x', true))
    const ask = () =>
      pdp.decide({
        organization: 'acme',
        subject: user('ann'),
        permissions: ['doc:2', 'doc:1', 'doc:2'].map((resource) => ({ relation: 'viewer', resource })),
        entitlements: ['feature.x', 'feature.y'],
      })
    const decision = await ask()
    expect(decision.permissions.map((p) => p.allowed)).toEqual([false, true, false])
    expect([...decision.entitlements.keys()]).toEqual(['feature.x', 'feature.y'])
    expect((await ask()).revision).toBe(decision.revision)
    await given(store, 'acme', drop('doc:1#viewer@user:ann'))
    expect((await ask()).revision).not.toBe(decision.revision)
  })

  test('keeps an item that cannot be decided from spoiling the others', async () => {
    await given(store, ENVIRONMENT, { kind: 'manifest', manifest: PARADOX })
    await given(store, 'acme', put('liar:0#next@liar:0'), put('liar:0#named@user:ann'), put('doc:1#viewer@user:ann'))
    const { permissions } = await pdp.decide({
      organization: 'acme',
      subject: user('ann'),
      permissions: [
        { relation: 'honest', resource: 'liar:0' },
        { relation: 'viewer', resource: 'doc:1' },
      ],
    })
    expect(permissions).toMatchObject([{ allowed: false, error: 'evaluation_limit' }, { allowed: true }])
    expect(permissions[1]).not.toHaveProperty('error')
  })

  test.each([
    [
      'a resource without a type',
      { permissions: [{ relation: 'viewer', resource: 'doc' }] },
      '/permissions/0/resource',
    ],
    [
      'a resource with an empty id',
      { permissions: [{ relation: 'viewer', resource: 'doc:' }] },
      '/permissions/0/resource',
    ],
    [
      'a relation with a space',
      { permissions: [{ relation: 'view er', resource: 'doc:1' }] },
      '/permissions/0/relation',
    ],
    ['an empty relation', { permissions: [{ relation: '', resource: 'doc:1' }] }, '/permissions/0/relation'],
    ['257 checks', { permissions: Array(257).fill({ relation: 'viewer', resource: 'doc:1' }) }, '/permissions'],
    ['257 entitlements', { entitlements: Array(257).fill('x') }, '/entitlements'],
    ['an entitlement key with a hash', { entitlements: ['a#b'] }, '/entitlements/0'],
    ['a subject id with a hash', { subject: user('a#b') }, '/subject/id'],
    ['an organization with a space', { organization: 'a b' }, '/organization'],
  ])('refuses %s, naming its place', async (_, wrong, place) => {
    await expect(pdp.decide({ organization: 'acme', subject: user('ann'), ...wrong })).rejects.toMatchObject({
      code: 'request_invalid',
      issues: [{ place }],
    })
  })

  test('accepts 256 checks and 256 entitlements', async () => {
    const { permissions, entitlements } = await pdp.decide({
      organization: 'acme',
      subject: user('ann'),
      permissions: Array(256).fill({ relation: 'viewer', resource: 'doc:1' }),
      entitlements: Array.from({ length: 256 }, (_, i) => `k${i}`),
    })
    expect([permissions.length, entitlements.size]).toEqual([256, 256])
  })

  test('fails when the store fails, and never allows', async () => {
    const broken: Store = { ...store, vector: () => Promise.reject(new Error('gone')) }
    if ('currentView' in broken) delete broken.currentView // what is in this process cannot be out of reach
    await expect(createPdp({ store: broken }).can('acme', user('ann'), 'viewer', 'doc:1')).rejects.toThrow('gone')
  })
})
