/** Entitlement values by organization, version and write id: a new version is a new key, so nothing is ever flushed. */
import type { Entitlement, Standing, Store } from './contracts.ts'

/** Organizations whose values are kept at most. */
const ORGANIZATIONS_MAX = 10_000
/** Keys of one organization that are kept at most, absent ones included. */
const KEYS_MAX = 10_000

type Known = { readonly name: string; readonly values: Map<string, Entitlement | null> }

export class EntitlementCache {
  readonly #store: Pick<Store, 'entitlements'>
  readonly #known = new Map<string, Known>()

  constructor(store: Pick<Store, 'entitlements'>) {
    this.#store = store
  }

  /**
   * The values at exactly this standing; null for a key that the organization does not have.
   * @returns undefined when the source has moved on: the question has to take a new vector.
   * @throws PdpError `store_unavailable`.
   */
  async read(
    organization: string,
    standing: Standing,
    keys: readonly string[],
  ): Promise<ReadonlyMap<string, Entitlement | null> | undefined> {
    const known = this.#at(organization, standing)
    const missing = keys.filter((key) => !known.values.has(key))
    if (missing.length > 0) {
      const read = await this.#store.entitlements(organization, missing)
      if (read.version !== standing.entitlementVersion) return undefined
      if (known.values.size + missing.length > KEYS_MAX) known.values.clear()
      for (const key of missing) known.values.set(key, read.values.get(key) ?? null)
    }
    return new Map(keys.map((key) => [key, known.values.get(key) ?? null]))
  }

  #at(organization: string, standing: Standing): Known {
    // Versions only rise while the history is one; the write id of a restored one differs.
    const name = `${standing.entitlementVersion} ${standing.entitlementWriteId}`
    const known = this.#known.get(organization)
    this.#known.delete(organization)
    const kept = known?.name === name ? known : { name, values: new Map<string, Entitlement | null>() }
    this.#known.set(organization, kept)
    if (this.#known.size > ORGANIZATIONS_MAX) {
      const [oldest] = this.#known.keys()
      if (oldest !== undefined) this.#known.delete(oldest)
    }
    return kept
  }
}
