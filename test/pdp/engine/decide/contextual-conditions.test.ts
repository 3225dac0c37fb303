/** Contextual tuples with a condition: they count as if they were written in place of what is stored, and only once. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { createPdp } from '../../../../pdp/engine/decision-point/create-pdp.ts'
import type { Store } from '../../../../pdp/engine/store/contract.ts'
import { memoryStore } from '../../../../pdp/engine/store/memory/memory.ts'
import type { ContextualTuple, Pdp } from '../../../../pdp/shared/domain/decision.ts'
import { ENVIRONMENT } from '../../../../pdp/shared/domain/journal.ts'
import { user } from '../../../../pdp/shared/domain/subjects.ts'
import { effort } from '../../../support/effort.ts'
import { remoteMemoryStore } from '../../../support/stores.ts'
import { given, member, put, putIf } from '../../../support/tuples.ts'

const model = `model
  schema 1.1
type team
  relations
    define member: [user, user with low, team#member, team#member with low]
type folder
  relations
    define viewer: [user, user with low, user:*, user:* with low, team#member, team#member with low]
type doc
  relations
    define parent: [folder, folder with low]
    define blocked: [user, user with low, user:*, user:* with low]
    define viewer: ([user, user with low, team#member, team#member with low] or viewer from parent) but not blocked
condition low(level: int) {
  level < 5
}
`
const KEYS = [
  'doc:1#viewer@user:a',
  'doc:1#viewer@team:x#member',
  'doc:1#blocked@user:a',
  'doc:1#blocked@user:*',
  'doc:1#parent@folder:f',
  'folder:f#viewer@user:*',
  'folder:f#viewer@team:y#member',
  'team:x#member@user:a',
  'team:y#member@team:x#member',
]
/** Without a condition, with one that the question decides, and with one that is decided by what is stored. */
type Form = 'plain' | 'open' | 'true' | 'false'
type Written = ReadonlyMap<string, Form>
const CONTEXTS = { open: {}, true: { level: 1 }, false: { level: 9 } } as const
const written = fc
  .uniqueArray(fc.tuple(fc.constantFrom(...KEYS), fc.constantFrom<Form>('plain', 'open', 'true', 'false')), {
    selector: ([key]) => key,
  })
  .map((entries): Written => new Map(entries))

async function opened(open: () => Store, tuples: Written): Promise<Pdp> {
  const store = open()
  const manifest = { app: 'docs', audiences: [], permissions: {}, roles: {}, model }
  await given(store, ENVIRONMENT, { kind: 'manifest', manifest })
  const changes = [...tuples].map(([key, form]) => (form === 'plain' ? put(key) : putIf(key, 'low', CONTEXTS[form])))
  await given(store, 'acme', put('doc:0#viewer@user:z'), ...changes)
  return createPdp({ store })
}

function contextual(tuples: Written): readonly ContextualTuple[] {
  return [...tuples].map(([key, form]) => {
    const change = form === 'plain' ? put(key) : putIf(key, 'low', CONTEXTS[form])
    if (change.kind !== 'tuple') throw new Error('not a tuple')
    const { expiresAtMs: _, ...tuple } = change.tuple
    return tuple
  })
}

async function answers(pdp: Pdp, contextualTuples: readonly ContextualTuple[]): Promise<string> {
  const found: unknown[] = []
  for (const context of [undefined, { level: 1 }, { level: 9 }]) {
    const common = { organization: 'acme', contextualTuples, ...(context !== undefined && { context }) }
    for (const subject of [user('a'), user('b'), { type: 'team', id: 'x', relation: 'member' }]) {
      const permissions = ['doc:1', 'folder:f'].map((resource) => ({ relation: 'viewer', resource }))
      const decision = await pdp.decide({ ...common, subject, permissions })
      // Of several ways to an allow any one may be told.
      found.push(decision.permissions.map(({ reasonCode: _, ...result }) => result))
      const listed = await pdp.listResources({ ...common, subject, relation: 'viewer', type: 'doc' })
      found.push([listed.items, listed.complete, listed.undecided])
    }
    const subjects = await pdp.listSubjects({ ...common, resource: 'doc:1', relation: 'viewer', type: 'user' })
    found.push([subjects.items, subjects.complete, subjects.undecided])
  }
  return JSON.stringify(found)
}

