/** Where a resource is. */
import type { ResourceType } from './attributes.ts'
import { SCIM_PATH } from './errors.ts'
import type { ScimDeps } from './route.ts'

/** `call`: knows the issuer, at whose host this API is. */
export function locationOf(call: { readonly at: Pick<ScimDeps, 'issuer'> }, type: ResourceType, id: string): string {
  return `${call.at.issuer.replace(/\/$/, '')}${SCIM_PATH}/${type.name}s/${encodeURIComponent(id)}`
}
