/** Where logs stand: what the server is asked for, and what is answered from memory of what it said before. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { RowKey, Store } from '../../../../../pdp/engine/store/contract.ts'
import type { Sql } from '../../../../../pdp/engine/store/directory.ts'
import { openPostgres } from '../../../../../pdp/engine/store/postgres/postgres.ts'
import { KnownPositions } from '../../../../../pdp/engine/store/postgres/vector.ts'
import { PdpError } from '../../../../../pdp/shared/domain/errors.ts'
import { ENVIRONMENT, type JournalId, TOKENS } from '../../../../../pdp/shared/domain/journal.ts'
import { openTestDatabase } from '../../../../support/database.ts'
import { openStatementCounter, type StatementCounter } from '../../../../support/statements.ts'
import { context, gate, given, organization, put } from '../../../../support/tuples.ts'

const PASS = (): void => undefined
/** One connection, so that what it has prepared can be looked at. */
let here: { store: Store; sql: Sql; close(): Promise<void> }
let elsewhere: typeof here
let counter: StatementCounter
let close: () => Promise<void>

beforeAll(async () => {
  const database = await openTestDatabase()
  const { connectionString } = database
  here = await openPostgres({ connectionString, poolCountMax: 1 })
  elsewhere = await openPostgres({ connectionString })
  counter = await openStatementCounter(connectionString)
  close = async () => {
    await counter.close()
    await here.close()
    await elsewhere.close()
    await database.drop()
  }
  for (const id of ['a', 'b', 'c']) await given(here.store, id, put('doc:1#viewer@user:alice'))
})
afterAll(() => close())

const standing = async (log: JournalId) => (await here.store.vector([log])).logs.get(log)

