/** What every EntitlementSource must do. An implementation is done when this passes; an exception needs a reason. */
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { createPdp } from '../../pdp/engine/decision-point/create-pdp.ts'
import type { EntitlementSource, Store } from '../../pdp/engine/store/contract.ts'
import type { Entitlement } from '../../pdp/shared/domain/entitlement.ts'
import { ENVIRONMENT } from '../../pdp/shared/domain/journal.ts'
import { context, organization } from '../support/tuples.ts'

export type OpenedSource = {
  readonly store: Store
  readonly source: EntitlementSource
  /** Changes a value where the source has it; once it resolves, the change is announced. */
  set(organization: string, key: string, entitlement: Entitlement | null): Promise<void>
  close(): Promise<void>
}
const level = (count: number): Entitlement => ({ value: { count }, enforcement: 'DecisionApi' })
const user = { type: 'user', id: 'u' } as const

export function entitlementSourceSuite(name: string, open: () => Promise<OpenedSource>): void {
  describe(`entitlement source ${name}`, () => {
    let opened: OpenedSource
    const read = (keys: readonly string[] | 'all', of = 'acme') => opened.source.read(of, keys)
    const version = async (of: string) => (await opened.source.version([of])).get(of)

    beforeEach(async () => {
      opened = await open()
      for (const id of ['acme', 'other']) await opened.store.write(ENVIRONMENT, [organization(id)], { context })
    })
    afterEach(() => opened.close())

    test('reads what it was asked for, and leaves out what the organization does not have', async () => {
      await opened.set('acme', 'feature.a', level(1))
      await opened.set('acme', 'feature.b', { value: { deep: { list: [1, null, 'ü'] } }, enforcement: 'Claims' })
      const { values } = await read(['feature.b', 'feature.none'])
      expect([...values]).toEqual([['feature.b', { value: { deep: { list: [1, null, 'ü'] } }, enforcement: 'Claims' }]])
    })

    test('reads all', async () => {
      await opened.set('acme', 'feature.a', level(1))
      await opened.set('acme', 'feature.b', level(2))
      expect([...(await read('all')).values.keys()].sort()).toEqual(['feature.a', 'feature.b'])
      expect((await read('all', 'other')).values.size).toBe(0)
    })

    test('has nothing at version 0 of an organization that does not exist', async () => {
      expect(await read(['feature.a'], 'nowhere')).toMatchObject({ version: 0, values: new Map() })
      expect(await read('all', 'nowhere')).toMatchObject({ version: 0, values: new Map() })
      expect(await version('nowhere')).toBeUndefined()
    })

    test('says the version without a key', async () => {
      await opened.set('acme', 'feature.a', level(1))
      expect(await read([])).toMatchObject({ version: await version('acme'), values: new Map() })
    })

    test('keeps organizations apart', async () => {
      await opened.set('acme', 'feature.a', level(1))
      expect((await read(['feature.a'], 'other')).values.size).toBe(0)
      const before = await version('other')
      await opened.set('acme', 'feature.a', level(2))
      expect(await version('other')).toBe(before)
    })

    test('makes a version and a state of every change, taking a value away included', async () => {
      await opened.set('acme', 'feature.a', level(1))
      const first = await read(['feature.a'])
      const again = await read(['feature.a'])
      await opened.set('acme', 'feature.a', null)
      const second = await read(['feature.a'])
      expect([again.version, again.state]).toEqual([first.version, first.state])
      expect([second.version, second.values.size]).toEqual([first.version + 1, 0])
      expect(second.state).not.toBe(first.state)
    })

    test('never gives a value from before the version that it says', async () => {
      const announced = new Map<number, number>([[(await version('acme')) ?? 0, 0]])
      let writing = true
      const reads: { version: number; count: unknown }[] = []
      const readers = Array.from({ length: 3 }, async () => {
        while (writing) {
          const found = await read(['feature.a']).catch(() => null)
          if (found !== null)
            reads.push({ version: found.version, count: found.values.get('feature.a')?.value.count ?? 0 })
        }
      })
      for (let count = 1; count <= 30; count++) {
        await opened.set('acme', 'feature.a', level(count))
        announced.set((await version('acme')) ?? 0, count)
      }
      await read(['feature.a'])
      writing = false
      await Promise.all(readers)
      expect(reads.length).toBeGreaterThan(0)
      expect(reads.filter(({ version, count }) => Number(count) < (announced.get(version) ?? 0))).toEqual([])
    })

    test('lets the next decision see a change, at the version of the organization', async () => {
      const pdp = createPdp({ store: opened.store, entitlements: opened.source })
      expect(await pdp.entitlement('acme', 'feature.a')).toBeNull()
      for (let count = 1; count <= 3; count++) {
        await opened.set('acme', 'feature.a', level(count))
        const { entitlements } = await pdp.decide({ organization: 'acme', subject: user, entitlements: ['feature.a'] })
        const result = entitlements.get('feature.a')
        expect([result?.value, result?.version]).toEqual([{ count }, await version('acme')])
      }
      await opened.set('acme', 'feature.a', null)
      expect(await pdp.entitlement('acme', 'feature.a')).toBeNull()
    })

    test('gives tokens the gates of Claims mode only', async () => {
      const pdp = createPdp({ store: opened.store, entitlements: opened.source })
      await opened.set('acme', 'feature.a', level(1))
      await opened.set('acme', 'feature.b', { value: { enabled: true }, enforcement: 'Claims' })
      expect(await pdp.claimsEntitlements('acme')).toEqual({
        version: await version('acme'),
        values: { 'feature.b': { enabled: true } },
      })
      expect(await pdp.claimsEntitlements('nowhere')).toBeNull()
    })
  })
}
