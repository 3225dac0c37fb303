/** Questions about the past are answered as they were answered then, or not at all. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { createPdp } from '../../../../pdp/engine/decision-point/create-pdp.ts'
import type { Store } from '../../../../pdp/engine/store/contract.ts'
import { memoryStore } from '../../../../pdp/engine/store/memory/memory.ts'
import type { Pdp } from '../../../../pdp/shared/domain/decision.ts'
import { ENVIRONMENT } from '../../../../pdp/shared/domain/journal.ts'
import { user } from '../../../../pdp/shared/domain/subjects.ts'
import { CHECKS, deleted, worlds, writeWorld, written } from '../../../support/property-worlds.ts'
import { remoteMemoryStore } from '../../../support/stores.ts'
import { context, drop, given, organization, put } from '../../../support/tuples.ts'

async function allowed(pdp: Pdp, asOfMs?: number): Promise<readonly string[]> {
  const at = asOfMs === undefined ? {} : { asOfMs }
  const question = { organization: 'child', subject: user('a'), permissions: CHECKS }
  const { permissions } = await pdp.decide({ ...question, ...at })
  return permissions.filter((one) => one.allowed).map(({ relation, resource }) => `${relation} ${resource}`)
}

describe('a question about the past', () => {
  test('has the answer that it had then, whatever was written since', async () => {
    let changed = 0
    await fc.assert(
      fc.asyncProperty(worlds, fc.boolean(), async (world, cached) => {
        let nowMs = 1_000
        const clock = (): number => nowMs
        const store = cached ? remoteMemoryStore({ clock }) : memoryStore({ clock })
        const pdp = createPdp({ store, app: 'app' })
        await writeWorld(store, world)
        const then: (readonly [number, readonly string[]])[] = [[nowMs, await allowed(pdp)]]
        for (const one of world.content.child?.tuples ?? []) {
          nowMs += 1_000
          await store.write('child', [written(one)], { context })
          then.push([nowMs, await allowed(pdp)])
        }
        for (const one of world.content.child?.tuples ?? []) {
          nowMs += 1_000
          await store.write('child', [deleted(one)], { context })
        }
        nowMs += 1_000
        await store.write(ENVIRONMENT, [{ kind: 'role', key: 'wide', role: null }], { context })
        for (const [atMs, answer] of then) expect(await allowed(pdp, atMs)).toEqual(answer)
        if (new Set(then.map(([, answer]) => answer.join())).size > 1) changed += 1
      }),
      // Some worlds change no answer: these do.
      { numRuns: 20, seed: 20260131 },
    )
    expect(changed).toBeGreaterThan(0) // the worlds are worth asking about
  })

  async function changing(): Promise<{ readonly store: Store; readonly pdp: Pdp }> {
    let nowMs = 10
    const store = memoryStore({ clock: () => nowMs })
    await given(store, ENVIRONMENT, organization('acme'))
    nowMs = 20
    await given(store, 'acme', put('doc:1#viewer@user:ann'))
    nowMs = 30
    await given(store, 'acme', drop('doc:1#viewer@user:ann'), put('doc:2#viewer@user:ann'))
    return { store, pdp: createPdp({ store }) }
  }
  const CHECK = { relation: 'viewer', resource: 'doc:1' }

  test.each([
    ['an invitation', 'acme', { kind: 'invitation', id: 'one', op: 'write' }],
    ['a trusted issuer', ENVIRONMENT, { kind: 'trusted_issuer', id: 'https://idp.example', op: 'write' }],
    ['a provider of sign-in', 'acme', { kind: 'identity_provider', id: 'one', op: 'delete' }],
  ] as const)('passes over %s in the log, which no decision reads', async (_, log, change) => {
    const { store } = await changing()
    const administered: Store = {
      ...store,
      vector: async (logs) => {
        const found = await store.vector(logs)
        const positions = [...found.logs].map(
          ([id, at]) => [id, id === log ? { ...at, revision: at.revision + 1 } : at] as const,
        )
        return { ...found, logs: new Map(positions) }
      },
      // It is the first of its log, and all others come one revision later.
      entries: async (ranges, max) => {
        const [range = { log, from: 0, to: 0 }] = ranges
        if (range.log !== log) return store.entries(ranges, max)
        const later = await store.entries([{ ...range, from: 0, to: range.to - 1 }], max)
        const first = { log, revision: 1, writeId: '1', actor: 'test', requestId: 'test', atMs: 1, change }
        const all = [first, ...later.map((entry) => ({ ...entry, revision: entry.revision + 1 }))]
        return all.filter(({ revision }) => revision >= range.from && revision <= range.to)
      },
    }
    const pdp = createPdp({ store: administered })
    const asked = { organization: 'acme', subject: user('ann'), permissions: [CHECK], asOfMs: 25 }
    expect((await pdp.decide(asked)).permissions[0]?.allowed).toBe(true)
  })

  test('may ask for lists', async () => {
    const { pdp } = await changing()
    const question = { organization: 'acme', subject: user('ann'), relation: 'viewer', type: 'doc' }
    expect((await pdp.listResources({ ...question, asOfMs: 25 })).items).toEqual(['doc:1'])
    expect((await pdp.listResources(question)).items).toEqual(['doc:2'])
    expect(
      (
        await pdp.listSubjects({
          organization: 'acme',
          resource: 'doc:1',
          relation: 'viewer',
          type: 'user',
          asOfMs: 25,
        })
      ).items,
    ).toEqual(['user:ann'])
  })

  test('denies what is asked of a time before everything', async () => {
    const { pdp } = await changing()
    const { permissions } = await pdp.decide({
      organization: 'acme',
      subject: user('ann'),
      permissions: [CHECK],
      asOfMs: 1,
    })
    expect(permissions[0]?.allowed).toBe(false)
  })

  test.each([
    ['the beginning of the log was deleted', { from: 2 }],
    ['everything was deleted at once', { clear: true }],
  ])('is refused when %s', async (_, { from = 0, clear = false }: { from?: number; clear?: boolean }) => {
    const { store } = await changing()
    const trimmed: Store = {
      ...store,
      entries: async (ranges, max) =>
        (await store.entries(ranges, max))
          .filter(({ revision }) => revision >= from)
          .map((entry) => (clear ? { ...entry, change: { kind: 'clear' } as const } : entry)),
    }
    const asked = createPdp({ store: trimmed }).decide({
      organization: 'acme',
      subject: user('ann'),
      permissions: [CHECK],
      asOfMs: 25,
    })
    await expect(asked).rejects.toMatchObject({ code: 'request_invalid', issues: [{ place: '/asOfMs' }] })
  })

  test('lets other work go on while its log is replayed, and is refused when too many wait', async () => {
    const store = memoryStore()
    for (let i = 0; i < 1_000; i++) await given(store, 'acme', put(`doc:${i}#viewer@user:ann`))
    const pdp = createPdp({ store })
    const question = { organization: 'acme', subject: user('ann'), permissions: [CHECK], asOfMs: Date.now() }
    let turns = 0
    const counting = setInterval(() => {
      turns += 1
    }, 0)
    const asked = await Promise.allSettled(Array.from({ length: 10 }, () => pdp.decide(question)))
    clearInterval(counting)
    expect(turns).toBeGreaterThan(0)
    expect(asked.map(({ status }) => status)).toEqual([...Array(9).fill('fulfilled'), 'rejected'])
    expect(asked.at(-1)).toMatchObject({ reason: { code: 'overloaded' } })
    await expect(pdp.decide(question)).resolves.toMatchObject({ permissions: [{ allowed: true }] })
  })

  test.each([Number.NaN, Number.POSITIVE_INFINITY])('is refused at %s', async (asOfMs) => {
    const { pdp } = await changing()
    const asked = pdp.decide({ organization: 'acme', subject: user('ann'), permissions: [CHECK], asOfMs })
    await expect(asked).rejects.toMatchObject({ code: 'request_invalid', issues: [{ place: '/asOfMs' }] })
  })
})