describe('where logs stand', () => {
  test('is sent by the server only for those that moved', async () => {
    const logs = ['a', 'b', 'c', ENVIRONMENT, TOKENS]
    const before = await here.store.vector(logs)
    expect([...before.logs.keys()]).toEqual(logs)
    const [still] = await counter.during(async () => {
      expect((await here.store.vector(logs)).logs).toEqual(before.logs)
    })
    expect(still).toMatchObject({ calls: 1, rows: 1 }) // the clock
    await elsewhere.store.write('b', [put('doc:2#viewer@user:bob')], { context })
    const [moved] = await counter.during(async () => {
      const { logs: after } = await here.store.vector(logs)
      expect(after.get('b')?.revision).toBe((before.logs.get('b')?.revision ?? 0) + 1)
      expect(after.get('a')).toEqual(before.logs.get('a'))
    })
    expect(moved).toMatchObject({ calls: 1, rows: 2 })
  })

  test('is the same from a read of rows, which learns and is answered in the same way', async () => {
    const key: RowKey = { log: 'a', kind: 'set', object: 'doc:1', relation: 'viewer' }
    await elsewhere.store.write('a', [put('doc:3#viewer@user:bob')], { context })
    const { vector } = await here.store.rows(['a', 'c'], [key])
    expect(vector.logs).toEqual((await elsewhere.store.vector(['a', 'c'])).logs)
    expect(vector.clockMs).toBeGreaterThan(Date.now() - 60_000)
    expect((await here.store.snapshot((at) => at.rows(['a', 'c'], [key]))).vector.logs).toEqual(vector.logs)
  })

  test('includes the entitlement version of now', async () => {
    const before = await standing('c')
    await elsewhere.store.write('c', [gate('feature.a', true)], { context })
    const after = await standing('c')
    expect(after?.entitlementVersion).toBe((before?.entitlementVersion ?? 0) + 1)
    expect(after?.entitlementWriteId).toBe(after?.writeId)
  })

  test('lacks a log that does not exist, and has it as soon as it does', async () => {
    expect(await standing('late')).toBeUndefined()
    await elsewhere.store.write(ENVIRONMENT, [organization('late')], { context })
    expect(await standing('late')).toMatchObject({ revision: 0 })
    await elsewhere.store.write('late', [put('doc:1#viewer@user:alice')], { context })
    expect(await standing('late')).toMatchObject({ revision: 1 })
  })

  test('is that of an earlier backup after one was restored, whether the log was there by then or not', async () => {
    const [row] = await here.sql.query<{ text: string }>(
      `select concat_ws(' ', revision, write_id, entitlement_version, entitlement_write_id) as text from revision where organization_id = 'a'`,
    )
    const [revision, ...others] = row?.text.split(' ') ?? []
    await elsewhere.store.write('a', [put('doc:4#viewer@user:bob')], { context })
    await elsewhere.store.write('b', [put('doc:4#viewer@user:bob')], { context })
    await here.store.vector(['a', 'b'])
    const restore = `update revision set revision = $1, write_id = $2, entitlement_version = $3, entitlement_write_id = $4 where organization_id = 'a'`
    await elsewhere.sql.query(restore, [revision, ...others])
    await elsewhere.sql.query(`delete from revision where organization_id = 'b'`)
    const { logs } = await here.store.vector(['a', 'b'])
    expect(logs.get('a')).toMatchObject({ revision: Number(revision), writeId: others[0] })
    expect(logs.has('b')).toBe(false)
    expect(await standing('b')).toBeUndefined()
  })

  test('does not take the answer to a late statement for that of a later one', () => {
    const known = new KnownPositions()
    const [early, late] = [known.ask(['a']), known.ask(['a'])]
    expect(late.read([' 2 00000001', '1 2 22 0 0'], PASS).logs.get('a')?.revision).toBe(2)
    expect(early.read([' 1 00000001', '1 1 11 0 0'], PASS).logs.get('a')?.revision).toBe(1)
    const next = known.ask(['a'])
    expect(next.read([' 3 00000001', '1 2 22 0 0'], PASS).logs.get('a')?.revision).toBe(2)
  })

  test('is asked with what was known at sending, whatever is learnt or forgotten until the answer', () => {
    const known = new KnownPositions()
    known.ask(['a']).read([' 1 00000001', '1 1 11 0 0'], PASS)
    const sent = known.ask(['a'])
    const many = Array.from({ length: 10_001 }, (_, i) => `m${i}`)
    known.ask(many).read([' 1 00000001', ...many.map((_, i) => `${i + 1} 1 5 0 0`)], PASS)
    expect(sent.values).toEqual([['a'], ['11']])
    expect(sent.read([' 2 00000001'], PASS).logs.get('a')?.revision).toBe(1)
    expect(known.ask(['a']).values).toEqual([['a'], [null]])
  })

  test('is told of each log by its place, whatever its name holds', async () => {
    const odd = ['a b', '', '-', 'NULL', '{a}', '"', 'b 1 2 3 4', 'x,y', '\\']
    const logs = ['a', ...odd, 'b']
    const [before, after] = [await elsewhere.store.vector(['a', 'b']), await here.store.vector(logs)]
    expect(after.logs).toEqual(before.logs)
  })

  test('is refused from a standby, which lags behind', () => {
    const { read } = new KnownPositions().ask(['a'])
    expect(() => read([' 1', '1 1 11 0 0'], PASS)).toThrow(PdpError)
    expect(() => read([' 1'], PASS)).toThrow(/standby/)
  })

  test.each([[[]], [['1 1 11 0 0']], [[' 1 00000001', '2 1 11 0 0']], [[' 1 00000001', 'a 1 11 0 0']]])(
    'is refused from an answer without a clock, or about what was not asked: %j',
    (lines) => {
      expect(() => new KnownPositions().ask(['a']).read(lines, PASS)).toThrow(TypeError)
    },
  )
})

describe('a statement that decisions wait for', () => {
  const many = Array.from({ length: 300 }, (_, i) => `o${i}`)
  const set = (i: number): RowKey => ({ log: 'c', kind: 'set', object: `doc:${i}`, relation: 'viewer' })
  const READS: readonly (readonly [name: string, prepared: string, read: (i: number) => Promise<unknown>])[] = [
    ['standings', 'vector', (i) => here.store.vector(many.slice(0, 1 + i * 10))],
    ['log entries', 'entries', (i) => here.store.entries([{ log: 'c', from: 0, to: i }], 1 + i * 100)],
    [
      'row sets',
      'rows set',
      (i) =>
        here.store.rows(
          ['c'],
          Array.from({ length: 1 + i * 5 }, (_, n) => set(n)),
        ),
    ],
    ['groups', 'rows gro', (i) => here.store.rows(['c'], [{ log: 'c', kind: 'groups', subject: `user:${i}` }])],
  ]

  test.each(READS)('is planned once and for all, whatever is asked with it: %s', async (_, prepared, read) => {
    for (let i = 0; i < 20; i++) await read(i)
    const plans = await here.sql.query<{ generic: number; custom: number }>(
      'select generic_plans::int as generic, custom_plans::int as custom from pg_prepared_statements where name = $1',
      [prepared],
    )
    // PostgreSQL always begins with five plans of its own for the values at hand.
    expect(plans).toEqual([expect.objectContaining({ custom: 5 })])
    expect(plans[0]?.generic).toBeGreaterThanOrEqual(10)
  })
})
