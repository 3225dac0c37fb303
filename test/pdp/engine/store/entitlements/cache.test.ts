/** Memory, then the shared cache, then the source; nothing of another version, of another state, or kept for too long. */
import { describe, expect, test } from 'vitest'
import type { EntitlementSource } from '../../../../../pdp/engine/store/contract.ts'
import { EntitlementCache } from '../../../../../pdp/engine/store/entitlements/cache.ts'
import {
  noSharedCache,
  type SharedCache,
  type StatedValue,
  slotName,
} from '../../../../../pdp/engine/store/entitlements/shared-cache.ts'
import type { Entitlement } from '../../../../../pdp/shared/domain/entitlement.ts'
import { PdpError } from '../../../../../pdp/shared/domain/errors.ts'
import type { JournalPosition } from '../../../../../pdp/shared/domain/journal.ts'

const at = (entitlementVersion: number, entitlementWriteId = 'w'): JournalPosition => ({
  revision: 9,
  writeId: 'x',
  entitlementVersion,
  entitlementWriteId,
})
const level = (count: number): Entitlement => ({ value: { count }, enforcement: 'DecisionApi' })

function world(options: { keptMsMax?: number } = {}) {
  const values = new Map<string, Entitlement>([['a', level(1)]])
  const held = new Map<string, StatedValue>()
  const reads: (readonly string[] | 'all')[] = []
  const sharedReads: (readonly string[])[] = []
  const now = { version: 1, writeId: 'w', state: 's1', ms: 0, failing: false }
  const source: EntitlementSource = {
    name: 'external test',
    keptMsMax: options.keptMsMax ?? null,
    async read(_, keys) {
      reads.push(keys)
      if (now.failing) throw new PdpError('store_unavailable', 'down')
      const { version, writeId, state } = now
      const found = [...values].filter(([key]) => keys === 'all' || keys.includes(key))
      return { version, writeId, state, values: new Map(found) }
    },
    version: async () => new Map(),
  }
  const shared: SharedCache = {
    ...noSharedCache(),
    async read(slot, keys) {
      sharedReads.push(keys)
      return new Map(
        keys.flatMap((key) => {
          const value = held.get(slotName(slot, key))
          return value === undefined ? [] : [[key, value] as const]
        }),
      )
    },
    async write(slot, written) {
      for (const [key, value] of written) held.set(slotName(slot, key), value)
    },
  }
  const make = () => new EntitlementCache({ source, shared, clock: () => now.ms })
  const cache = make()
  const counts = async (standing: JournalPosition, keys: readonly string[], of = cache) => {
    const read = await of.read('acme', standing, keys)
    return read && keys.map((key) => read.get(key)?.value.count ?? null)
  }
  return { cache, values, held, reads, sharedReads, now, make, counts }
}

