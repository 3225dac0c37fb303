/** What a connection that breaks does to the process and to the work on it. */
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Store } from '../../../../../pdp/engine/store/contract.ts'
import type { Sql } from '../../../../../pdp/engine/store/directory.ts'
import type { TimeLimits } from '../../../../../pdp/engine/store/postgres/connection/database.ts'
import { openPostgres } from '../../../../../pdp/engine/store/postgres/postgres.ts'
import { TOKENS } from '../../../../../pdp/shared/domain/journal.ts'
import { openTestDatabase } from '../../../../support/database.ts'

/** Of a test that waits for the bounds. */
const PROMPT: TimeLimits = { decisionMs: 1_000, statementMs: 1_000, transactionMs: 3_000, lengthyMs: 60_000 }

let sql: Sql
let store: Store
let admin: pg.Client
let connectionString: string
let close: () => Promise<void>

beforeAll(async () => {
  const database = await openTestDatabase()
  connectionString = database.connectionString
  const opened = await openPostgres({ connectionString: database.connectionString, poolCountMax: 1 })
  sql = opened.sql
  store = opened.store
  admin = new pg.Client({ connectionString: database.connectionString })
  await admin.connect()
  close = async () => {
    await admin.end()
    await opened.close()
    await database.drop()
  }
})
afterAll(() => close())

describe('a connection that breaks between two statements of a transaction', () => {
  // Nothing listens to a connection in that moment but the transaction: an event without a listener ends the process.
  test('fails the transaction as unavailable, and nothing else', async () => {
    const broken = sql.transaction(async (session) => {
      const [row] = await session.query<{ pid: number }>('select pg_backend_pid() as pid')
      await admin.query('select pg_terminate_backend($1)', [row?.pid])
      await new Promise((done) => setTimeout(done, 100))
      await session.query('select 1')
    })
    await expect(broken).rejects.toMatchObject({ code: 'store_unavailable' })
    expect((await store.vector([TOKENS])).logs.has(TOKENS)).toBe(true)
  })

  test('fails a snapshot in the same way', async () => {
    const broken = store.snapshot(async (at) => {
      await at.rows([TOKENS], [])
      await admin.query(
        `select pg_terminate_backend(pid) from pg_stat_activity
         where datname = current_database() and pid <> pg_backend_pid() and backend_type = 'client backend'`,
      )
      await new Promise((done) => setTimeout(done, 100))
      return at.rows([TOKENS], [])
    })
    await expect(broken).rejects.toMatchObject({ code: 'store_unavailable' })
    expect((await store.vector([TOKENS])).logs.has(TOKENS)).toBe(true)
  })
})

// A server that froze, or a network that drops everything: without a bound the question would wait for ever.
test('gives up on a statement that is not answered, and goes on with another connection', async () => {
  const opened = await openPostgres({ connectionString, poolCountMax: 1, timeLimits: PROMPT })
  try {
    await expect(opened.sql.query('select pg_sleep(120)')).rejects.toMatchObject({ code: 'store_unavailable' })
    const stuck = opened.sql.transaction((session) => session.query('select pg_sleep(120)'))
    await expect(stuck).rejects.toMatchObject({ code: 'store_unavailable' })
    expect(await opened.sql.query('select 1 as one')).toEqual([{ one: 1 }])
  } finally {
    await opened.store.close()
  }
})

describe('a connection that breaks while the schema is brought up to date', () => {
  test('fails the opening as unavailable, and nothing else', async () => {
    await admin.query('begin')
    await admin.query('lock table schema_migration in access exclusive mode')
    const opening = openPostgres({ connectionString })
    opening.catch(() => {}) // awaited below
    const waiting = `select pid from pg_locks where not granted and relation = 'schema_migration'::regclass`
    for (let tries = 0; tries < 3_000 && (await admin.query(waiting)).rowCount === 0; tries++)
      await new Promise((done) => setTimeout(done, 10))
    await admin.query(`select pg_terminate_backend(pid) from (${waiting}) w`)
    await expect(opening).rejects.toMatchObject({ code: 'store_unavailable' })
    await admin.query('rollback')
  })
})
