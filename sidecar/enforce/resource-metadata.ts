/** OAuth 2.0 Protected Resource Metadata (RFC 9728): tells a client which issuers this resource trusts. */
import { PROOF_ALGORITHMS } from '../../pdp/shared/token/dpop.ts'
import type { RouteFile } from '../route-file/route-file.ts'
import type { Check } from '../routes/checks.ts'
import type { Route } from '../routes/route.ts'

export type ResourceMetadata = {
  /** The path at which the metadata is served. */
  readonly path: string
  /** The URL to which challenges point (section 5.1). */
  readonly url: string
  readonly body: string
}

function scopesOf({ check, mcp }: Route): readonly string[] {
  const rules = mcp === null ? [] : [...Object.values(mcp.tools), ...Object.values(mcp.prompts), ...mcp.resources]
  return [...(check === null ? [] : [check]), ...rules.map((rule) => rule.check)].flatMap(namedScopes)
}

const namedScopes = (check: Check): readonly string[] =>
  'of' in check ? check.of.flatMap(namedScopes) : check.kind === 'scope' ? [check.name] : []

const WELL_KNOWN = '/.well-known/oauth-protected-resource'

/** The metadata document of the resource; null if the resource is no http URL, since its metadata then has no URL. */
export function describeResource({
  resource,
  issuers,
  routes,
}: Pick<RouteFile, 'resource' | 'issuers' | 'routes'>): ResourceMetadata | null {
  const url = URL.parse(resource)
  if (url === null || !/^https?:$/.test(url.protocol)) return null
  // Section 3.1: the well-known part goes between the host and the path of the resource.
  const path = `${WELL_KNOWN}${url.pathname === '/' ? '' : url.pathname}`
  const scopes = [...new Set(routes.flatMap(scopesOf))].sort()
  const document = {
    resource,
    authorization_servers: issuers.map(({ issuer }) => issuer),
    // Clients that were not told a scope ask for all of these scopes (MCP, Authorization).
    ...(scopes.length > 0 && { scopes_supported: scopes }),
    bearer_methods_supported: ['header'],
    dpop_signing_alg_values_supported: PROOF_ALGORITHMS,
  }
  return { path, url: `${url.origin}${path}`, body: JSON.stringify(document) }
}