describe('EntitlementCache', () => {
  test('asks memory, then the shared cache, then the source', async () => {
    const { counts, make, reads, sharedReads } = world()
    expect(await counts(at(1), ['a', 'b'])).toEqual([1, null])
    expect(await counts(at(1), ['a', 'b'])).toEqual([1, null])
    expect([reads.length, sharedReads.length]).toEqual([1, 1])
    expect(await counts(at(1), ['b', 'a'], make())).toEqual([null, 1])
    expect([reads.length, sharedReads.length]).toEqual([1, 2])
  })

  test('asks the source for no more than is missing', async () => {
    const { counts, reads } = world()
    await counts(at(1), ['a'])
    await counts(at(1), ['a', 'b'])
    expect(reads).toEqual([['a'], ['b']])
  })

  test.each([
    ['version', at(2)],
    ['history', at(1, 'other')],
  ])('takes nothing of another %s', async (_, standing) => {
    const { counts, now, values } = world()
    await counts(at(1), ['a'])
    values.set('a', level(2))
    now.version = standing.entitlementVersion
    now.writeId = standing.entitlementWriteId
    expect(await counts(standing, ['a'])).toEqual([2])
  })

  test('keeps nothing that the source read at another version', async () => {
    const { counts, held, now } = world()
    now.version = 2
    expect(await counts(at(1), ['a'])).toBeUndefined()
    expect(await counts(at(3), ['a'])).toBeUndefined()
    expect(held.size).toBe(0)
    expect(await counts(at(2), ['a'])).toEqual([1])
  })

  test('keeps nothing of the same version of another history', async () => {
    const { counts, held, now } = world()
    now.writeId = 'restored'
    expect(await counts(at(1), ['a'])).toBeUndefined()
    expect(held.size).toBe(0)
    expect(await counts(at(1, 'restored'), ['a'])).toEqual([1])
  })

  test('lets everybody who asks for the same at once wait for one read', async () => {
    const { counts, reads } = world()
    const all = await Promise.all(Array.from({ length: 50 }, () => counts(at(1), ['a'])))
    expect([new Set(all.flat()), reads.length]).toEqual([new Set([1]), 1])
  })

  test('lets nobody wait for a read of another version', async () => {
    const { counts, reads } = world()
    await Promise.all([counts(at(1), ['a']), counts(at(2), ['a'])])
    expect(reads.length).toBe(2)
  })

  test('fails with the source, and asks it again the next time', async () => {
    const { counts, now, held } = world()
    now.failing = true
    await expect(Promise.all([counts(at(1), ['a']), counts(at(1), ['a'])])).rejects.toThrow('down')
    expect(held.size).toBe(0)
    now.failing = false
    expect(await counts(at(1), ['a'])).toEqual([1])
  })

  test('reads all anew rather than mixing two states of the source', async () => {
    const { counts, now, values, reads } = world()
    await counts(at(1), ['a'])
    for (const key of ['a', 'b']) values.set(key, level(2))
    now.state = 's2'
    expect(await counts(at(1), ['a', 'b'])).toEqual([2, 2])
    expect(await counts(at(1), ['a'])).toEqual([2])
    expect(reads).toEqual([['a'], ['b'], ['a', 'b']])
  })

  test('does not mix what is in memory with what is in the shared cache either', async () => {
    const { counts, make, now, values } = world()
    await counts(at(1), ['a'])
    for (const key of ['a', 'b']) values.set(key, level(2))
    now.state = 's2'
    const other = make()
    await counts(at(1), ['b'], other)
    expect(await counts(at(1), ['a', 'b'])).toEqual([2, 2])
    expect(await counts(at(1), ['a', 'b'], other)).toEqual([2, 2])
  })

  test('forgets values of a source that may change without a word, at the instant', async () => {
    const { counts, held, now, values } = world({ keptMsMax: 1_000 })
    await counts(at(1), ['a'])
    held.clear()
    values.set('a', level(2))
    now.ms = 999
    expect(await counts(at(1), ['a'])).toEqual([1])
    now.ms = 1_000
    expect(await counts(at(1), ['a'])).toEqual([2])
  })

  test('does not take a value for absent when it makes room for others', async () => {
    const { counts, held } = world()
    await counts(at(1), ['a'])
    held.clear()
    for (let from = 0; from < 10_000; from += 250) {
      const keys = Array.from({ length: 250 }, (_, i) => `k${from + i}`)
      expect((await counts(at(1), ['a', ...keys]))?.[0]).toBe(1)
    }
  })

  test('keeps no more than its memory holds, and forgets first who was asked about longest ago', async () => {
    const { cache, values, reads, held } = world()
    values.set('a', { value: { text: 'x'.repeat(2 ** 20) }, enforcement: 'DecisionApi' })
    const ask = (organization: string) => cache.read(organization, at(1), ['a'])
    for (let i = 0; i < 60; i++) await ask(`o${i}`)
    await ask('o0')
    expect(reads.length).toBe(60)
    for (let i = 60; i < 70; i++) await ask(`o${i}`)
    held.clear()
    await ask('o0')
    expect(reads.length).toBe(70)
    await ask('o1')
    expect(reads.length).toBe(71)
  })

  describe('for tokens', () => {
    const claim = (count: number): Entitlement => ({ value: { count }, enforcement: 'Claims' })

    test('has the values of Claims mode, read once for a version', async () => {
      const { cache, make, values, reads, now } = world()
      for (const key of ['b', 'c']) values.set(key, claim(2))
      const both = { b: { count: 2 }, c: { count: 2 } }
      expect(await cache.claims('acme', at(1))).toEqual(both)
      expect(await cache.claims('acme', at(1))).toEqual(both)
      expect(await make().claims('acme', at(1))).toEqual(both)
      expect(reads).toEqual(['all'])
      values.delete('b')
      now.version = 2
      expect(await cache.claims('acme', at(1))).toEqual(both)
      expect(await cache.claims('acme', at(2))).toEqual({ c: { count: 2 } })
    })

    test('has none rather than those of another version, and asks again after a failure', async () => {
      const { cache, now } = world()
      expect(await cache.claims('acme', at(2))).toBeUndefined()
      now.failing = true
      await expect(cache.claims('acme', at(1))).rejects.toThrow('down')
      now.failing = false
      expect(await cache.claims('acme', at(1))).toEqual({})
    })
  })
})
