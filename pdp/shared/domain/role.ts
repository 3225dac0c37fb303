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
 * Bytes of JSON that our claims, roles and permissions among them, may take in an access token. With the registered claims,
 * base64url and the signature the token then stays under the 8 KiB that proxies accept in a header.
 */
export const CLAIMS_BYTES_MAX = 5_000
