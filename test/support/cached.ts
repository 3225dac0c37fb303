/** A memory store as if it were far away: answers come through the cache, as with a database. */
import type { Store } from '../../pdp/engine/store/contract.ts'
import { type MemoryStoreOptions, memoryStore } from '../../pdp/engine/store/memory/memory.ts'

export function remoteMemoryStore(options: MemoryStoreOptions = {}): Store {
  const { currentView: _look, positions: _standings, ...store } = memoryStore(options)
  return store
}
