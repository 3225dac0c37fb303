/** Relations that lead from level to level: a cold question reads the levels of a chain in one statement, however many they are. */
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createPdp } from '../../../../../pdp/engine/decision-point/create-pdp.ts'
import { rowKeyName } from '../../../../../pdp/engine/store/cache/row-keys.ts'
import {
  CHAIN_SETS_MAX,
  type Reading,
  type RowKey,
  SET_ROWS_MAX,
  type Store,
} from '../../../../../pdp/engine/store/contract.ts'
import { memoryStore } from '../../../../../pdp/engine/store/memory/memory.ts'
import { openPostgres } from '../../../../../pdp/engine/store/postgres/postgres.ts'
import { ENVIRONMENT } from '../../../../../pdp/shared/domain/journal.ts'
import { user } from '../../../../../pdp/shared/domain/subjects.ts'
import { openTestDatabase } from '../../../../support/database.ts'
import { calls, openStatementCounter, type StatementCounter } from '../../../../support/statements.ts'
import { drop, given, put, putIf, tuple } from '../../../../support/tuples.ts'

const MODEL = `model
  schema 1.1
type user
type team
  relations
    define member: [user, team#member, team#member with open]
type folder
  relations
    define parent: [folder, team]
    define viewer: [user] or viewer from parent
type doc
  relations
    define parent: [folder]
    define viewer: [user, team#member] or viewer from parent
condition open(yes: bool) {
  yes
}
`
const DEPTHS = [1, 2, 16, 60, CHAIN_SETS_MAX + 50]
const FAR = Date.now() + 3_600_000
const set = (log: string, object: string, relation: string, chain = false): RowKey => ({
  log,
  kind: 'set',
  object,
  relation,
  ...(chain && { chain: true }),
})
const byName = ({ rows }: Reading): ReadonlyMap<string, unknown> =>
  new Map(
    rows.map((row) => [
      rowKeyName(row.key),
      { ...row, subjects: 'subjects' in row ? [...row.subjects].sort(bySubject) : [] },
    ]),
  )
const bySubject = (a: { readonly subject: string }, b: { readonly subject: string }): number =>
  a.subject < b.subject ? -1 : 1

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
  const manifest = { app: 'chains', audiences: [], permissions: {}, roles: {}, model: MODEL }
  await given(store, ENVIRONMENT, { kind: 'manifest', manifest })
  for (const depth of DEPTHS) {
    const levels = Array.from({ length: depth }, (_, at) => at)
    await given(
      store,
      `deep${depth}`,
      put('doc:1#viewer@team:0#member'),
      put('doc:1#parent@folder:0'),
      ...levels.map((at) => put(`team:${at}#member@team:${at + 1}#member`)),
      ...levels.map((at) => put(`folder:${at}#parent@folder:${at + 1}`)),
      put(`team:${depth}#member@user:ann`),
      put(`folder:${depth}#viewer@user:bob`),
    )
  }
  await given(
    store,
    'tangled',
    put('doc:1#viewer@team:0#member'),
    ...[0, 1, 2, 3, 4, 5].map((at) => put(`team:${at}#member@team:${(at + 1) % 6}#member`)),
    { kind: 'tuple', op: 'write', tuple: { ...tuple('team:3#member@team:late#member'), expiresAtMs: FAR } },
    putIf('team:4#member@team:open#member', 'open', { yes: true }),
    putIf('team:4#member@team:shut#member', 'open', { yes: false }),
    put('team:late#member@user:late'),
    put('team:open#member@user:open'),
    put('team:shut#member@user:shut'),
  )
})
afterAll(() => close())

async function costOf(organization: string, name: string): Promise<number> {
  const pdp = createPdp({ store })
  await pdp.can(organization, user('nobody'), 'viewer', 'doc:none')
  const counted = await counter.during(async () => {
    expect(await pdp.can(organization, user(name), 'viewer', 'doc:1')).toBe(name !== 'nobody')
  })
  const warm = await counter.during(() => pdp.can(organization, user(name), 'viewer', 'doc:1'))
  expect(calls(warm)).toBe(1)
  return calls(counted)
}

