/** The store, in memory and in PostgreSQL, and an external system asked over HTTP pass the same suite. */

import type { Store } from '../../pdp/engine/store/contract.ts'
import { httpEntitlements } from '../../pdp/engine/store/entitlements/http-source.ts'
import { storeEntitlements } from '../../pdp/engine/store/entitlements/store-source.ts'
import { memoryStore } from '../../pdp/engine/store/memory/memory.ts'
import { openPostgres } from '../../pdp/engine/store/postgres/postgres.ts'
import type { Entitlement } from '../../pdp/shared/domain/entitlement.ts'
import { openTestDatabase } from '../support/database.ts'
import { GATES_SECRET, startGates } from '../support/gates.ts'
import { context } from '../support/tuples.ts'
import { entitlementSourceSuite, type OpenedSource } from './entitlement-source-suite.ts'

async function openDatabase(): Promise<{ store: Store; close(): Promise<void> }> {
  const database = await openTestDatabase()
  const { store, close } = await openPostgres({ connectionString: database.connectionString, poolCountMax: 4 })
  return { store, close: () => close().then(database.drop) }
}

const ofStore = (store: Store, close: () => Promise<void>): OpenedSource => ({
  store,
  source: storeEntitlements(store),
  async set(organization: string, key: string, entitlement: Entitlement | null) {
    await store.write(organization, [{ kind: 'entitlement', key, entitlement }], { context })
  },
  close,
})

entitlementSourceSuite('store in memory', async () => {
  const store = memoryStore()
  return ofStore(store, () => store.close())
})

entitlementSourceSuite('store in PostgreSQL', async () => {
  const { store, close } = await openDatabase()
  return ofStore(store, close)
})

entitlementSourceSuite('over HTTP', async () => {
  const { store, close } = await openDatabase()
  const gates = await startGates()
  return {
    store,
    source: httpEntitlements({ url: gates.url, secret: GATES_SECRET, store, fetch, deadlineMs: 5_000 }),
    async set(organization, key, entitlement) {
      gates.set(organization, key, entitlement)
      await store.write(organization, [{ kind: 'entitlements' }], { context })
    },
    close: () => Promise.all([gates.close(), close()]).then(() => undefined),
  }
})
