/** Both stores pass the same suites. An implementation is done when they pass; an exception needs a reason. */
import pg from 'pg'
import { describe } from 'vitest'
import type { AppliedWrite, Store } from '../../../pdp/engine/store/contract.ts'
import { memoryStore } from '../../../pdp/engine/store/memory/memory.ts'
import { openPostgres } from '../../../pdp/engine/store/postgres/postgres.ts'
import { openTestDatabase } from '../../support/database.ts'
import { conditionsSuite } from './conditions.ts'
import { environmentSuite } from './environment.ts'
import { readsSuite } from './reads.ts'
import { reportingSuite } from './reporting.ts'
import type { OpenStore } from './suite.ts'
import { writesSuite } from './writes.ts'

const STORES: readonly (readonly [name: string, open: OpenStore])[] = [
  [
    'memory',
    async () => {
      const store = memoryStore()
      return { store, close: () => store.close() }
    },
  ],
  [
    'postgres',
    async () => {
      const database = await openTestDatabase()
      const { store, close } = await openPostgres({ connectionString: database.connectionString, poolCountMax: 4 })
      return {
        store,
        async close() {
          await close()
          await database.drop()
        },
      }
    },
  ],
  ['postgres, tuples in transactions of an application', openWithinApplication],
]

/** Our tables are in a schema of their own; those that the application's sessions find under the same names are its own. */
async function openWithinApplication(): ReturnType<OpenStore> {
  const database = await openTestDatabase({ migrated: false })
  const application = new pg.Pool({ connectionString: database.connectionString, max: 4 })
  application.on('error', () => {}) // the database is dropped while idle connections still close
  for (const name of ['organization', 'relationship', 'revision', 'change_log'])
    await application.query(`create table ${name} (untouched text)`)
  const { store, close } = await openPostgres({
    connectionString: database.connectionString,
    schema: 'pdp',
    poolCountMax: 4,
  })
  return {
    store: { ...store, write: (log, changes, options) => writeWithin({ store, application }, log, changes, options) },
    async close() {
      await application.end()
      await close()
      await database.drop()
    },
  }
}

async function writeWithin(
  { store, application }: { store: Store; application: pg.Pool },
  ...[log, changes, options]: Parameters<Store['write']>
): Promise<AppliedWrite> {
  const tuples = changes.filter((change) => change.kind === 'tuple')
  if (tuples.length < changes.length || log.startsWith('#') || store.writeWithin === undefined)
    return store.write(log, changes, options)
  const client = await application.connect()
  try {
    await client.query('begin')
    const written = await store.writeWithin(client, log, tuples, options)
    await client.query('commit')
    return { ...written, appliedCount: written.changed ? tuples.length : 0 }
  } catch (err) {
    await client.query('rollback')
    throw err
  } finally {
    client.release()
  }
}

for (const [name, open] of STORES) {
  for (const suite of [writesSuite, readsSuite, conditionsSuite, environmentSuite, reportingSuite]) {
    describe(`${name} store, ${suite.name}`, () => suite(open))
  }
}