describe('a cold question', () => {
  test.each(['ann', 'bob', 'nobody'])(
    'costs no more statements at 60 levels than at 16, and no more than twice those of 2: %s',
    async (name) => {
      const [two, sixteen, sixty] = [
        await costOf('deep2', name),
        await costOf('deep16', name),
        await costOf('deep60', name),
      ]
      expect(sixteen).toBeLessThanOrEqual(2 * two)
      expect(sixty).toBe(sixteen)
    },
  )

  test.each(['ann', 'bob', 'nobody'])('is answered beyond what one statement brings: %s', async (name) => {
    expect(await costOf(`deep${CHAIN_SETS_MAX + 50}`, name)).toBeLessThanOrEqual(8)
  })

  test.each([
    ['late', true],
    ['open', true],
    ['shut', false],
    ['nobody', false],
  ])('is answered where the chain leads back to itself, expires or has a condition: %s', async (name, allowed) => {
    expect(await createPdp({ store }).can('tangled', user(name), 'viewer', 'doc:1')).toBe(allowed)
  })

  test('sees a link that was cut before it was asked', async () => {
    const links = Array.from({ length: 9 }, (_, at) => put(`team:${at}#member@team:${at + 1}#member`))
    await given(store, 'cut', put('doc:1#viewer@team:0#member'), ...links, put('team:9#member@user:ann'))
    const pdp = createPdp({ store })
    const asked = pdp.can('cut', user('ann'), 'viewer', 'doc:1')
    expect(await asked).toBe(true)
    for (let at = 8; at >= 0; at -= 3) {
      await given(store, 'cut', drop(`team:${at}#member@team:${at + 1}#member`))
      expect(await pdp.can('cut', user('ann'), 'viewer', 'doc:1')).toBe(false)
      expect(await createPdp({ store }).can('cut', user('ann'), 'viewer', 'doc:1')).toBe(false)
      await given(store, 'cut', put(`team:${at}#member@team:${at + 1}#member`))
      expect(await pdp.can('cut', user('ann'), 'viewer', 'doc:1')).toBe(true)
    }
  })
})

describe('the sets of a chain', () => {
  test('are those that are read one by one, whatever leads where, in the database and in memory', async () => {
    const memory = memoryStore()
    const names = fc.constantFrom('a:1', 'a:2', 'a:3', 'b:1', 'b:2')
    const subjects = fc.oneof(
      names,
      names.map((name) => `${name}#r`),
      names.map((name) => `${name}#s`),
      fc.constant('a:*'),
    )
    const links = fc.uniqueArray(fc.tuple(names, fc.constantFrom('r', 's'), subjects), {
      maxLength: 14,
      selector: String,
    })
    let count = 0
    await fc.assert(
      fc.asyncProperty(links, async (drawn) => {
        const log = `drawn${count++}`
        const changes = drawn.map(([object, relation, subject]) => put(`${object}#${relation}@${subject}`))
        for (const each of [store, memory]) await given(each, log, ...changes)
        const chained = byName(await store.rows([log], [set(log, 'a:1', 'r', true), set(log, 'b:1', 's')]))
        expect(chained).toEqual(byName(await memory.rows([log], [set(log, 'a:1', 'r', true), set(log, 'b:1', 's')])))
        for (const [name, row] of chained) {
          const [, , object = '', relation = ''] = name.split(' ')
          expect(byName(await store.rows([log], [set(log, object, relation)])).get(name)).toEqual(row)
        }
      }),
      { numRuns: 40 },
    )
  })

  test('end at the bound, each whole', async () => {
    const log = `deep${CHAIN_SETS_MAX + 50}`
    const { rows } = await store.rows([log], [set(log, 'team:0', 'member', true)])
    expect(rows).toHaveLength(CHAIN_SETS_MAX + 1)
    for (const row of rows) expect(row).toMatchObject({ complete: true, subjects: [{}] })
  })

  test('that are too wide say so', async () => {
    const wide = Array.from({ length: SET_ROWS_MAX + 1 }, (_, at) => put(`team:1#member@user:${at}`))
    await given(store, 'wide', put('team:0#member@team:1#member'), ...wide)
    const chained = byName(await store.rows(['wide'], [set('wide', 'team:0', 'member', true)]))
    expect(chained.get('set wide team:1 member')).toMatchObject({ complete: false, usersetsComplete: true })
  })
})
