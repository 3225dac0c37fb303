/** Stored tuples that a question supposes away: its answer is that of a store without them, and nothing of it is left. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { createPdp } from '../../../../../pdp/engine/decision-point/create-pdp.ts'
import { memoryStore } from '../../../../../pdp/engine/store/memory/memory.ts'
import type { ContextualTuple, Pdp } from '../../../../../pdp/shared/domain/decision.ts'
import { ENVIRONMENT } from '../../../../../pdp/shared/domain/journal.ts'
import { user } from '../../../../../pdp/shared/domain/subjects.ts'
import type { Tuple } from '../../../../../pdp/shared/domain/tuple.ts'
import {
  CHECKS,
  NOW,
  type RandomWorld,
  SUBJECTS,
  worlds,
  writeWorld,
  written,
} from '../../../../support/property-worlds.ts'
import { remoteMemoryStore } from '../../../../support/stores.ts'
import { context, given, organization, put, tuple } from '../../../../support/tuples.ts'

const clock = (): number => NOW
/** Memberships and roles go on seeing what is stored. */
const RELATIONS = CHECKS.filter(({ resource }) => /^(doc|folder):/.test(resource))
const bare = ({ object, relation, subject }: Tuple): ContextualTuple => ({ object, relation, subject })

async function allowed(pdp: Pdp, withoutTuples: readonly ContextualTuple[]): Promise<readonly string[]> {
  const found: string[] = []
  for (const name of SUBJECTS) {
    const [type = '', id = ''] = name.split(':')
    const question = { organization: 'child', subject: { type, id }, permissions: RELATIONS }
    const { permissions } = await pdp.decide({ ...question, withoutTuples })
    for (const one of permissions) if (one.allowed) found.push(`${name} ${one.relation} ${one.resource}`)
  }
  return found
}

async function opened(world: RandomWorld, tuples: readonly Tuple[], cached: boolean): Promise<Pdp> {
  const store = cached ? remoteMemoryStore({ clock }) : memoryStore({ clock })
  await writeWorld(store, world)
  if (tuples.length > 0) await store.write('child', tuples.map(written), { context })
  return createPdp({ store, app: 'app' })
}

describe('tuples that a question supposes away', () => {
  test('change its answer as if they were not stored, through groups and conditions too, and no other answer', async () => {
    let changed = 0
    await fc.assert(
      fc.asyncProperty(worlds, fc.boolean(), fc.infiniteStream(fc.boolean()), async (world, cached, coin) => {
        const stored = world.content.child?.tuples ?? []
        const gone = stored.filter(() => coin.next().value === true)
        const pdp = await opened(world, stored, cached)
        const before = await allowed(pdp, [])
        const expected = await allowed(
          await opened(
            world,
            stored.filter((one) => !gone.includes(one)),
            false,
          ),
          [],
        )
        expect(await allowed(pdp, gone.map(bare))).toEqual(expected)
        expect(await allowed(pdp, [])).toEqual(before)
        if (before.join() !== expected.join()) changed += 1
      }),
      { numRuns: 60 },
    )
    expect(changed).toBeGreaterThan(0) // the worlds are worth asking about
  })

  test('do not take away a role that a group gives', async () => {
    const store = memoryStore()
    await given(store, ENVIRONMENT, organization('acme'))
    await given(store, ENVIRONMENT, {
      kind: 'role',
      key: 'reader',
      role: { key: 'reader', name: 'Reader', permissions: ['reports:read'] },
    })
    await given(store, 'acme', put('group:staff#member@user:ann'), {
      kind: 'role_grant',
      op: 'write',
      grant: { id: '1', app: null, role: 'reader', subject: 'group:staff' },
    })
    const pdp = createPdp({ store, app: 'any' })
    const { permissions } = await pdp.decide({
      organization: 'acme',
      subject: user('ann'),
      permissions: [
        { relation: 'reports:read', resource: 'organization:acme' },
        { relation: 'member', resource: 'group:staff' },
      ],
      withoutTuples: [tuple('group:staff#member@user:ann')],
    })
    expect(permissions.map((one) => one.allowed)).toEqual([true, false])
  })

  test.each([
    ['no tuple', [{ object: 'doc', relation: 'viewer', subject: 'user:a' }], '/withoutTuples/0'],
    ['more than 100', Array.from({ length: 101 }, (_, i) => tuple(`doc:${i}#viewer@user:a`)), '/withoutTuples'],
  ])('are refused as %s', async (_, withoutTuples, place) => {
    const pdp = createPdp({ store: memoryStore() })
    const asked = pdp.decide({ organization: 'acme', subject: user('a'), permissions: [], withoutTuples })
    await expect(asked).rejects.toMatchObject({ code: 'request_invalid', issues: [{ place }] })
  })
})
