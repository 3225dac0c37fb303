/** What a Store must answer of the rows, entries, entitlements and lists of an organization. */
import { describe, expect, test } from 'vitest'
import { type RowKey, SET_ROWS_MAX, type Store } from '../../../pdp/engine/store/contract.ts'
import type { Change } from '../../../pdp/shared/domain/change.ts'
import { ENVIRONMENT } from '../../../pdp/shared/domain/journal.ts'
import type { Tuple } from '../../../pdp/shared/domain/tuple.ts'
import { organization, put, tuple } from '../../support/tuples.ts'
import { type OpenStore, useStore } from './suite.ts'

export function readsSuite(open: OpenStore): void {
  const t = useStore(open)

  describe('rows', () => {
    test('answers an empty set for what does not exist', async () => {
      expect(await t.read({ log: t.acme, kind: 'set', object: 'doc:1', relation: 'viewer' })).toMatchObject({
        subjects: [],
        complete: true,
      })
      expect(
        await t.read({ log: t.acme, kind: 'tuple', object: 'doc:1', relation: 'viewer', subject: 'user:a' }),
      ).toMatchObject({ row: null })
      expect(await t.read({ log: t.acme, kind: 'groups', subject: 'user:a' })).toMatchObject({ groups: [] })
      expect(await t.read({ log: t.acme, kind: 'membership', user: 'a' })).toMatchObject({ membership: null })
      expect(await t.read({ log: ENVIRONMENT, kind: 'organization', id: t.id('nowhere') })).toMatchObject({
        organization: null,
      })
    })

    test('keeps organizations apart', async () => {
      await t.write(ENVIRONMENT, organization(t.id('other')))
      await t.write(t.id('other'), put('doc:1#viewer@user:a'))
      expect(await t.subjects('doc:1', 'viewer')).toEqual([])
    })

    test('brings the groups above a subject along, ending in empty sets', async () => {
      await t.write(
        t.acme,
        put('group:a#member@user:u'),
        put('group:b#member@group:a#member'),
        put('group:c#member@group:b#member', 9_000),
      )
      const { rows } = await t.store.rows([t.acme], [{ log: t.acme, kind: 'groups', subject: 'user:u' }])
      const above = Object.fromEntries(rows.flatMap((r) => ('groups' in r ? [[r.key.subject, r.groups]] : [])))
      expect(above).toEqual({
        'user:u': [{ subject: 'group:a#member', expiresAtMs: null }],
        'group:a#member': [{ subject: 'group:b#member', expiresAtMs: null }],
        'group:b#member': [{ subject: 'group:c#member', expiresAtMs: 9_000 }],
        'group:c#member': [],
      })
    })

    test('ends where groups form a cycle', async () => {
      await t.write(
        t.acme,
        put('group:a#member@user:u'),
        put('group:b#member@group:a#member'),
        put('group:a#member@group:b#member'),
      )
      const { rows } = await t.store.rows([t.acme], [{ log: t.acme, kind: 'groups', subject: 'user:u' }])
      expect(rows).toHaveLength(3)
    })

    test('brings the grants of the groups above a subject along', async () => {
      const grant = { id: 'g1', app: 'billing', role: 'approver', subject: 'group:b' }
      await t.write(t.acme, put('group:a#member@user:u'), put('group:b#member@group:a#member'), {
        kind: 'role_grant',
        op: 'write',
        grant,
      })
      const { rows } = await t.store.rows([t.acme], [{ log: t.acme, kind: 'grants', subject: 'user:u' }])
      const grants = Object.fromEntries(rows.flatMap((r) => ('grants' in r ? [[r.key.subject, r.grants]] : [])))
      expect(grants).toEqual({ 'user:u': [], 'group:a': [], 'group:b': [grant] })
    })

    test('brings the ancestors of an organization along', async () => {
      await t.write(ENVIRONMENT, organization(t.id('mid'), t.acme), organization(t.id('low'), t.id('mid')))
      const { rows } = await t.store.rows([], [{ log: ENVIRONMENT, kind: 'organization', id: t.id('low') }])
      expect(rows.map((r) => ('organization' in r ? r.organization?.id : '')).sort()).toEqual([
        t.acme,
        t.id('low'),
        t.id('mid'),
      ])
    })

    test(`gives a set of ${SET_ROWS_MAX} rows whole and one more only by its usersets`, async () => {
      await t.write(t.acme, ...Array.from({ length: SET_ROWS_MAX }, (_, i) => put(`doc:1#viewer@user:${i}`)))
      const key: RowKey = { log: t.acme, kind: 'set', object: 'doc:1', relation: 'viewer' }
      expect(await t.read(key)).toMatchObject({ complete: true, subjects: { length: SET_ROWS_MAX } })
      await t.write(t.acme, put('doc:1#viewer@group:x#member'))
      expect(await t.read(key)).toMatchObject({
        complete: false,
        subjects: [{ subject: 'group:x#member', expiresAtMs: null }],
      })
      const probe = await t.read({ log: t.acme, kind: 'tuple', object: 'doc:1', relation: 'viewer', subject: 'user:7' })
      expect(probe).toMatchObject({ row: { subject: 'user:7', expiresAtMs: null } })
    })

    test(`gives no usersets of a set that has more than ${SET_ROWS_MAX} of them`, async () => {
      const usersets = Array.from({ length: SET_ROWS_MAX + 1 }, (_, i) => put(`doc:1#viewer@team:${i}#member`))
      await t.write(t.acme, ...usersets.slice(0, SET_ROWS_MAX), put('doc:1#viewer@user:a'))
      const key: RowKey = { log: t.acme, kind: 'set', object: 'doc:1', relation: 'viewer' }
      expect(await t.read(key)).toMatchObject({
        complete: false,
        usersetsComplete: true,
        subjects: { length: SET_ROWS_MAX },
      })
      await t.write(t.acme, ...usersets.slice(SET_ROWS_MAX))
      expect(await t.read(key)).toMatchObject({ complete: false, usersetsComplete: false, subjects: [] })
    })

    test('gives what names a name, of one type and relation or all, with conditions and expiries', async () => {
      const condition = { name: 'c', context: {} }
      await t.write(
        t.acme,
        put('doc:1#viewer@team:a'),
        put('doc:2#viewer@team:a', 9_000),
        { kind: 'tuple', op: 'write', tuple: { ...tuple('doc:3#viewer@team:a'), condition } },
        put('doc:4#owner@team:a'),
        put('document:5#viewer@team:a'),
        put('doc:6#viewer@team:a#member'),
        put('doc:7#viewer@team:ab'),
      )
      const named = async (where: { type: string; relation: string } | null) => {
        const rows = await t.read({ log: t.acme, kind: 'named', name: 'team:a', where })
        const sets = 'sets' in rows ? rows.sets : []
        return sets.map(({ subject, expiresAtMs }) => [subject, expiresAtMs]).sort()
      }
      const viewers = [
        ['doc:1#viewer', null],
        ['doc:2#viewer', 9_000],
        ['doc:3#viewer', null],
      ]
      expect(await named({ type: 'doc', relation: 'viewer' })).toEqual(viewers)
      expect(await named({ type: 'doc', relation: 'reader' })).toEqual([])
      expect(await named(null)).toEqual([...viewers, ['doc:4#owner', null], ['document:5#viewer', null]])
    })

    test('gives rows and standings of one moment', async () => {
      await t.write(t.acme, put('doc:1#viewer@user:a'))
      const { vector } = await t.store.rows(
        [t.acme, ENVIRONMENT, t.id('nowhere')],
        [{ log: t.acme, kind: 'membership', user: 'a' }],
      )
      expect([...vector.logs.keys()].sort()).toEqual([ENVIRONMENT, t.acme])
      expect(vector.logs.get(t.acme)).toMatchObject({ revision: 1, entitlementVersion: 0 })
      expect(vector.clockMs).toBeGreaterThan(1_000_000_000_000)
    })
  })

  describe('snapshot', () => {
    test('does not see what is written while it is open', async () => {
      let written: Promise<unknown> = Promise.resolve()
      const seen = await t.store.snapshot(async (at) => {
        const key: RowKey = { log: t.acme, kind: 'set', object: 'doc:1', relation: 'viewer' }
        const before = await at.rows([t.acme], [key])
        written = t.write(t.acme, put('doc:1#viewer@user:a'))
        await new Promise((resolve) => setTimeout(resolve, 50))
        const after = await at.rows([t.acme], [key])
        return [before, after].map((r) => [
          r.vector.logs.get(t.acme)?.revision,
          r.rows.length && 'subjects' in r.rows[0]! ? r.rows[0].subjects.length : -1,
        ])
      })
      await written
      expect(seen).toEqual([
        [0, 0],
        [0, 0],
      ])
      expect(await t.subjects('doc:1', 'viewer')).toEqual(['user:a'])
    })
  })

  describe('entries', () => {
    test('never cuts a revision in half', async () => {
      await t.write(t.acme, put('doc:1#viewer@user:a'))
      await t.write(t.acme, put('doc:2#viewer@user:a'), put('doc:3#viewer@user:a'))
      const range = [{ log: t.acme, from: 0, to: 2 }]
      expect((await t.store.entries(range, 3)).map((e) => e.revision)).toEqual([1, 2, 2])
      expect((await t.store.entries(range, 2)).map((e) => e.revision)).toEqual([1])
      expect((await t.store.entries([{ log: t.acme, from: 1, to: 2 }], 2)).map((e) => e.revision)).toEqual([1])
    })

    test('gives the first entry of the lower revision and all that lies above it', async () => {
      for (const i of [1, 2, 3, 4]) await t.write(t.acme, put(`doc:${i}#viewer@user:a`))
      expect((await t.store.entries([{ log: t.acme, from: 1, to: 3 }], 10)).map((e) => e.revision)).toEqual([1, 2, 3])
    })
  })

  describe('entitlements', () => {
    const entitlement = (
      key: string,
      enabled: boolean,
      enforcement: 'DecisionApi' | 'Claims' = 'DecisionApi',
    ): Change => ({
      kind: 'entitlement',
      key,
      entitlement: { value: { enabled }, enforcement },
    })

    test('raises the entitlement version with every write, and with nothing else', async () => {
      await t.write(t.acme, put('doc:1#viewer@user:a'))
      await t.write(t.acme, entitlement('feature.x', true))
      await t.write(t.acme, entitlement('feature.x', true))
      await t.write(t.acme, entitlement('feature.x', false))
      const standing = (await t.store.vector([t.acme])).logs.get(t.acme)
      expect(await t.store.entitlements(t.acme, 'all')).toEqual({
        version: 3,
        writeId: standing?.entitlementWriteId,
        values: new Map([['feature.x', { value: { enabled: false }, enforcement: 'DecisionApi' }]]),
      })
    })

    test('reads by key, and nothing of what is not there', async () => {
      await t.write(t.acme, entitlement('a', true), entitlement('b', true, 'Claims'), entitlement('c', true))
      await t.write(t.acme, { kind: 'entitlement', key: 'c', entitlement: null })
      expect([...(await t.store.entitlements(t.acme, ['a', 'c', 'zz'])).values.keys()]).toEqual(['a'])
      expect(await t.store.entitlements(t.id('nowhere'), ['a'])).toEqual({ version: 0, writeId: '', values: new Map() })
    })
  })

  describe('tuples', () => {
    test('lists in order, filtered, in pages', async () => {
      await t.write(
        t.acme,
        put('doc:2#viewer@user:a'),
        put('doc:1#viewer@user:b'),
        put('doc:1#viewer@user:a'),
        put('doc:1#editor@user:a', 7_000),
      )
      const list = async (filter: Parameters<Store['tuples']>[1], after: Tuple | null = null, countMax = 10) =>
        (await t.store.tuples(t.acme, filter, { after, countMax })).map((t) => `${t.object}#${t.relation}@${t.subject}`)
      expect(await list({})).toEqual([
        'doc:1#editor@user:a',
        'doc:1#viewer@user:a',
        'doc:1#viewer@user:b',
        'doc:2#viewer@user:a',
      ])
      expect(await list({ subject: 'user:b' })).toEqual(['doc:1#viewer@user:b'])
      expect(await list({ object: 'doc:1', relation: 'viewer' })).toEqual([
        'doc:1#viewer@user:a',
        'doc:1#viewer@user:b',
      ])
      expect(await list({}, tuple('doc:1#viewer@user:a'), 1)).toEqual(['doc:1#viewer@user:b'])
      expect((await t.store.tuples(t.acme, { relation: 'editor' }, { after: null, countMax: 1 }))[0]?.expiresAtMs).toBe(
        7_000,
      )
    })
  })

  describe('members', () => {
    test('lists in pages, whatever the status', async () => {
      const member = (user: string, status: 'active' | 'invited'): Change => ({
        kind: 'membership',
        user,
        membership: { role: 'member', status },
      })
      await t.write(t.acme, member('b', 'invited'), member('a', 'active'))
      expect(await t.store.members(t.acme, { after: null, countMax: 1 })).toEqual([
        { user: 'a', role: 'member', status: 'active' },
      ])
      expect(await t.store.members(t.acme, { after: 'a', countMax: 9 })).toEqual([
        { user: 'b', role: 'member', status: 'invited' },
      ])
    })
  })
}
