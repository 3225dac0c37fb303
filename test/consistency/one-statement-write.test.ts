/** A write that waits for another one's lock must see what that other one did: two clients, in a fixed order. */
import { join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openPostgres } from '../../pdp/engine/store/postgres/postgres.ts'
import { openTestDatabase, type TestDatabase } from '../support/database.ts'
import { context, drop, given, put } from '../support/tuples.ts'
import { ONE_STATEMENT_WRITE } from './history/cases.ts'
import { plantSource } from './mistakes.ts'

const TUPLE = 'doc:1#viewer@user:alice'
let database: TestDatabase
let observer: pg.Client

beforeAll(async () => {
  database = await openTestDatabase()
  // The first write that stores this actor's entries holds its locks until it is let go.
  observer = new pg.Client({ connectionString: database.connectionString })
  await observer.connect()
  await observer.query(`
    create function hold() returns trigger language plpgsql as $$ begin
      perform pg_advisory_xact_lock(7);
      return null;
    end $$;
    create trigger hold after insert on change_log for each row when (new.actor = 'held') execute function hold();`)
})
afterAll(async () => {
  await observer.end()
  await database.drop()
})

async function until(condition: string): Promise<void> {
  for (let tries = 0; tries < 3_000; tries++) {
    const { rowCount } = await observer.query(`select 1 from pg_locks where not granted and ${condition}`)
    if ((rowCount ?? 0) > 0) return
    await new Promise((done) => setTimeout(done, 10))
  }
  throw new Error('nobody came to wait')
}

/** A tuple is written, and deleted by a write that begins before the first one commits. */
async function deleteBehindAWrite(open: typeof openPostgres, organization: string) {
  const { store, close } = await open({ connectionString: database.connectionString })
  // Another process: the writes of one process take turns before they reach the database.
  const other = await open({ connectionString: database.connectionString })
  try {
    await given(store, organization)
    await observer.query('select pg_advisory_lock(7)')
    const written = store.write(organization, [put(TUPLE)], { context: { actor: 'held', requestId: 'r' } })
    await until("locktype = 'advisory'")
    const deleted = other.store.write(organization, [drop(TUPLE)], { context })
    await until("locktype = 'transactionid'")
    await observer.query('select pg_advisory_unlock(7)')
    const outcomes = await Promise.all([written, deleted])
    const left = await store.tuples(organization, {}, { after: null, countMax: 10 })
    return { outcomes, left: left.length }
  } finally {
    await close()
    await other.close()
  }
}

describe('a delete that waits for the write of the same tuple', () => {
  test('deletes it', async () => {
    expect(await deleteBehindAWrite(openPostgres, 'right')).toMatchObject({
      outcomes: [
        { position: { revision: 1 }, changed: true },
        { position: { revision: 2 }, changed: true },
      ],
      left: 0,
    })
  })

  test('misses it when locking and deleting are one statement, whose snapshot is older than the lock', async () => {
    const root = plantSource('one statement write', ONE_STATEMENT_WRITE)
    const planted: { openPostgres: typeof openPostgres } = await import(
      pathToFileURL(resolve(join(root, 'pdp', 'engine', 'store', 'postgres', 'postgres.ts'))).href
    )
    expect(await deleteBehindAWrite(planted.openPostgres, 'wrong')).toMatchObject({ left: 1 })
  })
})
