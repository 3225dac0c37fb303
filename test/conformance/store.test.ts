/** Both stores pass the same suite. */
import { memoryStore } from '../../pdp/store/memory/memory.ts'
import { openPostgres } from '../../pdp/store/postgres/postgres.ts'
import { openTestDatabase } from '../support/database.ts'
import { storeSuite } from './store-suite.ts'

storeSuite('memory', async () => {
  const store = memoryStore()
  return { store, close: () => store.close() }
})

storeSuite('postgres', async () => {
  const database = await openTestDatabase()
  const { store, close } = await openPostgres({ connectionString: database.connectionString, poolCountMax: 4 })
  return {
    store,
    close: async () => {
      await close()
      await database.drop()
    },
  }
})
