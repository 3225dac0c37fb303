/** Transactions that PostgreSQL undoes so that another one can go on: they are done again, whole, within their time. */
import pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { openPostgres } from '../../../../../pdp/engine/store/postgres/postgres.ts'
import { PdpError } from '../../../../../pdp/shared/domain/errors.ts'
import { openTestDatabase, type TestDatabase } from '../../../../support/database.ts'
import { context, given, organization, put } from '../../../../support/tuples.ts'

type Opened = Awaited<ReturnType<typeof openPostgres>>
const LIMITS = { decisionMs: 1_000, statementMs: 4_500, transactionMs: 5_000, lengthyMs: 60_000 }
/** Longer than the other side takes to wait too, so that it is ours that is undone. */
const DEADLOCK_MS = 400

let database: TestDatabase
let opened: Opened
/** The other side of a deadlock, which is never the one that is undone. */
let other: pg.Client
const closers: (() => Promise<void>)[] = []
beforeAll(async () => {
  database = await openTestDatabase()
  opened = await open()
  other = new pg.Client({ connectionString: database.connectionString })
  await other.connect()
  await other.query("set deadlock_timeout = '30s'")
  await opened.sql.query('create table thing (id text primary key, count int not null default 0)')
  await opened.sql.query("insert into thing (id) values ('a'), ('b')")
})
afterAll(async () => {
  await other.end()
  for (const close of closers) await close()
  await database.drop()
})

async function open(timeLimits = LIMITS): Promise<Opened> {
  const url = new URL(database.connectionString)
  url.searchParams.set('options', `-c deadlock_timeout=${DEADLOCK_MS}ms`)
  const one = await openPostgres({ connectionString: url.href, timeLimits })
  closers.push(one.close)
  return one
}

const raise = (code: string) => `do $$ begin raise exception 'undone' using errcode = '${code}'; end $$`
const countOf = async (id: string) =>
  (await opened.sql.query<{ count: number }>('select count from thing where id = $1', [id]))[0]?.count
const isWaiting = () =>
  other
    .query("select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'")
    .then(({ rowCount }) => rowCount)

test('two that wait for each other are both done, each once', async () => {
  let tries = 0
  let holding = 0
  const add = (tx: Pick<Opened['sql'], 'query'>, id: string) =>
    tx.query('update thing set count = count + 1 where id = $1', [id])
  const both = (first: string, second: string) =>
    opened.sql.transaction(async (tx) => {
      tries += 1
      await add(tx, first)
      holding += 1
      await expect.poll(() => holding, { timeout: 20_000, interval: 5 }).toBeGreaterThanOrEqual(2)
      await add(tx, second)
    })
  const [before, otherBefore] = [await countOf('a'), await countOf('b')]
  await Promise.all([both('a', 'b'), both('b', 'a')])
  // Once more at least; PostgreSQL may undo one again that begins anew while it waits.
  expect(tries).toBeGreaterThanOrEqual(3)
  expect([await countOf('a'), await countOf('b')]).toEqual([Number(before) + 2, Number(otherBefore) + 2])
})

test('a write that was undone for a deadlock is acknowledged when it is stored, with one revision', async () => {
  const { store } = opened
  await given(store, 'acme', put('doc:1#viewer@user:alice'))
  const {
    logs: [[, before] = []],
  } = { logs: [...(await store.vector(['acme'])).logs] }
  await other.query('begin')
  await other.query("select 1 from stored_relationship where organization_id = 'acme'")
  // Who writes the same tuple waits for the one that is not committed.
  await other.query(
    `insert into relationship (organization_id, object, relation, subject) values ('acme', 'doc:2', 'viewer', 'user:alice')`,
  )
  const writing = store.write('acme', [put('doc:2#viewer@user:alice')], { context })
  await expect.poll(isWaiting, { timeout: 20_000, interval: 5 }).toBe(1)
  await other.query("select 1 from revision where organization_id = 'acme' for update")
  await other.query('rollback')
  expect(await writing).toMatchObject({ changed: true, appliedCount: 1 })
  const after = (await store.vector(['acme'])).logs.get('acme')
  expect(after?.revision).toBe(Number(before?.revision) + 1)
})

