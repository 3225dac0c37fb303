/** What is allowed and why, on every store: relationships, memberships, roles and entitlements. */
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { createPdp } from '../../../../pdp/engine/decision-point/create-pdp.ts'
import type { Store } from '../../../../pdp/engine/store/contract.ts'
import type { Pdp } from '../../../../pdp/shared/domain/decision.ts'
import { ENVIRONMENT } from '../../../../pdp/shared/domain/journal.ts'
import { service, user } from '../../../../pdp/shared/domain/subjects.ts'
import { STORES } from '../../../support/stores.ts'
import { context, drop, gate, given, grant, member, organization, put } from '../../../support/tuples.ts'

const FAR = Date.now() + 86_400_000

describe.each(Object.entries(STORES))('decisions on %s', (_, open) => {
  let store: Store
  let pdp: Pdp
  let close: () => Promise<void>
  const can = (relation: string, resource: string, subject = user('ann')) =>
    pdp.can('acme', subject, relation, resource)
  const why = async (relation: string, resource: string, app: string | null = null) => {
    const { permissions } = await pdp.decide({
      organization: 'acme',
      subject: user('ann'),
      permissions: [{ relation, resource }],
      app,
    })
    return permissions[0]?.reasonCode
  }

  beforeEach(async () => {
    ;({ store, close } = await open())
    pdp = createPdp({ store })
    await given(store, 'acme')
  })
  afterEach(() => close())

  describe('relationships', () => {
    test('denies when nothing is granted', async () => {
      expect(await can('viewer', 'doc:1')).toBe(false)
      expect(await why('viewer', 'doc:1')).toBe('none')
    })

    test('allows by a tuple and by nothing near it', async () => {
      await given(store, 'acme', put('doc:1#viewer@user:ann'))
      expect(await can('viewer', 'doc:1')).toBe(true)
      expect(await why('viewer', 'doc:1')).toBe('tuple')
      expect(await can('editor', 'doc:1')).toBe(false)
      expect(await can('viewer', 'doc:2')).toBe(false)
      expect(await can('viewer', 'doc:1', user('bob'))).toBe(false)
      expect(await can('viewer', 'doc:1', service('ann'))).toBe(false)
      expect(await pdp.can('other', user('ann'), 'viewer', 'doc:1')).toBe(false)
    })

    test('allows through nested groups, and no longer once any link is removed', async () => {
      await given(
        store,
        'acme',
        put('doc:1#viewer@group:top#member'),
        put('group:top#member@group:mid#member'),
        put('group:mid#member@group:low#member'),
        put('group:low#member@user:ann'),
      )
      expect(await can('viewer', 'doc:1')).toBe(true)
      expect(await why('viewer', 'doc:1')).toBe('group')
      for (const link of [
        'group:low#member@user:ann',
        'group:top#member@group:mid#member',
        'doc:1#viewer@group:top#member',
      ]) {
        await given(store, 'acme', drop(link))
        expect(await can('viewer', 'doc:1')).toBe(false)
        await given(store, 'acme', put(link))
        expect(await can('viewer', 'doc:1')).toBe(true)
      }
    })

    test('allows through usersets of any type', async () => {
      await given(
        store,
        'acme',
        put('doc:1#viewer@team:x#lead'),
        put('team:x#lead@project:y#owner'),
        put('project:y#owner@user:ann'),
      )
      expect(await can('viewer', 'doc:1')).toBe(true)
    })

    test('ends in cycles, allowing what is granted inside one', async () => {
      await given(
        store,
        'acme',
        put('group:a#member@group:b#member'),
        put('group:b#member@group:a#member'),
        put('doc:1#viewer@group:a#member'),
      )
      expect(await can('viewer', 'doc:1')).toBe(false)
      await given(store, 'acme', put('group:b#member@user:ann'))
      expect(await can('viewer', 'doc:1')).toBe(true)
      await given(store, 'acme', put('t:a#r@t:b#r'), put('t:b#r@t:a#r'), put('t:b#r@user:ann'))
      expect(await can('r', 't:a')).toBe(true)
      expect(await can('r', 't:a', user('bob'))).toBe(false)
    })

    test('does not let a wildcard tuple count where no model allows it', async () => {
      await given(store, 'acme', put('doc:1#viewer@user:*'))
      expect(await can('viewer', 'doc:1')).toBe(false)
    })

    test('honours the expiry at its instant, direct and through groups', async () => {
      await given(store, 'acme', put('doc:1#viewer@user:ann', 1), put('doc:2#viewer@user:ann', FAR))
      await given(store, 'acme', put('group:g#member@user:ann', 1), put('doc:3#viewer@group:g#member'))
      expect(await Promise.all(['doc:1', 'doc:2', 'doc:3'].map((doc) => can('viewer', doc)))).toEqual([
        false,
        true,
        false,
      ])
    })

    test('says until when an answer holds', async () => {
      await given(store, 'acme', put('doc:2#viewer@user:ann', FAR), put('doc:4#viewer@user:ann'))
      const ask = async (...docs: string[]) =>
        (
          await pdp.decide({
            organization: 'acme',
            subject: user('ann'),
            permissions: docs.map((resource) => ({ relation: 'viewer', resource })),
          })
        ).validUntilMs
      expect(await ask('doc:4', 'doc:9')).toBeNull()
      expect(await ask('doc:4', 'doc:2')).toBe(FAR)
    })

    test('answers in a set that is too wide to load', async () => {
      await given(store, 'acme', ...Array.from({ length: 1_001 }, (_, i) => put(`doc:1#viewer@user:${i}`)))
      await given(store, 'acme', put('doc:1#viewer@group:g#member'), put('group:g#member@user:ann'))
      expect(await can('viewer', 'doc:1', user('1000'))).toBe(true)
      expect(await can('viewer', 'doc:1', user('1001'))).toBe(false)
      expect(await can('viewer', 'doc:1')).toBe(true)
    })
  })

  describe('memberships', () => {
    test('shows the tier on the own organization only, and no tier implies another', async () => {
      await given(store, 'acme', member('ann', 'admin'))
      await given(store, 'other', member('ann', 'owner'))
      expect(await can('admin', 'organization:acme')).toBe(true)
      expect(await why('admin', 'organization:acme')).toBe('membership')
      expect(await can('active_member', 'organization:acme')).toBe(true)
      expect(await can('member', 'organization:acme')).toBe(false)
      expect(await can('owner', 'organization:acme')).toBe(false)
      expect(await can('owner', 'organization:other')).toBe(false)
      expect(await can('admin', 'organization:emca'), 'an id of the same length').toBe(false)
    })

    test('serves as a userset of a tuple', async () => {
      await given(store, 'acme', put('doc:1#viewer@organization:acme#active_member'), member('ann', 'viewer'))
      expect(await can('viewer', 'doc:1')).toBe(true)
      expect(await can('viewer', 'doc:1', user('bob'))).toBe(false)
    })

    test.each(['invited', 'suspended'] as const)(
      'lets nothing in the organization count while it is %s',
      async (status) => {
        await given(
          store,
          'acme',
          put('doc:1#viewer@user:ann'),
          grant('g1', 'reader', 'user:ann'),
          member('ann', 'owner', status),
        )
        await given(store, ENVIRONMENT, {
          kind: 'role',
          key: 'reader',
          role: { key: 'reader', name: 'Reader', permissions: ['things:read'] },
        })
        expect(await can('viewer', 'doc:1')).toBe(false)
        expect(await can('owner', 'organization:acme')).toBe(false)
        expect(await can('active_member', 'organization:acme')).toBe(false)
        expect(await can('things:read', 'organization:acme')).toBe(false)
        expect(await why('viewer', 'doc:1')).toBe('membership_suspended')
        await given(store, 'acme', member('ann', 'owner'))
        expect(await can('viewer', 'doc:1')).toBe(true)
        expect(await can('things:read', 'organization:acme')).toBe(true)
      },
    )

    test('leaves guests their explicit grants and services theirs', async () => {
      await given(store, 'acme', put('doc:1#viewer@user:ann'), put('doc:1#viewer@service:bot'))
      expect(await can('viewer', 'doc:1')).toBe(true)
      expect(await can('viewer', 'doc:1', service('bot'))).toBe(true)
      expect(await can('active_member', 'organization:acme')).toBe(false)
    })
  })

  describe('roles', () => {
    const manifest = {
      app: 'billing',
      audiences: [],
      permissions: { 'invoices:read': 'read', 'invoices:approve': 'approve' },
      roles: { approver: { name: 'Approver', permissions: ['invoices:approve'] } },
      model: null,
    }
    beforeEach(async () => {
      await given(store, ENVIRONMENT, { kind: 'manifest', manifest }, organization('child', 'acme'))
      await given(store, ENVIRONMENT, {
        kind: 'role',
        key: 'reader',
        role: { key: 'reader', name: 'Reader', permissions: ['things:read'] },
      })
    })

    test('answers permission keys on the app and, for the app of the token, on the organization', async () => {
      await given(store, 'acme', grant('g1', 'approver', 'user:ann', 'billing'))
      expect(await can('invoices:approve', 'app:billing')).toBe(true)
      expect(await why('invoices:approve', 'app:billing')).toBe('role')
      expect(await why('invoices:approve', 'organization:acme', 'billing')).toBe('role')
      expect(await why('invoices:approve', 'organization:acme')).toBe('unknown_relation')
      expect(await can('invoices:read', 'app:billing')).toBe(false)
      expect(await why('invoices:delete', 'app:billing')).toBe('unknown_relation')
      expect(await why('invoices:approve', 'app:other')).toBe('unknown_relation')
    })

    test('gives nothing on an app by a tuple, which no role gives', async () => {
      await given(store, 'acme', put('app:billing#viewer@user:ann'))
      expect(await can('viewer', 'app:billing')).toBe(false)
    })

    test('rolls down to descendants and not up', async () => {
      await given(store, 'acme', grant('g1', 'reader', 'user:ann'))
      await given(store, 'child', grant('g2', 'reader', 'user:bob'))
      const ask = (org: string, who: string) =>
        pdp.decide({
          organization: org,
          subject: user(who),
          permissions: [{ relation: 'things:read', resource: `organization:${org}` }],
        })
      expect((await ask('child', 'ann')).permissions[0]).toMatchObject({
        allowed: true,
        reasonCode: 'role_rolled_down',
      })
      expect((await ask('acme', 'bob')).permissions[0]).toMatchObject({ allowed: false })
    })

    test('resolves groups in the organization that holds the grant', async () => {
      await given(
        store,
        'acme',
        grant('g1', 'reader', 'group:staff'),
        put('group:staff#member@group:inner#member'),
        put('group:inner#member@user:ann'),
      )
      await given(store, 'child', put('group:staff#member@user:eve'))
      expect(await pdp.can('child', user('ann'), 'things:read', 'organization:child')).toBe(true)
      expect(await pdp.can('child', user('eve'), 'things:read', 'organization:child')).toBe(false)
    })

    test('does not count a grant of an ancestor in which the membership is suspended', async () => {
      await given(store, 'acme', grant('g1', 'reader', 'user:ann'), member('ann', 'admin', 'suspended'))
      expect(await pdp.can('child', user('ann'), 'things:read', 'organization:child')).toBe(false)
    })

    test('grants environment-wide', async () => {
      await given(store, ENVIRONMENT, grant('g1', 'reader', 'service:bot'))
      const { permissions } = await pdp.decide({
        organization: 'child',
        subject: service('bot'),
        permissions: [{ relation: 'things:read', resource: 'organization:child' }],
      })
      expect(permissions[0]).toMatchObject({ allowed: true, reasonCode: 'role_environment' })
      await expect(given(store, ENVIRONMENT, grant('g2', 'reader', 'group:staff'))).rejects.toMatchObject({
        code: 'request_invalid',
      })
    })

    test('gives nothing in an organization that does not exist, not even by a grant of the environment', async () => {
      await given(store, ENVIRONMENT, grant('g1', 'reader', 'service:bot'))
      const asked = { organization: 'nowhere', subject: service('bot'), app: 'billing' }
      const permissions = [
        { relation: 'things:read', resource: 'organization:nowhere' },
        { relation: 'invoices:delete', resource: 'app:billing' },
      ]
      // Not `unknown_relation`: of an organization that does not exist, nothing more is evaluated.
      const denied = { allowed: false, reasonCode: 'none' }
      expect((await pdp.decide({ ...asked, permissions })).permissions).toMatchObject([denied, denied])
    })

    test('gives the same roles and permissions to the claims as to the checks', async () => {
      await given(
        store,
        'acme',
        grant('g1', 'approver', 'user:ann', 'billing'),
        grant('g2', 'reader', 'user:ann'),
        grant('g3', 'gone', 'user:ann'),
      )
      expect(await pdp.held({ organization: 'child', subject: user('ann'), app: 'billing' })).toEqual({
        roles: ['approver', 'reader'],
        permissions: ['invoices:approve', 'things:read'],
      })
      expect(await pdp.held({ organization: 'child', subject: user('ann'), app: null })).toEqual({
        roles: ['reader'],
        permissions: ['things:read'],
      })
      expect(await pdp.held({ organization: 'nowhere', subject: user('ann'), app: null })).toEqual({
        roles: [],
        permissions: [],
      })
    })
  })

  describe('entitlements', () => {
    test('is null when there is none, and live when there is', async () => {
      expect(await pdp.entitlement('acme', 'feature.x')).toBeNull()
      await given(store, 'acme', gate('feature.x', true))
      const on = await pdp.entitlement('acme', 'feature.x')
      expect([on?.boolean(), on?.value, on?.version]).toEqual([true, { enabled: true }, 1])
      await given(store, 'acme', gate('feature.x', false))
      const off = await pdp.entitlement('acme', 'feature.x')
      expect([off?.boolean(), off?.version]).toEqual([false, 2])
      expect(await pdp.entitlement('nowhere', 'feature.x')).toBeNull()
    })

    test.each([
      ['the string "true"', 'true'],
      ['1', 1],
      ['an object', {}],
    ])('is not on when enabled is %s', async (_, enabled) => {
      await given(store, 'acme', {
        kind: 'entitlement',
        key: 'feature.x',
        entitlement: { value: { enabled }, enforcement: 'DecisionApi' },
      })
      expect((await pdp.entitlement('acme', 'feature.x'))?.boolean()).toBe(false)
    })
  })

  test('knows the lineage of an organization', async () => {
    await store.write(ENVIRONMENT, [organization('mid', 'acme'), organization('low', 'mid')], { context })
    expect(await pdp.ancestors('low')).toEqual(['low', 'mid', 'acme'])
    expect(await pdp.ancestors('nowhere')).toBeNull()
  })

  test('gives claims-mode entitlements with the version', async () => {
    await given(store, 'acme', gate('a', true), {
      kind: 'entitlement',
      key: 'b',
      entitlement: { value: { limit: 3 }, enforcement: 'Claims' },
    })
    expect(await pdp.claimsEntitlements('acme')).toEqual({ version: 1, values: { b: { limit: 3 } } })
    expect(await pdp.claimsEntitlements('nowhere')).toBeNull()
  })
})