const stores: Record<string, () => Store> = { 'near memory': memoryStore, 'far memory': remoteMemoryStore }
describe.each(Object.entries(stores))('in %s', (_, open) => {
  test('they count in the first question of all, before anything is in memory', async () => {
    const pdp = await opened(open, new Map())
    const contextualTuples = contextual(new Map<string, Form>([['doc:1#viewer@user:a', 'true']]))
    const permissions = [{ relation: 'viewer', resource: 'doc:1' }]
    const decision = await pdp.decide({ organization: 'acme', subject: user('a'), permissions, contextualTuples })
    expect(decision.permissions).toMatchObject([{ allowed: true }])
  })

  test('they count as if they were written in place of what is stored, and leave nothing behind', async () => {
    await fc.assert(
      fc.asyncProperty(written, written, async (stored, coming) => {
        const pdp = await opened(open, stored)
        const both = await opened(open, new Map([...stored, ...coming]))
        const before = await answers(pdp, [])
        expect(await answers(pdp, contextual(coming))).toBe(await answers(both, []))
        expect(await answers(pdp, [])).toBe(before)
      }),
      { numRuns: effort({ short: 30, long: 60 }) },
    )
  })
})

describe('a contextual tuple', () => {
  const tuple = { object: 'doc:1', relation: 'viewer', subject: 'user:a' }
  const itself: { [name: string]: unknown } = {}
  itself.itself = itself
  test.each<[string, unknown, RegExp]>([
    ['names no condition', { context: {} }, /the name of the condition is not a string/],
    ['names a condition with white space', { name: 'l w', context: {} }, /is not a name/],
    ['has no context', { name: 'low' }, /is not an object/],
    ['has a list for a context', { name: 'low', context: [] }, /is not an object/],
    [
      'has a context that is too large',
      { name: 'low', context: { level: 'x'.repeat(40_000) } },
      /more than 32768 bytes/,
    ],
    ['has a context that holds itself', { name: 'low', context: itself }, /is not JSON/],
    ['names a condition that the model does not know', { name: 'high', context: {} }, /with condition "high"/],
    ['has a parameter that the condition does not', { name: 'low', context: { lvl: 1 } }, /no parameter "lvl"/],
    ['has a value of another type', { name: 'low', context: { level: 'x' } }, /level is not a whole number/],
  ])('that %s is refused with its place', async (_, condition, message) => {
    const pdp = await opened(memoryStore, new Map())
    const contextualTuples = [
      { ...tuple, relation: 'blocked' },
      { ...tuple, condition: condition as never },
    ]
    const permissions = [{ relation: 'viewer', resource: 'doc:1' }]
    const asking = pdp.decide({ organization: 'acme', subject: user('a'), permissions, contextualTuples })
    await expect(asking).rejects.toMatchObject({
      code: 'request_invalid',
      issues: [{ place: '/contextualTuples/1', message: expect.stringMatching(message) }],
    })
  })

  test.each([{ level: 1n }, itself])('cannot come with a context that is no JSON', async (context) => {
    const pdp = await opened(memoryStore, new Map())
    const permissions = [{ relation: 'viewer', resource: 'doc:1' }]
    const asking = pdp.decide({ organization: 'acme', subject: user('a'), permissions, context: context as never })
    await expect(asking).rejects.toMatchObject({ code: 'request_invalid', issues: [{ place: '/context' }] })
  })
})

test('who is not an active member is denied, whatever a condition lacks', async () => {
  const store = remoteMemoryStore()
  const manifest = { app: 'docs', audiences: [], permissions: {}, roles: {}, model }
  await given(store, ENVIRONMENT, { kind: 'manifest', manifest })
  await given(store, 'acme', putIf('doc:1#viewer@user:a', 'low'))
  const pdp = createPdp({ store })
  const permissions = [{ relation: 'viewer', resource: 'doc:1' }]
  const ask = async () => (await pdp.decide({ organization: 'acme', subject: user('a'), permissions })).permissions[0]
  expect(await ask()).toMatchObject({ allowed: false, error: 'condition_failed', missingContext: ['level'] })
  for (const status of ['suspended', 'invited'] as const) {
    await given(store, 'acme', member('a', 'member', status))
    expect(await ask()).toEqual({ ...permissions[0], allowed: false, reasonCode: 'membership_suspended' })
  }
  await given(store, 'acme', member('a', 'member'))
  expect(await ask()).toMatchObject({ allowed: false, error: 'condition_failed' })
})
