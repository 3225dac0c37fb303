/** Every row set whose content a change alters is among the keys that the change is said to affect. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { affectedKeys } from '../../../../pdp/engine/store/affected-keys.ts'
import { rowKeyName } from '../../../../pdp/engine/store/cache/row-keys.ts'
import type { RowKey, RowSet, Store } from '../../../../pdp/engine/store/contract.ts'
import { memoryStore } from '../../../../pdp/engine/store/memory/memory.ts'
import type { Change } from '../../../../pdp/shared/domain/change.ts'
import { ENVIRONMENT, type JournalId } from '../../../../pdp/shared/domain/journal.ts'
import { effort } from '../../../support/effort.ts'
import {
  deleted,
  NOW,
  ORGANIZATIONS,
  type RandomWorld,
  SUBJECTS,
  tuples,
  worlds,
  writeWorld,
  written,
} from '../../../support/property-worlds.ts'
import { context, gate, grant, member, organization } from '../../../support/tuples.ts'

const NODES = ['doc:0', 'doc:1', 'folder:0', 'folder:1', 'free:0', 'free:1', 'group:0', 'group:1', 'group:2']
const RELATIONS = ['r0', 'r1', 'r2', 'r3', 'parent', 'member']
const HOLDERS = [
  ...SUBJECTS,
  'user:*',
  'group:0#member',
  'group:1#member',
  'group:2#member',
  'doc:0#r0',
  'folder:1',
  'group:0',
]

function allKeys(): readonly RowKey[] {
  const keys: RowKey[] = [
    { log: ENVIRONMENT, kind: 'manifests' },
    { log: ENVIRONMENT, kind: 'roles' },
    ...[...ORGANIZATIONS, 'nowhere'].map((id): RowKey => ({ log: ENVIRONMENT, kind: 'organization', id })),
    ...HOLDERS.map((subject): RowKey => ({ log: ENVIRONMENT, kind: 'grants', subject })),
  ]
  for (const log of ORGANIZATIONS) {
    for (const object of NODES) {
      for (const relation of RELATIONS) {
        keys.push({ log, kind: 'set', object, relation })
        for (const subject of HOLDERS) keys.push({ log, kind: 'tuple', object, relation, subject })
      }
    }
    for (const subject of HOLDERS) keys.push({ log, kind: 'groups', subject }, { log, kind: 'grants', subject })
    for (const user of ['a', 'b', 'c']) keys.push({ log, kind: 'membership', user })
  }
  return keys
}
const KEYS = allKeys()

/** Order has no meaning in a row set. */
const contentOf = (rows: RowSet): string =>
  JSON.stringify(rows, (_, value: unknown) =>
    Array.isArray(value) ? value.map((item) => JSON.stringify(item)).sort() : value,
  )
async function contents(store: Store): Promise<ReadonlyMap<string, string>> {
  const { rows } = await store.rows([], KEYS)
  return new Map(rows.map((row) => [rowKeyName(row.key), contentOf(row)]))
}

