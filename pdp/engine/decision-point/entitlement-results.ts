/** The entitlements of a decision, read at the position of its answer. */

import type { EntitlementResult } from '../../shared/domain/decision.ts'
import type { JournalPosition } from '../../shared/domain/journal.ts'
import type { JsonObject } from '../../shared/domain/json.ts'
import type { EntitlementCache } from '../store/entitlements/cache.ts'

export const NO_ENTITLEMENTS: ReadonlyMap<string, EntitlementResult | null> = new Map()

/** Undefined when they were written since `position`; all null for an unknown organization. */
export async function entitlementResults(
  entitlements: EntitlementCache,
  asked: { organization: string; keys: readonly string[]; position: JournalPosition | undefined },
): Promise<ReadonlyMap<string, EntitlementResult | null> | undefined> {
  const { organization, keys, position } = asked
  if (position === undefined) return new Map(keys.map((key) => [key, null]))
  const values = await entitlements.read(organization, position, keys)
  if (values === undefined) return undefined
  return new Map(
    [...values].map(([key, found]) => [
      key,
      found === null ? null : entitlementResult(found.value, position.entitlementVersion),
    ]),
  )
}

const entitlementResult = (value: JsonObject, version: number): EntitlementResult => ({
  value,
  version,
  boolean: () => value.enabled === true,
})
