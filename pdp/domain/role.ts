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
