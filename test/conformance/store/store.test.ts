/** Both stores pass the same suites. An implementation is done when they pass; an exception needs a reason. */
import { describe } from 'vitest'
import { memoryStore } from '../../../pdp/store/memory/memory.ts'
import { openPostgres } from '../../../pdp/store/postgres/postgres.ts'
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
]

for (const [name, open] of STORES) {
  for (const suite of [writesSuite, readsSuite, conditionsSuite, environmentSuite, reportingSuite]) {
    describe(`${name} store, ${suite.name}`, () => suite(open))
  }
}
