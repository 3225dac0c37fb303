/** An application with tables of its own, and two processes of the PDP in a schema of the same database. */
import pg from 'pg'
import { afterAll, beforeAll, beforeEach } from 'vitest'
import { createPdp } from '../../../../../pdp/engine/decision-point/create-pdp.ts'
import type { EmbeddedPdp } from '../../../../../pdp/engine/decision-point/embedded.ts'
import type { Store } from '../../../../../pdp/engine/store/contract.ts'
import { postgresStore } from '../../../../../pdp/engine/store/postgres/postgres.ts'
import type { JournalPosition } from '../../../../../pdp/shared/domain/journal.ts'
import { openTestDatabase, type TestDatabase } from '../../../../support/database.ts'

export type Application = {
  readonly database: TestDatabase
  readonly pool: pg.Pool
  readonly store: Store
  readonly pdp: EmbeddedPdp
  /** Another process over the same database. */
  readonly other: EmbeddedPdp
  /** Of this test alone. */
  readonly org: string
  /** Counts tests. */
  readonly number: number
  position(): Promise<JournalPosition | undefined>
  /** Begins, works, and ends as told. */
  transaction<T>(end: 'commit' | 'rollback', work: (client: pg.PoolClient) => Promise<T>): Promise<T>
}

/** Opened before the first test of the file, closed after the last. */
export function useApplication(): Application {
  let opened: Pick<Application, 'database' | 'pool' | 'store' | 'pdp' | 'other'>
  let number = 0
  beforeAll(async () => {
    const database = await openTestDatabase({ migrated: false })
    const pool = new pg.Pool({ connectionString: database.connectionString, max: 20 })
    pool.on('error', () => {}) // the database is dropped while idle connections still close
    await pool.query('create table organization (id text primary key, plan text not null)')
    await pool.query('create table invoice (id int primary key, owner text not null)')
    const options = { connectionString: database.connectionString, schema: 'pdp' }
    const store = await postgresStore(options)
    const other = createPdp({ store: await postgresStore(options) })
    opened = { database, pool, store, pdp: createPdp({ store }), other }
  })
  afterAll(async () => {
    await opened.pdp.close()
    await opened.other.close()
    await opened.pool.end()
    await opened.database.drop()
  })
  beforeEach(async () => {
    number += 1
    await opened.pdp.putOrganization(`o${number}`, { name: 'Organization' })
  })
  const org = (): string => `o${number}`
  return {
    get database() {
      return opened.database
    },
    get pool() {
      return opened.pool
    },
    get store() {
      return opened.store
    },
    get pdp() {
      return opened.pdp
    },
    get other() {
      return opened.other
    },
    get org() {
      return org()
    },
    get number() {
      return number
    },
    position: async () => (await opened.store.vector([org()])).logs.get(org()),
    async transaction(end, work) {
      const client = await opened.pool.connect()
      try {
        await client.query('begin')
        const result = await work(client)
        await client.query(end)
        return result
      } catch (err) {
        await client.query('rollback')
        throw err
      } finally {
        client.release()
      }
    },
  }
}
