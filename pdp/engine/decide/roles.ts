/** Finds a subject's roles and permission keys in an organization, both for checks and for token claims. */
import { ENVIRONMENT, type JournalId } from '../../shared/domain/journal.ts'
import { isWildcard } from '../../shared/domain/names.ts'
import type { RoleGrant } from '../../shared/domain/role.ts'
import type { View } from './view.ts'

/** The most levels of the organization tree. */
const DEPTH_MAX = 25

/** The origin of a grant: the organization itself, an ancestor of it, or the whole environment. */
export type Origin = 'role' | 'role_rolled_down' | 'role_environment'
export type HeldGrant = { readonly grant: RoleGrant; readonly origin: Origin; readonly log: JournalId }
export type HeldPermission = { readonly key: string; readonly held: HeldGrant }

/** The organization and its ancestors, nearest first; [] for an unknown organization; undefined while rows are missing. */
export function ancestors(view: Pick<View, 'organization'>, organization: string): readonly string[] | undefined {
  const path: string[] = []
  for (let id: string | null = organization; id !== null && path.length < DEPTH_MAX; ) {
    const node = view.organization(id)
    if (node === undefined) return undefined
    if (node === null) break
    path.push(id)
    id = node.parent
  }
  return path
}

/** Every grant that counts for the subject in the organization; undefined while rows are missing. */
export function heldGrants(view: View, organization: string, subject: string): readonly HeldGrant[] | undefined {
  const path = ancestors(view, organization)
  if (path === undefined) {
    // Also asks for rows that are needed in any case, so that one load brings them together with the ancestors.
    grantsIn(view, organization, subject)
    view.grants(ENVIRONMENT, subject)
    return undefined
  }
  let missing = false
  const held: HeldGrant[] = []
  const add = (log: JournalId, origin: Origin): void => {
    const grants = log === ENVIRONMENT ? view.grants(log, subject) : grantsIn(view, log, subject)
    if (grants === undefined) missing = true
    else for (const grant of grants) held.push({ grant, origin, log })
  }
  path.forEach((log, i) => {
    add(log, i === 0 ? 'role' : 'role_rolled_down')
  })
  if (path.length > 0) add(ENVIRONMENT, 'role_environment')
  return missing ? undefined : held
}

/** Grants in one organization, to the subject or to its groups there. None while the membership is not active. */
function grantsIn(view: View, log: JournalId, subject: string): readonly RoleGrant[] | undefined {
  if (isWildcard(subject)) return [] // roles are granted to single subjects
  const membership = view.membership(log, subject)
  if (membership === undefined) {
    view.grants(log, subject)
    return undefined
  }
  if (membership !== null && membership.status !== 'active') return []
  const direct = view.grants(log, subject)
  const above = view.closure(log, subject)
  if (direct === undefined || above === undefined) return undefined
  const held = [...direct]
  // A subject `group:x#member` also holds the grants to its own group.
  const own = subject.startsWith('group:') && subject.endsWith('#member') ? [subject] : []
  for (const userset of [...own, ...above.groups]) {
    const grants = view.grants(log, userset.slice(0, userset.indexOf('#')))
    if (grants === undefined) return undefined
    held.push(...grants)
  }
  return held
}

/** Means "any app" in a question that names no app. No app has this id. */
export const ANY_APP = '*'

/** Permission keys of the grants: of roles of `app`, or of every app, and of organization-wide roles. Undefined while rows are missing. */
export function heldPermissions(
  view: View,
  request: { organization: string; subject: string; app: string | null },
): { readonly roles: readonly string[]; readonly permissions: readonly HeldPermission[] } | undefined {
  const grants = heldGrants(view, request.organization, request.subject)
  const manifests = request.app === null ? [] : view.manifests()
  const organizationRoles = view.roles()
  if (grants === undefined || manifests === undefined || organizationRoles === undefined) return undefined
  const rolesOf = (app: string) => manifests.find((manifest) => manifest.app === app)?.roles ?? {}
  const wideRoles = new Map(organizationRoles.map((role) => [role.key, role]))
  const roles = new Set<string>()
  const permissions: HeldPermission[] = []
  for (const held of grants) {
    const { app, role } = held.grant
    if (app !== null && app !== request.app && request.app !== ANY_APP) continue
    const appRoles = app === null ? {} : rolesOf(app)
    const definition = app === null ? wideRoles.get(role) : Object.hasOwn(appRoles, role) ? appRoles[role] : undefined
    if (definition === undefined) continue // a role that no longer exists grants nothing
    roles.add(role)
    for (const key of definition.permissions) permissions.push({ key, held })
  }
  return { roles: [...roles].sort(), permissions }
}
