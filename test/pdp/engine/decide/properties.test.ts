/** The engine against a reference that derives everything by brute force, in random worlds. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { createPdp } from '../../../../pdp/engine/decision-point/create-pdp.ts'
import type { Store } from '../../../../pdp/engine/store/contract.ts'
import { memoryStore } from '../../../../pdp/engine/store/memory/memory.ts'
import type { Pdp, Subject, TokenMemberships } from '../../../../pdp/shared/domain/decision.ts'
import type { Tuple } from '../../../../pdp/shared/domain/tuple.ts'
import { effort } from '../../../support/effort.ts'
import {
  CHECKS,
  CIRCLE_CHECKS,
  CIRCLES,
  deleted,
  NOW,
  type RandomWorld,
  referenceWorld,
  SUBJECTS,
  tuples,
  worlds,
  writeWorld,
  written,
} from '../../../support/property-worlds.ts'
import { referenceAnswer } from '../../../support/reference.ts'
import { remoteMemoryStore } from '../../../support/stores.ts'
import { context, tuple } from '../../../support/tuples.ts'

const clock = (): number => NOW
const APP = 'app'
const subjectOf = (name: string): Subject => {
  const [type = '', id = ''] = name.split(':')
  return { type: type === 'user' ? 'user' : 'service', id }
}

/** `subject relation resource` of everything that is allowed. */
async function allowed(pdp: Pdp): Promise<readonly string[]> {
  const found: string[] = []
  for (const subject of SUBJECTS) {
    const { permissions } = await pdp.decide({
      organization: 'child',
      subject: subjectOf(subject),
      permissions: CHECKS,
    })
    for (const { relation, resource, allowed: yes, error } of permissions) {
      expect(error).toBeUndefined()
      if (yes) found.push(`${subject} ${relation} ${resource}`)
    }
  }
  return found
}

function expected(world: RandomWorld, held: readonly Tuple[]): readonly string[] {
  const reference = referenceWorld({
    ...world,
    content: { ...world.content, child: { ...childOf(world), tuples: held } },
  })
  return SUBJECTS.flatMap((subject) =>
    CHECKS.filter((check) => referenceAnswer(reference, { ...check, organization: 'child', subject, app: APP })).map(
      ({ relation, resource }) => `${subject} ${relation} ${resource}`,
    ),
  )
}
const childOf = (world: RandomWorld) => world.content.child ?? { tuples: [], memberships: {}, grants: [] }

async function opened(store: Store, world: RandomWorld, first: readonly Tuple[]): Promise<Pdp> {
  await writeWorld(store, world)
  if (first.length > 0) await store.write('child', first.map(written), { context })
  return createPdp({ store, app: APP })
}

