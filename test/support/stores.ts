/** The stores on which the same questions must have the same answers. */
import type { Store } from '../../pdp/engine/store/contract.ts'
import { type MemoryStoreOptions, memoryStore } from '../../pdp/engine/store/memory/memory.ts'
import { openPostgres } from '../../pdp/engine/store/postgres/postgres.ts'
import { openTestDatabase } from './database.ts'

export type OpenedStore = { readonly store: Store; close(): Promise<void> }
export const STORES = {
  memory: async (): Promise<OpenedStore> => ({ store: memoryStore(), close: async () => {} }),
  postgres: async (): Promise<OpenedStore> => {
    const database = await openTestDatabase()
    const { store, close } = await openPostgres({ connectionString: database.connectionString, poolCountMax: 4 })
    return { store, close: () => close().then(database.drop) }
  },
}

/** A memory store as if it were far away: answers come through the cache, as with a database. */
export function remoteMemoryStore(options: MemoryStoreOptions = {}): Store {
  const { currentView: _look, positions: _standings, ...store } = memoryStore(options)
  return store
}
