/** The parts and settings of a decision point. */
import type { Subject } from '../../shared/domain/decision.ts'
import type { EntitlementSource, Store } from '../store/contract.ts'
import type { SharedCache } from '../store/entitlements/shared-cache.ts'

/**
 * Where the content is kept, and bounds.
 *
 * @example
 * ```ts
 * const options: PdpOptions = { store: memoryStore(), app: 'billing' }
 * ```
 */
export type PdpOptions = {
  readonly store: Store
  /** The owner of the values of entitlements. Default: the store. */
  readonly entitlements?: EntitlementSource
  /** A cache of entitlement values for all replicas, closed with the PDP. Default: none. */
  readonly sharedCache?: SharedCache
  /** The most bytes of rows that are kept in memory. Default 256 MiB. */
  readonly cacheBytesMax?: number
  /** The most tuples that are visited for one check; a check that needs more is an error. Default 100,000. */
  readonly tuplesPerCheckMax?: number
  /** True if the person or client exists: lists of subjects and comparisons leave out others. Default: always true. */
  readonly exists?: (subject: Subject, organization: string) => Promise<boolean>
  /** The embedding application's key, if its roles should answer permission keys on the organization. */
  readonly app?: string
}
