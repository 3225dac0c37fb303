/** What a Store must do with tuples that have a condition: keep them whole, and apart from those that have none. */
import { describe, expect, test } from 'vitest'
import type { RowKey } from '../../../pdp/engine/store/contract.ts'
import type { Change } from '../../../pdp/shared/domain/change.ts'
import { context, drop, put, putIf } from '../../support/tuples.ts'
import { code, type OpenStore, useStore } from './suite.ts'

export function conditionsSuite(open: OpenStore): void {
  const t = useStore(open)
  const set = (object: string, relation: string): RowKey => ({ log: t.acme, kind: 'set', object, relation })
  const SOON = { name: 'soon', context: { at: '2030-01-01T00:00:00Z', ratio: 0.5, names: ['a', { b: null }] } }

  describe('a tuple with a condition', () => {
    test('is read back with its condition, by set and by name', async () => {
      await t.write(t.acme, putIf('doc:1#viewer@user:a', SOON.name, SOON.context), put('doc:1#viewer@user:b'))
      const row = { subject: 'user:a', expiresAtMs: null, condition: SOON }
      const subjects = expect.arrayContaining([row, { subject: 'user:b', expiresAtMs: null }])
      expect(await t.read(set('doc:1', 'viewer'))).toMatchObject({ subjects, complete: true })
      const probe: RowKey = { log: t.acme, kind: 'tuple', object: 'doc:1', relation: 'viewer', subject: 'user:a' }
      expect(await t.read(probe)).toMatchObject({ row })
    })

    test('is listed in order among the others, and its names among theirs', async () => {
      await t.write(t.acme, put('doc:1#viewer@user:a'), putIf('doc:1#viewer@user:b', 'c'), put('doc:2#viewer@user:c'))
      const all = await t.store.tuples(t.acme, {}, { after: null, countMax: 9 })
      expect(all.map(({ subject, condition }) => [subject, condition?.name])).toEqual([
        ['user:a', undefined],
        ['user:b', 'c'],
        ['user:c', undefined],
      ])
      expect(all[0]).toEqual({ object: 'doc:1', relation: 'viewer', subject: 'user:a', expiresAtMs: null })
      const [first = null] = all
      const rest = await t.store.tuples(t.acme, { object: 'doc:1' }, { after: first, countMax: 9 })
      expect(rest.map(({ subject }) => subject)).toEqual(['user:b'])
      const names = (kind: 'objects' | 'subjects', type: string) =>
        t.store.snapshot((at) => at.names(t.acme, { kind, type }, { after: null, countMax: 9 }))
      expect(await names('subjects', 'user')).toEqual(['user:a', 'user:b', 'user:c'])
      await t.write(t.acme, putIf('memo:1#viewer@user:z', 'c'))
      expect(await names('objects', 'memo')).toEqual(['memo:1'])
      await t.write(t.acme, drop('memo:1#viewer@user:z'))
      expect(await names('objects', 'memo')).toEqual([])
      expect(await names('subjects', 'user')).toEqual(['user:a', 'user:b', 'user:c'])
    })

    test('puts nobody in a group', async () => {
      await t.write(t.acme, putIf('group:g#member@user:a', 'c'), put('group:h#member@group:g#member'))
      expect(await t.read({ log: t.acme, kind: 'groups', subject: 'user:a' })).toMatchObject({ groups: [] })
      await t.write(t.acme, put('group:g#member@user:a'))
      const groups = [{ subject: 'group:g#member', expiresAtMs: null }]
      expect(await t.read({ log: t.acme, kind: 'groups', subject: 'user:a' })).toMatchObject({ groups })
      await t.write(t.acme, putIf('group:g#member@user:a', 'c'))
      expect(await t.read({ log: t.acme, kind: 'groups', subject: 'user:a' })).toMatchObject({ groups: [] })
    })

    test.each<[string, Change, Change]>([
      ['one without', put('doc:1#viewer@user:a'), putIf('doc:1#viewer@user:a', 'c')],
      ['one with another condition', putIf('doc:1#viewer@user:a', 'c'), putIf('doc:1#viewer@user:a', 'd')],
      ['one with another context', putIf('doc:1#viewer@user:a', 'c'), putIf('doc:1#viewer@user:a', 'c', { x: 1 })],
      ['itself by one without', putIf('doc:1#viewer@user:a', 'c'), put('doc:1#viewer@user:a')],
    ])('replaces %s, as one change of the log', async (_, before, after) => {
      await t.write(t.acme, before)
      expect(await t.write(t.acme, after)).toMatchObject({ changed: true, position: { revision: 2 } })
      const entries = await t.store.entries([{ log: t.acme, from: 1, to: 2 }], 9)
      expect(entries.map(({ change }) => change)).toEqual([before, after])
      const [only, ...others] = await t.store.tuples(t.acme, {}, { after: null, countMax: 9 })
      expect([only, others]).toEqual([after.kind === 'tuple' ? after.tuple : null, []])
      expect(await t.write(t.acme, after)).toMatchObject({ changed: false, position: { revision: 2 } })
    })

    test('is deleted by its object, relation and subject, and gone with its organization', async () => {
      await t.write(t.acme, putIf('doc:1#viewer@user:a', 'c'))
      expect(await t.write(t.acme, drop('doc:1#viewer@user:a'))).toMatchObject({ changed: true })
      expect(await t.write(t.acme, drop('doc:1#viewer@user:a'))).toMatchObject({ changed: false })
      expect(await t.store.tuples(t.acme, {}, { after: null, countMax: 9 })).toEqual([])
    })

    test('meets a precondition that it exists', async () => {
      await t.write(t.acme, putIf('doc:1#viewer@user:a', 'c'))
      const { object, relation, subject } = { object: 'doc:1', relation: 'viewer', subject: 'user:a' }
      const write = (exists: boolean) =>
        t.store.write(t.acme, [put('doc:2#viewer@user:a')], {
          context,
          preconditions: [{ tuple: { object, relation, subject }, exists }],
        })
      await expect(write(false)).rejects.toEqual(code('precondition_failed'))
      expect(await write(true)).toMatchObject({ changed: true })
    })

    test('has a shape of its own', async () => {
      const type = `shaped${t.id('x')}`
      const tuples = [put(`${type}:1#viewer@user:a`), putIf(`${type}:1#viewer@user:b`, 'c')]
      await t.write(t.acme, ...tuples, putIf(`${type}:2#viewer@user:c`, 'c'))
      const shapes = await t.store.tupleShapes([type])
      expect(shapes.map(({ condition, tuplesCount }) => [condition, Number(tuplesCount)])).toEqual([
        [null, 1],
        ['c', 2],
      ])
    })

    const large = (bytes: number) => ({ x: 'x'.repeat(bytes - '{"x":""}'.length) })
    test.each([
      ['an empty name', '', {}],
      ['a name with a space', 'a b', {}],
      ['a long name', 'c'.repeat(257), {}],
      ['a context that is too large', 'c', large(32 * 1024 + 1)],
      ['a context with a zero character', 'c', { x: 'a\u0000b' }],
      ['a context with half a character', 'c', { x: '\ud800' }],
      ['a context with half a character in a name', 'c', { '\udc00': 1 }],
    ])('is refused with %s', async (_, name, stored) => {
      await expect(t.write(t.acme, putIf('doc:1#viewer@user:a', name, stored))).rejects.toEqual(code('request_invalid'))
      expect(await t.store.tuples(t.acme, {}, { after: null, countMax: 9 })).toEqual([])
    })

    test('may have a context of 32 KiB, and one that looks escaped', async () => {
      const contexts = [large(32 * 1024), { x: String.raw`\u0000 \ud800`, ö: '😀' }]
      for (const stored of contexts) {
        await t.write(t.acme, putIf('doc:1#viewer@user:a', 'c', stored))
        const [found] = await t.store.tuples(t.acme, {}, { after: null, countMax: 9 })
        expect(found?.condition?.context).toEqual(stored)
      }
    })
  })
}
