/** The order of names in memory: right after any additions and deletions, and cheap to page through. */
import fc from 'fast-check'
import { describe, expect, test, vi } from 'vitest'
import { KeyOrder } from '../../../../../pdp/engine/store/memory/key-order.ts'
import { memoryStore } from '../../../../../pdp/engine/store/memory/memory.ts'
import { TupleIndex } from '../../../../../pdp/engine/store/memory/tuple-index.ts'
import type { Change } from '../../../../../pdp/shared/domain/change.ts'
import { ENVIRONMENT } from '../../../../../pdp/shared/domain/journal.ts'
import type { Tuple } from '../../../../../pdp/shared/domain/tuple.ts'
import { context, drop, grant, member, organization, put } from '../../../../support/tuples.ts'

const key = fc.integer({ min: 0, max: 3_000 }).map((n) => `k${n}`)

describe('the order of keys', () => {
  test('holds each key once, in order, as long as it occurs', () => {
    fc.assert(
      fc.property(
        fc.array(key, { maxLength: 2_000, size: 'max' }),
        fc.array(fc.record({ key, add: fc.boolean() }), { maxLength: 3_000, size: 'max' }),
        key,
        (first, moves, start) => {
          const counts = new Map<string, number>()
          const count = (name: string, by: number) => counts.set(name, Math.max(0, (counts.get(name) ?? 0) + by))
          for (const name of first) count(name, 1)
          const order = new KeyOrder(first)
          for (const move of moves) {
            if (move.add) order.add(move.key)
            else order.delete(move.key)
            count(move.key, move.add ? 1 : -1)
          }
          const held = [...counts].flatMap(([name, times]) => (times > 0 ? [name] : [])).sort()
          expect([...order.from('')]).toEqual(held)
          expect([...order.from(start)]).toEqual(held.filter((name) => name >= start))
        },
      ),
      { numRuns: 30 },
    )
  })

  test('is empty after the last of many keys is gone, and takes new ones', () => {
    const keys = Array.from({ length: 5_000 }, (_, i) => `k${i}`)
    const order = new KeyOrder([])
    for (const name of keys) order.add(name)
    for (const name of keys.toReversed()) order.delete(name)
    order.delete('k1') // is not there
    expect([...order.from('')]).toEqual([])
    order.add('again')
    expect([...order.from('again')]).toEqual(['again'])
  })
})

describe('pages of the memory store', () => {
  const name = (i: number): string => `doc:${String(i).padStart(4, '0')}`
  async function loaded(count: number) {
    const store = memoryStore()
    await store.write(ENVIRONMENT, [organization('acme')], { context })
    const changes = Array.from({ length: count }, (_, i): Change => put(`${name(i)}#viewer@user:${i % 7}`))
    await store.write('acme', changes, { context })
    return store
  }

  test('look through the log once, however many pages there are and whatever is written between them', async () => {
    const store = await loaded(2_000)
    const all = vi.spyOn(TupleIndex.prototype, 'all')
    const seen: string[] = []
    for (
      let after: string | null = null, page: readonly string[] = [''];
      page.length > 0;
      after = page.at(-1) ?? after
    ) {
      const [from, source] = [after, { kind: 'objects', type: 'doc' } as const]
      page = await store.snapshot((at) => at.names('acme', source, { after: from, countMax: 100 }))
      seen.push(...page)
      await store.write('acme', [put(`doc:new-${seen.length}#viewer@user:a`), drop(`${name(1_999)}#viewer@user:4`)], {
        context,
      })
    }
    expect(seen.slice(0, 1_999)).toEqual(Array.from({ length: 1_999 }, (_, i) => name(i)))
    expect(seen.slice(1_999).every((other) => other.startsWith('doc:new-'))).toBe(true)
    expect(all).toHaveBeenCalledTimes(2) // for objects, and for subjects
    all.mockRestore()
  })

  test('hold all tuples in key order, each once', async () => {
    const store = await loaded(300)
    await store.write('acme', [put(`${name(7)}#viewer@user:z`), put(`${name(7)}#editor@user:b`)], { context })
    const seen: Tuple[] = []
    for (let page: readonly Tuple[] = []; page.length > 0 || seen.length === 0; ) {
      page = await store.tuples('acme', {}, { after: seen.at(-1) ?? null, countMax: 7 })
      seen.push(...page)
    }
    const texts = seen.map((t) => `${t.object} ${t.relation} ${t.subject}`)
    expect(texts).toHaveLength(302)
    expect(texts).toEqual([...new Set(texts)].sort())
  })

  test('of members, grantees and organizations show what was written between them', async () => {
    const store = await loaded(1)
    const page = { after: 'b', countMax: 2 }
    const ids = async () => [
      (await store.members('acme', page)).map((m) => m.user),
      await store.snapshot((at) => at.names('acme', { kind: 'members' }, { ...page, after: 'user:b' })),
      await store.snapshot((at) => at.names('acme', { kind: 'grantees', type: 'user' }, { ...page, after: 'user:b' })),
      (await store.organizations({}, page)).map((o) => o.id),
    ]
    expect(await ids()).toEqual([[], [], [], []])
    for (const id of ['e', 'b', 'd', 'a', 'c']) {
      await store.write('acme', [member(id, 'member'), grant(id, 'reader', `user:${id}`)], { context })
      await store.write(ENVIRONMENT, [organization(id)], { context })
    }
    expect(await ids()).toEqual([
      ['c', 'd'],
      ['user:c', 'user:d'],
      ['user:c', 'user:d'],
      ['c', 'd'],
    ])
    await store.write('acme', [{ kind: 'membership', user: 'c', membership: null }], { context })
    await store.write('acme', [{ ...grant('c', 'reader', 'user:c'), op: 'delete' } as Change], { context })
    await store.write(ENVIRONMENT, [{ kind: 'organization', id: 'c', organization: null }], { context })
    expect(await ids()).toEqual([
      ['d', 'e'],
      ['user:d', 'user:e'],
      ['user:d', 'user:e'],
      ['d', 'e'],
    ])
  })

  test.each([
    ['an object', { object: name(7) }, 3],
    ['an object that is not there', { object: 'doc:none' }, 0],
    ['an object and a relation', { object: name(7), relation: 'editor' }, 1],
    ['a subject', { subject: 'user:1' }, 43],
    ['a subject and a relation that do not meet', { subject: 'user:1', relation: 'editor' }, 0],
  ])('hold the tuples of %s', async (_, filter, count) => {
    const store = await loaded(300)
    await store.write('acme', [put(`${name(7)}#viewer@user:z`), put(`${name(7)}#editor@user:b`)], { context })
    expect(await store.tuples('acme', filter, { after: null, countMax: 100 })).toHaveLength(count)
  })
})
