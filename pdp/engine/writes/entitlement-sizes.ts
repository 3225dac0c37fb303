/** Bounds what the entitlement values of one organization take together, since one answer or page may hold them all. */
import type { JsonObject } from '../../shared/domain/json.ts'
import type { Store } from '../store/contract.ts'

/** The bytes of all values as JSON, with their keys. */
export const ENTITLEMENT_BYTES_MAX = 1024 * 1024
export const ENTITLEMENT_COUNT_MAX = 4_096

/** The reason why this value must not be stored under this key, or null. A smaller value always may. Needs the journal's lock. */
export async function entitlementSizeIssue(
  store: Pick<Store, 'entitlements'>,
  organization: string,
  { key, value }: { readonly key: string; readonly value: JsonObject },
): Promise<string | null> {
  const { values } = await store.entitlements(organization, 'all')
  const before = values.get(key)
  const own = bytesOf(key, value)
  if (before !== undefined && own <= bytesOf(key, before.value)) return null
  if (before === undefined && values.size >= ENTITLEMENT_COUNT_MAX)
    return `would be one more than the ${ENTITLEMENT_COUNT_MAX} entitlements that ${organization} may have`
  let bytes = own
  for (const [other, entitlement] of values) if (other !== key) bytes += bytesOf(other, entitlement.value)
  if (bytes <= ENTITLEMENT_BYTES_MAX) return null
  return `has ${own} bytes, and all entitlements of ${organization} would have ${bytes}, more than ${ENTITLEMENT_BYTES_MAX}`
}

const bytesOf = (key: string, value: JsonObject): number => key.length + Buffer.byteLength(JSON.stringify(value))
