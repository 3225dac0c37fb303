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
  /** Where replicas share entitlement values. Default: nowhere. Closed with the PDP. */
  readonly sharedCache?: SharedCache
  /** The most bytes of rows that are kept in memory. Default 256 MiB. */
  readonly cacheBytesMax?: number
  /** The most tuples that are visited for one check; a check that needs more is an error. Default 100,000. */
  readonly tuplesPerCheckMax?: number
  /** Whether there is such a person or client: lists of subjects and comparisons leave out all others. Default: there is. */
  readonly exists?: (subject: Subject, organization: string) => Promise<boolean>
  /** The embedding application's key, if its roles should answer permission keys on the organization. */
  readonly app?: string
}
