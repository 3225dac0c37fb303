/** The scopes: who may request them, and for which resources. */

/** Scopes about a person. Only grants of a person have them. */
export const IDENTITY_SCOPES = ['openid', 'profile', 'email', 'groups', 'organizations'] as const
/** Scopes of our own APIs. Only client_credentials tokens for the issuer itself have them. */
export const SERVICE_SCOPES = [
  'decisions:read',
  'decisions:ask',
  'directory:read',
  'directory:write',
  'manifest:read',
  'manifest:write',
  'roles:read',
  'roles:write',
  'relationships:read',
  'relationships:write',
  'entitlements:read',
  'entitlements:write',
  'clients:read',
  'clients:write',
  'hooks:read',
  'hooks:write',
  'issuers:read',
  'issuers:write',
  'identity-providers:read',
  'identity-providers:write',
  'sessions:revoke',
  // For a company's directory: the users and groups that it manages over SCIM.
  'scim',
  'audit:read',
  'events:read',
  'streams:read',
  'streams:write',
  // The names of the CAEP interoperability profile. They cover the caller's own streams.
  'ssf.read',
  'ssf.manage',
] as const
/** OpenID Connect Core section 11: a refresh token that outlives the sign-in. Never part of an access token. */
export const OFFLINE_ACCESS = 'offline_access'

const IDENTITY: ReadonlySet<string> = new Set(IDENTITY_SCOPES)
const SERVICE: ReadonlySet<string> = new Set(SERVICE_SCOPES)

/** The scope for reading that belongs to a scope for writing. Tuples have separate scopes. */
export function readScope(scope: string): string {
  const read = scope.replace(/:write$/, ':read').replace(/\.manage$/, '.read')
  return SERVICE.has(read) ? read : scope
}

/** A scope for writing includes the one for reading. This is not so for tuples, which many may write and few may list. */
export const holdsScope = (scopes: ReadonlySet<string>, scope: string): boolean =>
  scopes.has(scope) ||
  (scope === 'ssf.read' && scopes.has('ssf.manage')) ||
  (scope.endsWith(':read') && scope !== 'relationships:read' && scopes.has(scope.replace(/:read$/, ':write')))

export const splitScope = (scope: string | undefined): readonly string[] =>
  (scope ?? '').split(' ').filter((name) => name !== '')

/** True for scopes that oidc-provider knows; all others belong to APIs. */
export const isPlatformScope = (scope: string): boolean => IDENTITY.has(scope) || SERVICE.has(scope)
export const isIdentityScope = (scope: string): boolean => IDENTITY.has(scope)
export const isServiceScope = (scope: string): boolean => SERVICE.has(scope)
export const isOpenidScope = (scope: string): boolean => IDENTITY.has(scope) || scope === OFFLINE_ACCESS

/** The first requested scope that the client may not have with this grant; null: all are allowed. `registered`: the client's metadata. */
export function refusedScope(request: {
  readonly asked: readonly string[]
  readonly registered: readonly string[]
  /** `person`: a person signs in; `service`: client_credentials. */
  readonly kind: 'person' | 'service'
}): string | null {
  const otherKind = request.kind === 'person' ? SERVICE : IDENTITY
  const registered = new Set(request.registered)
  const refused = request.asked.find((s) => s !== OFFLINE_ACCESS && (!registered.has(s) || otherKind.has(s)))
  return refused ?? null
}

/** The registered scopes that a person's grant gets if the request names no scope. */
export const personScopes = (registered: readonly string[]): readonly string[] =>
  registered.filter((s) => s !== OFFLINE_ACCESS && !SERVICE.has(s))

/**
 * The client's scopes for a token to a resource. Service scopes are only in tokens to the issuer: a resource server could else use a token
 * that it receives here.
 */
export function scopesAt(resource: { readonly isIssuer: boolean }, registered: readonly string[]): readonly string[] {
  return registered.filter((s) => s !== OFFLINE_ACCESS && (resource.isIssuer || !SERVICE.has(s)))
}

export const scopesOf = (metadata: { readonly scope?: unknown }): readonly string[] =>
  typeof metadata.scope === 'string' ? splitScope(metadata.scope) : []