test('one whose rows another one changed since it began is done again on what is there now', async () => {
  const before = Number(await countOf('a'))
  let tries = 0
  await opened.sql.transaction(async (tx) => {
    tries += 1
    await tx.query('set transaction isolation level repeatable read')
    const [row] = await tx.query<{ count: number }>("select count from thing where id = 'a'")
    if (tries === 1) await other.query("update thing set count = count + 10 where id = 'a'")
    await tx.query("update thing set count = $1 where id = 'a'", [Number(row?.count) + 1])
  })
  expect([tries, await countOf('a')]).toEqual([2, before + 11])
})

test('a single statement is done again as well', async () => {
  await other.query(`create sequence tried`)
  await other.query(`
    create function undone_once() returns void language plpgsql as $$ begin
      if nextval('tried') = 1 then raise exception 'undone' using errcode = '40001'; end if; end $$`)
  await opened.sql.query('select undone_once()')
  expect((await other.query('select last_value::int as tries from tried')).rows).toEqual([{ tries: 2 }])
})

test.each(['40P01', '40001'])('what is undone each time is unavailable after some tries: %s', async (code) => {
  let tries = 0
  const failed = opened.sql.transaction(async (tx) => {
    tries += 1
    await tx.query(raise(code))
  })
  await expect(failed).rejects.toMatchObject({ code: 'store_unavailable', cause: { code } })
  expect(tries).toBe(5)
})

test('its time is that of all tries together', async () => {
  const { sql } = await open({ ...LIMITS, transactionMs: 1_000 })
  let tries = 0
  const failed = sql.transaction(async (tx) => {
    tries += 1
    await tx.query('select pg_sleep(0.6)')
    await tx.query(raise('40001'))
  })
  await expect(failed).rejects.toBeInstanceOf(PdpError)
  expect(tries).toBe(2)
})

test.each(['40002', '40003', '23505', '22012'])(
  'what failed for another reason is not tried again: %s',
  async (code) => {
    let tries = 0
    const failed = opened.sql.transaction(async (tx) => {
      tries += 1
      await tx.query(raise(code))
    })
    await expect(failed).rejects.toBeInstanceOf(Error)
    expect(tries).toBe(1)
  },
)

test('a log that appears before one that is locked already does not let two wait for each other', async () => {
  const { atomically, store } = opened
  const logs = ['org-a', 'org-b', 'org-c']
  await store.write('#environment', [organization('org-b')], { context })
  await other.query('begin')
  await other.query("select 1 from revision where organization_id = 'org-b' for update")
  const held: unknown[] = []
  const working = atomically({ logs }, async ({ sql }) => {
    for (const log of logs)
      held.push(
        await opened.sql
          .query('select 1 from revision where organization_id = $1 for update nowait', [log])
          .catch((err: unknown) => Object(Object(err).cause).code),
      )
    return sql.query('select 1')
  })
  await expect.poll(isWaiting, { timeout: 20_000, interval: 5 }).toBe(1)
  const third = new pg.Client({ connectionString: database.connectionString })
  await third.connect()
  await store.write('#environment', [organization('org-a'), organization('org-c')], { context })
  // Somebody who takes them in order has the first one now, and gets the next.
  await third.query('begin')
  await third.query("select 1 from revision where organization_id = 'org-a' for update")
  await other.query('commit')
  const pid = Number((await third.query('select pg_backend_pid() as pid')).rows[0]?.pid)
  await expect
    .poll(
      async () =>
        (await other.query('select 1 from pg_locks where not granted and $1 = any(pg_blocking_pids(pid))', [pid]))
          .rowCount,
      {
        timeout: 20_000,
        interval: 5,
      },
    )
    .toBe(1)
  await third.query("select 1 from revision where organization_id = 'org-b' for update nowait")
  await third.query('commit')
  await third.end()
  await working
  expect(held).toEqual(['55P03', '55P03', '55P03'])
})
