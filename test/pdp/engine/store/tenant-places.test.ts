/** What holds connections or whole logs while it lasts is shared among tenants. */
import { expect, test } from 'vitest'
import { createPdp } from '../../../../pdp/engine/decision-point/create-pdp.ts'
import type { Store } from '../../../../pdp/engine/store/contract.ts'
import { memoryStore } from '../../../../pdp/engine/store/memory/memory.ts'
import { createTenantPlaces } from '../../../../pdp/engine/store/tenant-places.ts'
import { user } from '../../../../pdp/shared/domain/subjects.ts'
import { given, put } from '../../../support/tuples.ts'

/** Work by name, which ends when told to. */
function open() {
  const places = createTenantPlaces({ open: { all: 3, tenant: 2 }, waiting: { all: 4, tenant: 3 } })
  const started: string[] = []
  const ends = new Map<string, (failed?: boolean) => void>()
  return {
    started,
    ask: (organization: string | null, name: string): Promise<void> =>
      places.run(organization, async () => {
        started.push(name)
        const { promise, resolve } = Promise.withResolvers<boolean>()
        ends.set(name, (failed = false) => resolve(failed))
        if (await promise) throw new Error(`${name} failed`)
      }),
    async end(name: string, failed = false) {
      ends.get(name)?.(failed)
      await new Promise(setImmediate)
    },
  }
}

test('no tenant has all places, whatever organizations it makes below its own', async () => {
  const { ask, started } = open()
  for (const [organization, name] of [
    ['acme', 'a1'],
    ['acme~eu', 'a2'],
    ['acme~eu~lab', 'a3'],
    ['beta', 'b1'],
    ['gamma', 'c1'],
  ] as const)
    void ask(organization, name)
  await new Promise(setImmediate)
  expect(started).toEqual(['a1', 'a2', 'b1'])
})

test('a place that becomes free is that of the first who may have it, also after a failure', async () => {
  const { ask, end, started } = open()
  const failing = expect(ask('acme', 'a1')).rejects.toThrow('a1 failed')
  void ask('acme', 'a2')
  void ask('acme', 'a3')
  void ask('beta', 'b1')
  void ask('gamma', 'c1')
  await end('b1')
  expect(started).toEqual(['a1', 'a2', 'b1', 'c1'])
  await end('a1', true)
  await failing
  expect(started.at(-1)).toBe('a3')
  await end('c1')
  void ask('beta', 'b2')
  expect(started.at(-1)).toBe('b2')
})

test('a tenant that waits with too many is refused, and others are not; at last all are', async () => {
  const { ask, end, started } = open()
  for (const name of ['a1', 'a2', 'a3', 'a4', 'a5']) void ask('acme', name)
  await expect(ask('acme', 'a6')).rejects.toMatchObject({ code: 'overloaded' })
  void ask(null, 'n1')
  void ask('beta', 'b1')
  await expect(ask('gamma', 'c1')).rejects.toMatchObject({ code: 'overloaded' })
  await end('n1')
  expect(started).toEqual(['a1', 'a2', 'n1', 'b1'])
  await expect(ask('acme', 'a7')).rejects.toMatchObject({ code: 'overloaded' })
})

test.each([
  [
    'lists',
    (store: Store) => (organization: string) =>
      createdOver(store).listResources({ organization, subject: user('ann'), relation: 'viewer', type: 'doc' }),
  ],
  [
    'comparisons',
    (store: Store) => (organization: string) =>
      createdOver(store).compare({ organization, relation: 'viewer', type: 'doc' }),
  ],
])('%s of one tenant leave connections to the writes, and lists, of others', async (_, askOver) => {
  const store = memoryStore()
  for (const organization of ['acme', 'acme~eu', 'beta']) await given(store, organization, put('doc:1#viewer@user:ann'))
  let open = 0
  let most = 0
  const gate = Promise.withResolvers<void>()
  const slow: Store = {
    ...store,
    snapshot: async (use) => {
      most = Math.max(most, ++open)
      // Only what acme asks is slow: beta comes when acme has all that it gets.
      if (open <= 4) await gate.promise
      open--
      return store.snapshot(use)
    },
  }
  const ask = askOver(slow)
  const all = Array.from({ length: 40 }, (_, i) => ask(i % 2 === 0 ? 'acme' : 'acme~eu'))
  await expect.poll(() => open).toBe(4)
  await ask('beta')
  // A pool has ten.
  expect(most).toBeLessThanOrEqual(6)
  gate.resolve()
  await Promise.all(all)
  expect(most).toBeLessThanOrEqual(6)
})

const known = new WeakMap<Store, ReturnType<typeof createPdp>>()
/** One for all questions. */
function createdOver(store: Store): ReturnType<typeof createPdp> {
  const pdp = known.get(store) ?? createPdp({ store })
  known.set(store, pdp)
  return pdp
}

test('a question about the past does not wait for those of another tenant', async () => {
  const store = memoryStore()
  for (const organization of ['acme', 'beta']) await given(store, organization, put('doc:1#viewer@user:ann'))
  const gate = Promise.withResolvers<void>()
  const slow: Store = {
    ...store,
    entries: async (ranges, max) => {
      if (ranges.some(({ log }) => log === 'acme')) await gate.promise
      return store.entries(ranges, max)
    },
  }
  const pdp = createPdp({ store: slow })
  const ask = (organization: string) =>
    pdp.decide({
      organization,
      subject: user('ann'),
      permissions: [{ relation: 'viewer', resource: 'doc:1' }],
      asOfMs: Date.now(),
    })
  const asked = Promise.allSettled(Array.from({ length: 20 }, () => ask('acme')))
  expect((await ask('beta')).permissions[0]?.allowed).toBe(true)
  gate.resolve()
  expect((await asked).filter(({ status }) => status === 'rejected').length).toBe(11)
})
