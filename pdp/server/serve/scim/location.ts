/** The URL of a resource. */
import type { ResourceType } from './attributes.ts'
import { SCIM_PATH } from './errors.ts'
import type { ScimDeps } from './route.ts'

/** `call` has the issuer, whose host serves this API. */
export function locationOf(call: { readonly at: Pick<ScimDeps, 'issuer'> }, type: ResourceType, id: string): string {
  return `${call.at.issuer.replace(/\/$/, '')}${SCIM_PATH}/${type.name}s/${encodeURIComponent(id)}`
}
