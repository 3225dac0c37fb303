/** A log read from its end has each entry once, the newest first, however large its revisions are. */
import { expect, test } from 'vitest'
import { memoryStore } from '../../../../pdp/engine/store/memory/memory.ts'
import { readBackwards } from '../../../../pdp/server/console/journal-backwards.ts'
import { context } from '../../../support/tuples.ts'

const LOG = 'acme'

/** A log whose revisions have so many entries. */
async function journalOf(sizes: readonly number[]) {
  const store = memoryStore({ clock: () => 0 })
  const acme = { id: LOG, name: 'Acme', parent: null }
  await store.write('#environment', [{ kind: 'organization', id: LOG, organization: acme }], { context })
  for (const [i, size] of sizes.entries()) {
    const changes = Array.from({ length: size }, (_, n) => ({
      kind: 'tuple' as const,
      op: 'write' as const,
      tuple: { object: `doc:${i}-${n}`, relation: 'viewer', subject: 'user:a', expiresAtMs: null },
    }))
    await store.write(LOG, changes, { context })
  }
  const to = (await store.vector([LOG])).logs.get(LOG)?.revision ?? 0
  const all = await store.entries([{ log: LOG, from: 0, to }], 1_000_000)
  return { store, to, all }
}

test.each([
  ['is empty', []],
  ['has one', [1]],
  ['has many small ones', Array.from({ length: 3_000 }, () => 1)],
  ['has large ones', [1_000, 1_000, 1_000]],
  [
    'has large ones below small ones',
    [...Array.from({ length: 20 }, () => 1_000), ...Array.from({ length: 70 }, () => 1)],
  ],
  ['has small ones below large ones', [...Array.from({ length: 70 }, () => 1), 1_000, 900, 1_000]],
  ['has one that is larger than a read', [2, 5_000, 3]],
])('a log that %s is read whole', async (_, sizes) => {
  const { store, to, all } = await journalOf(sizes)
  const read: object[] = []
  let [first, reads] = [to + 1, 0]
  const counted = {
    entries: (...of: Parameters<typeof store.entries>) => {
      reads += 1
      return store.entries(...of)
    },
  }
  for await (const range of readBackwards(counted, { log: LOG, to })) {
    expect(range.first).toBe(range.entries.at(-1)?.revision)
    read.push(...range.entries)
    first = range.first
  }
  expect(read).toEqual(all.toReversed())
  // The memory store keeps the latest ten thousand.
  expect(first).toBe(all[0]?.revision ?? 1)
  expect(reads).toBeLessThan(60)
})

test('from the middle on, later revisions are left out', async () => {
  const { store, all } = await journalOf([1, 1, 1, 1])
  const read = await Array.fromAsync(readBackwards(store, { log: LOG, to: 2 }))
  expect(read.flatMap(({ entries }) => entries)).toEqual(all.filter(({ revision }) => revision <= 2).toReversed())
})

test.each([
  ['all', 5, []],
  ['the first three', 3, [5, 4]],
])('it ends where %s revisions were deleted after their time', async (_, deleted, expected) => {
  const { store } = await journalOf([1, 1, 1, 1, 1])
  const kept = {
    entries: async (...of: Parameters<typeof store.entries>) =>
      (await store.entries(...of)).filter(({ revision }) => revision > deleted),
  }
  const read = await Array.fromAsync(readBackwards(kept, { log: LOG, to: 5 }))
  expect(read.flatMap(({ entries }) => entries.map(({ revision }) => revision))).toEqual(expected)
  if (expected.length > 0) expect(read.at(-1)?.first).toBe(4)
})