describe('in random worlds', () => {
  test('the engine allows what follows from the least fixpoint, and nothing else', async () => {
    let allows = 0
    await fc.assert(
      fc.asyncProperty(worlds, async (world) => {
        const pdp = await opened(memoryStore({ clock }), world, childOf(world).tuples)
        const found = await allowed(pdp)
        allows += found.length
        expect(found).toEqual(expected(world, childOf(world).tuples))
      }),
      { numRuns: effort({ short: 50, long: 300 }) },
    )
    expect(allows).toBeGreaterThan(effort({ short: 60, long: 500 })) // the worlds are worth asking about
  })

  test('groups of one question hold its subject as stored ones would, and nothing of them is left', async () => {
    let changed = 0
    const some = fc.uniqueArray(fc.constantFrom('0', '1', '2'), { minLength: 1 })
    await fc.assert(
      fc.asyncProperty(worlds, some, fc.boolean(), async (world, groups, cached) => {
        const stored = childOf(world).tuples
        const joined = groups.map((id) => tuple(`group:${id}#member@user:a`))
        const names = new Set(joined.map(nameOf))
        const of = (held: readonly Tuple[]) => expected(world, held).filter((line) => line.startsWith('user:a '))
        const pdp = await opened(cached ? remoteMemoryStore({ clock }) : memoryStore({ clock }), world, stored)
        const ask = async (memberships?: TokenMemberships) => {
          const asked = { organization: 'child', subject: subjectOf('user:a'), permissions: CHECKS }
          const { permissions } = await pdp.decide({ ...asked, ...(memberships && { memberships }) })
          expect(permissions.map(({ error }) => error)).toEqual(CHECKS.map(() => undefined))
          return permissions.filter((p) => p.allowed).map(({ relation, resource }) => `user:a ${relation} ${resource}`)
        }
        const right = of([...stored.filter((held) => !names.has(nameOf(held))), ...joined])
        expect(await ask({ groups, organizations: ['child'] })).toEqual(right)
        expect(await ask({ groups, organizations: ['none of these'] })).toEqual(of(stored))
        expect(await ask()).toEqual(of(stored))
        if (right.length !== of(stored).length) changed += 1
      }),
      { numRuns: effort({ short: 40, long: 200 }) },
    )
    expect(changed).toBeGreaterThan(effort({ short: 4, long: 10 }))
  })

  test('the engine is right about what is held in circles, wherever it enters them', async () => {
    let allows = 0
    await fc.assert(
      fc.asyncProperty(CIRCLES.tuples, fc.boolean(), async (held, cached) => {
        const world: RandomWorld = {
          model: CIRCLES.model,
          parents: { child: null },
          content: { child: { tuples: held, memberships: {}, grants: [] } },
          environmentGrants: [],
        }
        const pdp = await opened(cached ? remoteMemoryStore({ clock }) : memoryStore({ clock }), world, held)
        const asked = { organization: 'child', subject: 'user:a', app: APP }
        const right = CIRCLE_CHECKS.map((check) => referenceAnswer(referenceWorld(world), { ...check, ...asked }))
        allows += right.filter(Boolean).length
        const { permissions } = await pdp.decide({
          organization: 'child',
          subject: subjectOf('user:a'),
          permissions: CIRCLE_CHECKS,
        })
        expect(permissions.map((p) => p.allowed)).toEqual(right)
      }),
      { numRuns: effort({ short: 50, long: 300 }) },
    )
    expect(allows).toBeGreaterThan(effort({ short: 60, long: 500 }))
  })

  test('the cache answers the same through deletions and additions, in any order', async () => {
    const steps = fc.array(fc.array(fc.record({ tuple: tuples, add: fc.boolean() }), { minLength: 1, maxLength: 3 }), {
      maxLength: 4,
    })
    await fc.assert(
      fc.asyncProperty(worlds, steps, fc.nat(), async (world, moves, turn) => {
        const store = remoteMemoryStore({ clock })
        const all = childOf(world).tuples
        const pdp = await opened(store, world, [
          ...all.slice(turn % (all.length + 1)),
          ...all.slice(0, turn % (all.length + 1)),
        ])
        const held = new Map(all.map((tuple) => [nameOf(tuple), tuple]))
        expect(await allowed(pdp)).toEqual(expected(world, all))
        for (const move of moves) {
          const changes = new Map(move.map((change) => [nameOf(change.tuple), change]))
          for (const [name, { tuple, add }] of changes) {
            if (add) held.set(name, tuple)
            else held.delete(name)
          }
          await store.write(
            'child',
            [...changes.values()].map(({ tuple, add }) => (add ? written(tuple) : deleted(tuple))),
            { context },
          )
          expect(await allowed(pdp)).toEqual(expected(world, [...held.values()]))
        }
        if (held.size === 0) return
        await store.write('child', [...held.values()].map(deleted), { context })
        expect(await allowed(pdp)).toEqual(expected(world, []))
        await store.write('child', [...held.values()].reverse().map(written), { context })
        expect(await allowed(pdp)).toEqual(expected(world, [...held.values()]))
      }),
      { numRuns: 60 },
    )
  })

  test('one question is answered like the same one among many, cold and warm', async () => {
    await fc.assert(
      fc.asyncProperty(
        worlds,
        fc.constantFrom(...SUBJECTS),
        fc.shuffledSubarray([...CHECKS], { maxLength: 8 }),
        async (world, subject, checks) => {
          const store = remoteMemoryStore({ clock })
          const warm = await opened(store, world, childOf(world).tuples)
          const { permissions } = await warm.decide({
            organization: 'child',
            subject: subjectOf(subject),
            permissions: checks,
          })
          for (const { relation, resource, allowed: yes } of permissions) {
            const cold = createPdp({ store, app: APP })
            expect(await cold.can('child', subjectOf(subject), relation, resource)).toBe(yes)
            expect(await warm.can('child', subjectOf(subject), relation, resource)).toBe(yes)
          }
        },
      ),
      { numRuns: effort({ short: 40, long: 100 }) },
    )
  })

  test('lists hold exactly what the checks allow', async () => {
    await fc.assert(
      fc.asyncProperty(worlds, fc.integer({ min: 1, max: 2 }), async (world, pageSize) => {
        const pdp = await opened(remoteMemoryStore({ clock }), world, childOf(world).tuples)
        const right = await allowed(pdp)
        const walk = async (ask: (pageToken: string | null) => ReturnType<Pdp['listResources']>) => {
          const items: string[] = []
          for (let token: string | null = null, first = true; first || token !== null; first = false) {
            const page = await ask(token)
            items.push(...page.items)
            expect([page.complete, page.revisionUnchanged]).toEqual([true, true])
            token = page.nextPageToken
          }
          return items
        }
        for (const relation of ['r1', 'r3', 'owner', 'k0', 'k1']) {
          for (const subject of SUBJECTS) {
            const listed: string[] = []
            for (const type of ['doc', 'folder', 'free', 'organization', 'app']) {
              const request = { organization: 'child', subject: subjectOf(subject), relation, type, pageSize }
              listed.push(...(await walk((pageToken) => pdp.listResources({ ...request, pageToken }))))
            }
            const wanted = right
              .filter((line) => line.startsWith(`${subject} ${relation} `))
              .map((line) => line.split(' ')[2])
            // Organization-wide keys are held on any app; a list names those that are declared.
            expect(listed.sort()).toEqual(wanted.filter((resource) => resource !== 'app:none').sort())
          }
        }
        for (const { relation, resource } of CHECKS.filter((_, i) => i % 5 === 3)) {
          const named: string[] = []
          for (const type of ['user', 'service']) {
            const request = { organization: 'child', resource, relation, type, pageSize }
            named.push(...(await walk((pageToken) => pdp.listSubjects({ ...request, pageToken }))))
          }
          const wanted = SUBJECTS.filter((subject) => right.includes(`${subject} ${relation} ${resource}`))
          const stranger = await pdp.can('child', { type: 'user', id: 'stranger' }, relation, resource)
          expect(named.includes('user:*')).toBe(stranger)
          for (const subject of named) if (subject !== 'user:*') expect(wanted).toContain(subject)
          // Whom nothing names is not listed, and is allowed as anybody is.
          for (const subject of wanted) if (!named.includes(subject)) expect(stranger).toBe(true)
        }
      }),
      { numRuns: 60 },
    )
  })
})

const nameOf = (t: Tuple): string => `${t.object}#${t.relation}@${t.subject}`
