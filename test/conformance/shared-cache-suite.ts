/** What every SharedCache must do. An implementation is done when this passes; an exception needs a reason. */
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { SharedCache, Slot, StatedValue } from '../../pdp/engine/store/entitlements/shared-cache.ts'

export type OpenedCache = {
  /** Of two replicas. */
  readonly caches: readonly [SharedCache, SharedCache]
  close(): Promise<void>
}
export const SLOT: Slot = { source: 'store', organization: 'acme', version: 7, writeId: '42' }
export const VALUE: StatedValue = {
  state: '7',
  entitlement: { value: { enabled: true, text: 'a\n"ü' }, enforcement: 'Claims' },
}
const NONE: StatedValue = { state: '7', entitlement: null }

export function sharedCacheSuite(name: string, open: () => Promise<OpenedCache>, { keeps }: { keeps: boolean }): void {
  describe(`shared cache ${name}`, () => {
    let opened: OpenedCache
    beforeEach(async () => {
      opened = await open()
    })
    afterEach(() => opened.close())

    test(keeps ? 'gives another replica what was written' : 'keeps nothing', async () => {
      const [one, other] = opened.caches
      const written = new Map([
        ['feature.a', VALUE],
        ['feature.none', NONE],
      ])
      await one.write(SLOT, written, 60_000)
      expect(await other.read(SLOT, ['feature.a', 'feature.none', 'feature.b'])).toEqual(keeps ? written : new Map())
      expect(await other.read(SLOT, [])).toEqual(new Map())
    })

    test.each<[string, Partial<Slot>, string]>([
      ['another key', {}, 'feature.b'],
      ['a key that begins alike', {}, 'feature.a.b'],
      ['another organization', { organization: 'other' }, 'feature.a'],
      ['a later version', { version: 8 }, 'feature.a'],
      ['an earlier version', { version: 6 }, 'feature.a'],
      ['the same version of another history', { writeId: '43' }, 'feature.a'],
      ['another source', { source: 'http x' }, 'feature.a'],
      ['parts that only read the same when joined', { version: 74, writeId: '2' }, 'feature.a'],
    ])('has nothing for %s', async (_, slot, key) => {
      const [one, other] = opened.caches
      await one.write(SLOT, new Map([['feature.a', VALUE]]), 60_000)
      expect(await other.read({ ...SLOT, ...slot }, [key])).toEqual(new Map())
    })

    test('forgets in time', async () => {
      const [one, other] = opened.caches
      await one.write(SLOT, new Map([['feature.a', VALUE]]), 30)
      await new Promise((resolve) => setTimeout(resolve, 60))
      expect(await other.read(SLOT, ['feature.a'])).toEqual(new Map())
    })

    test('answers with nothing once it is closed', async () => {
      const [one] = opened.caches
      one.close()
      await one.write(SLOT, new Map([['feature.a', VALUE]]), 60_000)
      expect(await one.read(SLOT, ['feature.a'])).toEqual(new Map())
    })
  })
}
