/** Decides which token carries which claim (ARCHITECTURE.md section 6). Pure: the claims depend only on `Facts`. */
import type { HeldRoles } from '../../../shared/domain/decision.ts'
import type { JsonObject } from '../../../shared/domain/json.ts'
import type { Tier } from '../../../shared/domain/membership.ts'
import { CLAIMS_BYTES_MAX } from '../../../shared/domain/role.ts'

/** The facts about a subject in an organization when a token is minted. */
export type ClaimSources = {
  /** The organization of the grant; null: the grant has none. */
  readonly organization: { readonly id: string; readonly name: string } | null
  /** The person's tier in the organization; null for a service, and without an active membership. */
  readonly tier: Tier | null
  readonly held: HeldRoles
  /** Entitlements of mode Claims; null if embedding is off, or without an organization. */
  readonly entitlements: { readonly version: number; readonly values: JsonObject } | null
}
export const UNBOUND: ClaimSources = {
  organization: null,
  tier: null,
  held: { roles: [], permissions: [] },
  entitlements: null,
}

/** `leftOut`: claims that are absent because they would make the token too large. A claim is complete or absent. */
export function accessTokenClaims(
  sources: ClaimSources,
  added: JsonObject = {},
): { claims: JsonObject; leftOut: readonly ('entitlements' | 'hook')[] } {
  const own: JsonObject = {
    ...organizationClaims(sources),
    ...(sources.held.roles.length > 0 ? { roles: sources.held.roles } : {}),
    ...(sources.held.permissions.length > 0 ? { permissions: sources.held.permissions } : {}),
  }
  const leftOut: ('entitlements' | 'hook')[] = []
  let claims = own
  const { entitlements } = sources
  if (sources.organization !== null && entitlements !== null && Object.keys(entitlements.values).length > 0) {
    const whole = { ...claims, ent: entitlements.values, ent_ver: entitlements.version }
    if (fits(whole)) claims = whole
    else leftOut.push('entitlements')
  }
  const extended = { ...added, ...claims }
  if (fits(extended)) claims = extended
  else leftOut.push('hook')
  return { claims, leftOut: Object.keys(added).length === 0 ? leftOut.filter((what) => what !== 'hook') : leftOut }
}

const fits = (claims: JsonObject): boolean => Buffer.byteLength(JSON.stringify(claims)) <= CLAIMS_BYTES_MAX

/** Role keys are in `groups`, because applications read this name in ID tokens. */
export function idTokenClaims(sources: ClaimSources, scopes: ReadonlySet<string>): JsonObject {
  return {
    ...organizationClaims(sources),
    ...(scopes.has('groups') && sources.held.roles.length > 0 ? { groups: sources.held.roles } : {}),
  }
}

export function userInfoClaims(
  sources: ClaimSources,
  person: {
    readonly id: string
    readonly email: string | null
    readonly emailVerified: boolean
    readonly name: string | null
    /** All active memberships of the person. */
    readonly organizations: readonly { readonly id: string; readonly name: string; readonly role: Tier }[]
  },
  scopes: ReadonlySet<string>,
): JsonObject {
  return {
    sub: person.id,
    ...organizationClaims(sources),
    ...(sources.held.roles.length > 0 ? { roles: sources.held.roles } : {}),
    ...(sources.held.permissions.length > 0 ? { permissions: sources.held.permissions } : {}),
    ...(scopes.has('organizations') ? { organizations: person.organizations } : {}),
    ...(scopes.has('email') && person.email !== null
      ? { email: person.email, email_verified: person.emailVerified }
      : {}),
    ...(scopes.has('profile') && person.name !== null ? { name: person.name } : {}),
  }
}

function organizationClaims({ organization, tier }: ClaimSources): JsonObject {
  if (organization === null) return {}
  return { org: organization.id, org_name: organization.name, ...(tier === null ? {} : { org_role: tier }) }
}
