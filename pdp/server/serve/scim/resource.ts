/** Parts of both users and groups: storage, address, `meta`, and the answer to a write. */
import type { Provisioned } from '../../../engine/store/directory.ts'
import type { JsonObject } from '../../../shared/domain/json.ts'
import { tagOf } from '../http/conditions.ts'
import type { ManagementDeps } from '../management/deps.ts'
import type { ResourceType } from './attributes.ts'
import { SCIM_PATH } from './errors.ts'
import type { ScimCall, ScimOutcome } from './route.ts'

/** The storage of a type's resources in the call's organization. */
export const placeOf = ({ organization }: Pick<ScimCall, 'organization'>, { name }: ResourceType) => ({
  organization,
  kind: name,
})

/** A resource's URL on the host of the issuer, which serves this API. */
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
