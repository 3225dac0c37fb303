/** What a decision costs in statements, counted at the server. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createPdp } from '../../../../../pdp/engine/decision-point/create-pdp.ts'
import { SET_ROWS_MAX, type Store } from '../../../../../pdp/engine/store/contract.ts'
import { openPostgres } from '../../../../../pdp/engine/store/postgres/postgres.ts'
import type { Pdp } from '../../../../../pdp/shared/domain/decision.ts'
import { ENVIRONMENT } from '../../../../../pdp/shared/domain/journal.ts'
import { openTestDatabase } from '../../../../support/database.ts'
import { calls, openStatementCounter, type StatementCounter } from '../../../../support/statements.ts'
import { context, gate, given, grant, member, organization, put } from '../../../../support/tuples.ts'

const ALICE = { type: 'user', id: 'alice' } as const
const ORGANIZATIONS = Array.from({ length: 8 }, (_, i) => `o${i}`)
const NESTINGS = [0, 1, 4, 12, 24]

let store: Store
let counter: StatementCounter
let close: () => Promise<void>

beforeAll(async () => {
  const database = await openTestDatabase()
  const opened = await openPostgres({ connectionString: database.connectionString })
  store = opened.store
  counter = await openStatementCounter(database.connectionString)
  close = async () => {
    await counter.close()
    await opened.close()
    await database.drop()
  }
  for (const id of ORGANIZATIONS) {
    await given(store, id, member('alice', 'member'), put('group:g1#member@user:alice'), gate('feature.a', true))
    await given(store, id, ...nested())
  }
  await given(store, 'wide', ...Array.from({ length: SET_ROWS_MAX + 500 }, (_, i) => put(`doc:w#viewer@user:u${i}`)))
})
afterAll(() => close())

/** `doc:<n>` is viewed through n groups, one inside the other. */
function nested() {
  const chain = Array.from({ length: 23 }, (_, i) => put(`group:g${i + 2}#member@group:g${i + 1}#member`))
  const documents = NESTINGS.map((n) => put(`doc:${n}#viewer@${n === 0 ? 'user:alice' : `group:g${n}#member`}`))
  return [...chain, ...documents]
}

/** Each of the callers asks on its own, in the same tick. */
const askAll = (pdp: Pdp, callers: number): Promise<readonly boolean[]> =>
  Promise.all(
    Array.from({ length: callers }, (_, i) => pdp.can(`o${i % ORGANIZATIONS.length}`, ALICE, 'viewer', 'doc:4')),
  )

async function warmPdp(): Promise<Pdp> {
  const pdp = createPdp({ store })
  expect(await askAll(pdp, 64)).not.toContain(false)
  return pdp
}

describe('a warm decision', () => {
  test('costs one statement', async () => {
    const pdp = await warmPdp()
    const counted = await counter.during(() => pdp.can('o0', ALICE, 'viewer', 'doc:4'))
    expect(counted).toMatchObject([{ calls: 1 }])
  })

  test.each([2, 32, 512])('shares its one statement with all %i callers that wait', async (callers) => {
    const pdp = await warmPdp()
    const counted = await counter.during(() => askAll(pdp, callers))
    expect(calls(counted)).toBe(1)
  })

  test('costs a second statement only for the organizations that changed', async () => {
    const pdp = await warmPdp()
    await store.write('o1', [put('doc:x#viewer@user:bob')], { context })
    await store.write('o2', [put('doc:x#viewer@user:bob')], { context })
    const counted = await counter.during(() => askAll(pdp, 64))
    expect(calls(counted)).toBe(2)
    const entries = counted.find(({ text }) => text.includes('change_log'))
    // For each of the two: the entry that the cache stands at, which shows that the history is the same, and the new one.
    expect(entries).toMatchObject({ calls: 1, rows: 4 })
    expect(calls(await counter.during(() => askAll(pdp, 64)))).toBe(1)
  })

  test('costs one statement with entitlements whose version is known', async () => {
    const pdp = createPdp({ store })
    const ask = () =>
      pdp.decide({
        organization: 'o0',
        subject: ALICE,
        permissions: [{ relation: 'viewer', resource: 'doc:4' }],
        entitlements: ['feature.a', 'feature.none'],
      })
    await ask()
    expect(calls(await counter.during(ask))).toBe(1)
  })

  test('costs nothing that grows with the number of its checks', async () => {
    const pdp = await warmPdp()
    const permissions = Array.from({ length: 256 }, () => ({ relation: 'viewer', resource: 'doc:4' }))
    const counted = await counter.during(() => pdp.decide({ organization: 'o0', subject: ALICE, permissions }))
    expect(calls(counted)).toBe(1)
  })
})

describe('a cold check', () => {
  test.each(NESTINGS)('costs at most two statements through %i nested groups', async (nesting) => {
    const pdp = createPdp({ store })
    let allowed = false
    const counted = await counter.during(async () => {
      allowed = await pdp.can('o0', ALICE, 'viewer', `doc:${nesting}`)
    })
    expect(allowed).toBe(true)
    expect(calls(counted)).toBeLessThanOrEqual(2)
  })

  test.each([
    ['is a denial', 'o0', { type: 'user', id: 'stranger' }, 'viewer', 'doc:4'],
    ['is about a permission key', 'o0', ALICE, 'x:read', 'organization:o0'],
    ['is about a tier', 'o0', ALICE, 'member', 'organization:o0'],
    ['meets a set that is too wide to load', 'wide', { type: 'user', id: 'u1400' }, 'viewer', 'doc:w'],
    ['is about an organization that does not exist', 'nowhere', ALICE, 'viewer', 'doc:4'],
  ] as const)('costs at most two statements when it %s', async (_, organizationId, subject, relation, resource) => {
    const pdp = createPdp({ store })
    const counted = await counter.during(() => pdp.can(organizationId, subject, relation, resource))
    expect(calls(counted)).toBeLessThanOrEqual(2)
  })

  test('costs at most two statements each when many wait for rows at once', async () => {
    const pdp = createPdp({ store })
    const counted = await counter.during(() => askAll(pdp, 64))
    expect(calls(counted)).toBeLessThanOrEqual(2)
  })
})

describe('a batch of 50 cold checks', () => {
  test('costs at most three statements', async () => {
    const permissions = Array.from({ length: 50 }, (_, i) => ({ relation: 'viewer', resource: `doc:${i % 25}` }))
    const pdp = createPdp({ store })
    const ask = () => pdp.decide({ organization: 'o0', subject: ALICE, permissions, entitlements: ['feature.a'] })
    expect(calls(await counter.during(ask))).toBeLessThanOrEqual(3)
  })
})

describe('an organization below others', () => {
  test('costs one statement warm, and two more than others while its ancestors are unknown', async () => {
    await store.write(ENVIRONMENT, [organization('child', 'o0'), organization('grandchild', 'child')], { context })
    await store.write('o0', [grant('g', 'r', 'user:alice')], { context })
    const pdp = createPdp({ store })
    const ask = () => pdp.can('grandchild', ALICE, 'x:read', 'organization:grandchild')
    expect(calls(await counter.during(ask))).toBeLessThanOrEqual(4)
    expect(calls(await counter.during(ask))).toBe(1)
  })
})
