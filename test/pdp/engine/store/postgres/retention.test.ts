/** What is trimmed from the log of changes and what stays, and that decisions and the audit trail notice. */
import { afterAll, beforeEach, describe, expect, test } from 'vitest'
import { createPdp } from '../../../../../pdp/engine/decision-point/create-pdp.ts'
import type { Store } from '../../../../../pdp/engine/store/contract.ts'
import type { Sql } from '../../../../../pdp/engine/store/directory.ts'
import { appendJournal } from '../../../../../pdp/engine/store/postgres/journal.ts'
import { openPostgres } from '../../../../../pdp/engine/store/postgres/postgres.ts'
import { createRetention } from '../../../../../pdp/engine/store/postgres/retention.ts'
import { startRetention } from '../../../../../pdp/server/runtime/retention.ts'
import { type JournalId, TOKENS } from '../../../../../pdp/shared/domain/journal.ts'
import { user } from '../../../../../pdp/shared/domain/subjects.ts'
import { createLog } from '../../../../../pdp/shared/process/log.ts'
import { openTestDatabase } from '../../../../support/database.ts'
import { context, drop, given, put } from '../../../../support/tuples.ts'

const DAY_MS = 86_400_000
let store: Store
let sql: Sql
let connectionString: string
let close: () => Promise<void> = async () => {}

beforeEach(async () => {
  await close()
  const database = await openTestDatabase()
  connectionString = database.connectionString
  const opened = await openPostgres({ connectionString })
  ;({ store, sql } = opened)
  close = async () => {
    await opened.close()
    await database.drop()
  }
})
afterAll(() => close())

/** Makes the entries up to a revision that many days old. */
const age = (log: JournalId, revision: number, days: number) =>
  sql.query(
    `update change_log set written_at = now() - make_interval(days => $3) where organization_id = $1 and revision <= $2`,
    [log, revision, days],
  )
const revisionsOf = async (log: JournalId) =>
  (
    await sql.query<{ revision: number }>(
      'select distinct revision from change_log where organization_id = $1 order by 1',
      [log],
    )
  ).map(({ revision }) => revision)
const write = async (log: JournalId, count: number) => {
  await given(store, log)
  for (let i = 1; i <= count; i++) {
    await store.write(log, [put(`doc:${i}#viewer@user:alice`), put(`doc:${i}#viewer@user:bob`)], { context })
  }
}
const trim = (keptMs: number | null) => createRetention({ sql, keptMs })()

describe('the log of changes', () => {
  test('loses whole revisions that are older than it is kept, and no others', async () => {
    for (const log of ['a', 'b']) await write(log, 6)
    await age('a', 4, 40)
    await age('b', 2, 29)
    expect(await trim(30 * DAY_MS)).toBe(8)
    expect(await revisionsOf('a')).toEqual([5, 6])
    expect(await revisionsOf('b')).toEqual([1, 2, 3, 4, 5, 6])
    expect(await trim(30 * DAY_MS)).toBe(0)
  })

  test('keeps the newest revision, however old it is', async () => {
    await write('a', 3)
    await age('a', 3, 400)
    await trim(DAY_MS)
    expect(await revisionsOf('a')).toEqual([3])
  })

  test('is kept for ever when nothing else was said, apart from revocations of tokens that nobody could show any more', async () => {
    await write('a', 3)
    for (const id of ['1', '2', '3', '4']) {
      await sql.transaction((t) => appendJournal(t, TOKENS, [{ kind: 'token', by: 'jti', id }], context))
    }
    await age('a', 3, 4_000)
    await age(TOKENS, 2, 2)
    expect(await trim(null)).toBe(2)
    expect(await revisionsOf('a')).toEqual([1, 2, 3])
    expect(await revisionsOf(TOKENS)).toEqual([3, 4])
  })

  test('keeps revocations of tokens for a day, though other changes are kept for less', async () => {
    for (const id of ['1', '2']) {
      await sql.transaction((t) => appendJournal(t, TOKENS, [{ kind: 'token', by: 'jti', id }], context))
    }
    await sql.query(`update change_log set written_at = now() - interval '23 hours'`)
    expect(await trim(1)).toBe(0)
  })

  test('goes in pieces, over any number of logs, and past a revision of many entries', async () => {
    await given(store, 'a', ...Array.from({ length: 2_500 }, (_, i) => put(`doc:${i}#viewer@user:alice`)))
    await write('a', 2)
    await sql.query(
      `insert into revision (organization_id, revision, write_id) select 'm' || n, 3, n from generate_series(1, 250) n`,
    )
    await sql.query(
      `insert into change_log (organization_id, revision, seq, write_id, change, actor, request_id)
       select 'm' || n, r, 1, n, '{"kind":"entitlements"}', '', '' from generate_series(1, 250) n, generate_series(1, 3) r`,
    )
    await sql.query(`update change_log set written_at = now() - interval '10 days'`)
    const run = createRetention({ sql, keptMs: DAY_MS })
    let goneCount = 0
    for (let call = 0; call < 10; call++) goneCount += await run()
    expect(goneCount).toBe(2_500 + 1 + 250 * 2) // one of the later tuples was there already, so each later revision has one entry
    expect(await revisionsOf('a')).toEqual([3])
    expect(await revisionsOf('m250')).toEqual([3])
  })

  test('is left alone while another trims it', async () => {
    await write('a', 3)
    await age('a', 3, 40)
    await sql.transaction(async (t) => {
      await t.query('select pg_advisory_xact_lock(4702916384)')
      expect(await trim(DAY_MS)).toBe(0)
    })
    expect(await trim(DAY_MS)).toBe(4)
  })
})

describe('after a trim', () => {
  test('a decision reflects every write, though the cache has nothing left to move along', async () => {
    const pdp = createPdp({ store })
    const ask = (id: string) => pdp.can('a', user(id), 'viewer', 'doc:1')
    await write('a', 2)
    expect(await Promise.all(['alice', 'carol'].map(ask))).toEqual([true, false])
    await store.write('a', [drop('doc:1#viewer@user:alice')], { context })
    await store.write('a', [put('doc:1#viewer@user:carol')], { context })
    await store.write('a', [put('doc:9#viewer@user:carol')], { context })
    await age('a', 5, 40)
    await trim(DAY_MS)
    expect(await revisionsOf('a')).toEqual([5])
    expect(await Promise.all(['alice', 'carol'].map(ask))).toEqual([false, true])
  })

  test('a reader of changes is told of the gap by the first revision that it gets', async () => {
    await write('a', 5)
    await age('a', 3, 40)
    await trim(DAY_MS)
    const entries = await store.entries([{ log: 'a', from: 1, to: 5 }], 100)
    expect(entries.map(({ revision }) => revision)).toEqual([4, 4, 5, 5])
  })
})

describe('while the PDP runs', () => {
  test('the log is trimmed now and then, and what fails is said and tried again', async () => {
    await write('a', 3)
    await age('a', 3, 40)
    const events: unknown[] = []
    const note = ({ event }: { event: string }) => void events.push(event)
    const log = Object.assign(createLog({ service: 'test', level: 'silent' }), { info: note, warn: note })
    let failures = 1
    const flaky: Sql['transaction'] = (work) =>
      failures-- > 0 ? Promise.reject(new Error('gone')) : sql.transaction(work)
    const stop = startRetention({ sql: { transaction: flaky }, keptDays: 1, log, intervalMs: 5 })
    await expect.poll(() => events).toEqual(['changes_not_trimmed', 'changes_trimmed'])
    await stop()
    expect(await revisionsOf('a')).toEqual([3])
  })
})
