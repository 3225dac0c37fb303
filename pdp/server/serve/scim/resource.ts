/** Parts that users and groups have in common: their place, their address, `meta`, and the answer after a write. */
import type { Provisioned } from '../../../engine/store/directory.ts'
import type { JsonObject } from '../../../shared/domain/json.ts'
import { tagOf } from '../http/conditions.ts'
import type { ManagementDeps } from '../management/deps.ts'
import type { ResourceType } from './attributes.ts'
import { SCIM_PATH } from './errors.ts'
import type { ScimCall, ScimOutcome } from './route.ts'

/** Where the resources of this type are stored: those of the call's organization. */
export const placeOf = ({ organization }: Pick<ScimCall, 'organization'>, { name }: ResourceType) => ({
  organization,
  kind: name,
})

/** The URL of a resource. `call` has the issuer, whose host serves this API. */
export function locationOf(
  call: { readonly at: Pick<ManagementDeps, 'issuer'> },
  type: ResourceType,
  id: string,
): string {
  return `${call.at.issuer.replace(/\/$/, '')}${SCIM_PATH}/${type.name}s/${encodeURIComponent(id)}`
}

/** `state`: what decides the version besides the stored resource. */
export function metaOf(call: ScimCall, type: ResourceType, stored: Provisioned, ...state: readonly unknown[]) {
  return {
    resourceType: type.name,
    created: new Date(stored.createdAtMs).toISOString(),
    lastModified: new Date(stored.changedAtMs).toISOString(),
    location: locationOf(call, type, stored.id),
    version: tagOf([stored.id, stored.version, ...state]),
  }
}

/** The outcome of a call that wrote the resource. */
export function written(status: ScimOutcome['status'], resource: JsonObject): ScimOutcome {
  const { version, location } = Object(resource.meta)
  return { status, body: resource, tag: String(version), location: String(location) }
}
