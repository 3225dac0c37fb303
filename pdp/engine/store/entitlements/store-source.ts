/** The entitlement source in the store itself. Each change of a value makes a new version. */
import type { EntitlementSource, Store } from '../contract.ts'

export function storeEntitlements(store: Pick<Store, 'entitlements' | 'vector'>): EntitlementSource {
  return {
    name: 'store',
    keptMsMax: null,
    async read(organization, keys) {
      const read = await store.entitlements(organization, keys)
      return { ...read, state: `${read.version} ${read.writeId}` }
    },
    async version(organizations) {
      const { logs } = await store.vector(organizations)
      return new Map([...logs].map(([organization, { entitlementVersion }]) => [organization, entitlementVersion]))
    },
  }
}
