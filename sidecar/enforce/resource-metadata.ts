/** OAuth 2.0 Protected Resource Metadata (RFC 9728): tells a client which issuers this resource trusts. */
import { PROOF_ALGORITHMS } from '../../pdp/shared/token/dpop.ts'
import type { RouteFile } from '../route-file/route-file.ts'

export type ResourceMetadata = {
  /** Where it is served. */
  readonly path: string
  /** The address that challenges point to (section 5.1). */
  readonly url: string
  readonly body: string
}

const WELL_KNOWN = '/.well-known/oauth-protected-resource'

/** Null for a resource that is not an http URL: it then has no place for its metadata. */
export function describeResource({
  resource,
  issuers,
}: Pick<RouteFile, 'resource' | 'issuers'>): ResourceMetadata | null {
  const url = URL.parse(resource)
  if (url === null || !/^https?:$/.test(url.protocol)) return null
  // Section 3.1: the well-known part goes between the host and the path of the resource.
  const path = `${WELL_KNOWN}${url.pathname === '/' ? '' : url.pathname}`
  const document = {
    resource,
    authorization_servers: issuers.map(({ issuer }) => issuer),
    bearer_methods_supported: ['header'],
    dpop_signing_alg_values_supported: PROOF_ALGORITHMS,
  }
  return { path, url: `${url.origin}${path}`, body: JSON.stringify(document) }
}