type Write = { readonly log: JournalId; readonly change: Change }
const logs = fc.constantFrom(...ORGANIZATIONS)
/** Of what is there as often as of what is not, so that sets become empty. */
function writes(world: RandomWorld): fc.Arbitrary<Write> {
  const held = Object.entries(world.content).flatMap(([log, { tuples: all }]) =>
    all.map((tuple) => ({ log, change: deleted(tuple) })),
  )
  const grants = fc.constantFrom(
    ...['user:a', 'group:0'].map((subject) => grant(`wide-wide-${subject}`, 'wide', subject)),
  )
  const user = fc.constantFrom('a', 'b', 'c')
  return fc.oneof(
    ...(held.length === 0 ? [] : [{ weight: 3, arbitrary: fc.constantFrom(...held) }]),
    { weight: 3, arbitrary: fc.record({ log: logs, change: tuples.map(written) }) },
    { weight: 1, arbitrary: fc.record({ log: logs, change: grants }) },
    {
      weight: 1,
      arbitrary: fc.record({
        log: logs,
        change: grants.map((g) => (g.kind === 'role_grant' ? { ...g, op: 'delete' as const } : g)),
      }),
    },
    { weight: 1, arbitrary: fc.record({ log: logs, change: user.map((id) => member(id, 'admin')) }) },
    {
      weight: 1,
      arbitrary: fc.record({
        log: logs,
        change: user.map((id): Change => ({ kind: 'membership', user: id, membership: null })),
      }),
    },
    { weight: 1, arbitrary: fc.record({ log: logs, change: fc.constant(gate('feature.x', true)) }) },
    {
      weight: 1,
      arbitrary: fc.constantFrom<Write>(
        { log: ENVIRONMENT, change: organization('child', 'root') },
        { log: ENVIRONMENT, change: organization('child', null) },
        { log: ENVIRONMENT, change: { kind: 'organization', id: 'other', organization: null } },
        { log: ENVIRONMENT, change: grant('wide-wide-user:a', 'wide', 'user:a') },
        { log: ENVIRONMENT, change: { kind: 'role', key: 'wide', role: null } },
        { log: ENVIRONMENT, change: { kind: 'role', key: 'new', role: { key: 'new', name: 'New', permissions: [] } } },
        {
          log: ENVIRONMENT,
          change: {
            kind: 'manifest',
            manifest: { app: 'app', audiences: [], permissions: {}, roles: {}, model: null },
          },
        },
      ),
    },
  )
}

describe('the keys that a change affects', () => {
  test('hold every one whose content differs after it, those that become empty among them', async () => {
    let altered = 0
    await fc.assert(
      fc.asyncProperty(
        worlds.chain((world) => fc.record({ world: fc.constant(world), write: writes(world) })),
        async ({ world, write: { log, change } }) => {
          const store = memoryStore({ clock: () => NOW })
          await writeWorld(store, world)
          const own = world.content.child?.tuples ?? []
          if (own.length > 0) await store.write('child', own.map(written), { context })
          const before = await contents(store)
          const from = (await store.vector([log])).logs.get(log)?.revision ?? 0
          await store.write(log, [change], { context }).catch((err: { code?: string }) => {
            if (err.code !== 'conflict') throw err // an organization with children, a grant that is there
          })
          const after = await contents(store)
          // What the logs say is what caches hear of: a deleted organization's own log is cleared whole.
          const entries = await store.entries(
            [...ORGANIZATIONS, ENVIRONMENT].map((id) => ({ log: id, from: id === log ? from : 99, to: 1_000 })),
            1_000,
          )
          const keys = entries.filter((e) => e.revision > from).map((e) => affectedKeys(e.log, e.change))
          const named = new Set(keys.flatMap((k) => k ?? []).map(rowKeyName))
          for (const key of KEYS) {
            const name = rowKeyName(key)
            if (before.get(name) === after.get(name)) continue
            altered++
            const cleared = change.kind === 'organization' && change.organization === null && key.log === change.id
            if (!cleared) expect([change, [...named]]).toEqual([change, expect.arrayContaining([name])])
          }
        },
      ),
      { numRuns: 150 },
    )
    expect(altered).toBeGreaterThan(50)
  })

  test('are named by texts that differ whenever a part of them differs', () => {
    const word = fc.constantFrom('a', 'b', 'a:b', 'a#b')
    const key: fc.Arbitrary<RowKey> = fc.oneof(
      fc.record({ kind: fc.constant('set' as const), log: word, object: word, relation: word }),
      fc.record({ kind: fc.constant('tuple' as const), log: word, object: word, relation: word, subject: word }),
      fc.record({ kind: fc.constantFrom('groups' as const, 'grants' as const), log: word, subject: word }),
      fc.record({ kind: fc.constant('membership' as const), log: word, user: word }),
      fc.record({ kind: fc.constant('organization' as const), log: fc.constant(ENVIRONMENT), id: word }),
      fc.record({ kind: fc.constantFrom('manifests' as const, 'roles' as const), log: fc.constant(ENVIRONMENT) }),
    )
    fc.assert(
      fc.property(key, key, (one, other) => {
        const same = JSON.stringify(Object.entries(one).sort()) === JSON.stringify(Object.entries(other).sort())
        expect(rowKeyName(one) === rowKeyName(other)).toBe(same)
      }),
      { numRuns: effort({ short: 250, long: 2_000 }) },
    )
  })
})
