/** Roles, and their grants to subjects. */

/** `app` null: an organization-wide role. `subject`: `user:id`, `service:id`, or `group:id` (not environment-wide). */
export type RoleGrant = {
  readonly id: string
  readonly app: string | null
  readonly role: string
  readonly subject: string
}
export type OrganizationRole = {
  readonly key: string
  readonly name: string
  readonly permissions: readonly string[]
}

/**
 * The most bytes of JSON for our claims in an access token, roles and permissions included. With registered claims, base64url and
 * signature, the token then has less than 8 KiB, which proxies accept in a header.
 */
export const CLAIMS_BYTES_MAX = 5_000
