/** The rules for changes that a journal accepts, for all stores, with the fault of each other change. */

import type { Change } from '../../shared/domain/change.ts'
import { ENFORCEMENTS } from '../../shared/domain/entitlement.ts'
import { PdpError, type ValidationIssue } from '../../shared/domain/errors.ts'
import { DIRECTORY, ENVIRONMENT, type JournalId, TOKENS } from '../../shared/domain/journal.ts'
import type { Manifest } from '../../shared/domain/manifest.ts'
import { MEMBERSHIP_RELATIONS, MEMBERSHIP_STATUSES, TIERS } from '../../shared/domain/membership.ts'
import {
  conditionIssue,
  formatTuple,
  isEntitlementKey,
  isId,
  isPermissionKey,
  quote,
  tupleIssue,
  typeOf,
} from '../../shared/domain/names.ts'
import type { RoleGrant } from '../../shared/domain/role.ts'
import { boundIssues } from '../decide/language/model-bounds.ts'
import { placesIn } from '../decide/language/places.ts'
import { SUBJECT_TYPES } from '../decide/model.ts'
import { knownModel } from '../decide/models/known-models.ts'
import { reservedTypeIssues } from '../decide/restrictions.ts'

export const ORGANIZATION_NAME_CHARACTERS_MAX = 256
const ENVIRONMENT_KINDS: ReadonlySet<Change['kind']> = new Set(['organization', 'manifest', 'role', 'role_grant'])
const ORGANIZATION_KINDS: ReadonlySet<Change['kind']> = new Set([
  'tuple',
  'membership',
  'role_grant',
  'entitlement',
  'entitlements',
])

/** True if decisions depend on the change; other entries are only for people to read. */
export const isDecidedBy = (log: JournalId, { kind }: Change): boolean =>
  (log === ENVIRONMENT ? ENVIRONMENT_KINDS : ORGANIZATION_KINDS).has(kind)

/**
 * Rejects a write with any fault, and lists all of them by the change's index (`/0`, `/1`, …). Throws PdpError `request_invalid`, and
 * ModelPending.
 */
export function assertChanges(log: JournalId, changes: readonly Change[]): void {
  const issues: ValidationIssue[] = []
  const tuples = new Set<string>()
  changes.forEach((change, i) => {
    const message = changeIssue(log, change) ?? repeatedTupleIssue(tuples, change)
    if (message !== null) issues.push({ place: `/${i}`, message })
  })
  if (issues.length === 0) return
  throw new PdpError('request_invalid', issues.map((m) => `${m.place}: ${m.message}`).join('; '), { issues })
}

/** True for tuples or roles that a user has in an organization but that do not count without an active membership. */
export type Withheld = { readonly relationships: boolean; readonly roles: boolean }

/** Throws PdpError `conflict` if there are any: without the membership the user would be a guest, for whom they count. */
export function requireNothingWithheld(user: string, { relationships, roles }: Withheld): void {
  if (!relationships && !roles) return
  const what = [...(relationships ? ['relationships'] : []), ...(roles ? ['roles'] : [])].join(' and ')
  throw new PdpError(
    'conflict',
    `the membership of ${user} is not active, and without it their ${what} here would count again: delete these first`,
  )
}

/** Users who lose their memberships by the changes. */
export const leaversIn = (changes: readonly Change[]): readonly string[] =>
  changes.flatMap((change) => (change.kind === 'membership' && change.membership === null ? [change.user] : []))

/** The fault of a batch that names a tuple twice: without order among its changes, the result would be unclear. */
function repeatedTupleIssue(seen: Set<string>, change: Change): string | null {
  if (change.kind !== 'tuple') return null
  const name = formatTuple(change.tuple)
  if (seen.has(name)) return `${name} occurs twice in this batch`
  seen.add(name)
  return null
}

function changeIssue(log: JournalId, change: Change): string | null {
  if (log === TOKENS || log === DIRECTORY || !isDecidedBy(log, change)) {
    return `a ${change.kind} change does not belong to ${log === ENVIRONMENT ? 'the environment' : `organization ${log}`}`
  }
  switch (change.kind) {
    case 'tuple':
      return (
        tupleIssue(change.tuple) ??
        reservedTupleIssue(change.tuple) ??
        expiryIssue(change.tuple.expiresAtMs) ??
        conditionIssue(change.tuple.condition)
      )
    case 'membership':
      if (!isId(change.user)) return `user ${quote(change.user)} is not an id`
      if (change.membership === null) return null
      if (!TIERS.includes(change.membership.role)) return `role is not one of ${TIERS.join(', ')}`
      return MEMBERSHIP_STATUSES.includes(change.membership.status)
        ? null
        : `status is not one of ${MEMBERSHIP_STATUSES.join(', ')}`
    case 'role_grant':
      return grantIssue(log, change.grant)
    case 'entitlement':
      if (!isEntitlementKey(change.key)) return `${quote(change.key)} is not an entitlement key`
      return change.entitlement === null || ENFORCEMENTS.includes(change.entitlement.enforcement)
        ? null
        : `enforcement is not one of ${ENFORCEMENTS.join(', ')}`
    case 'organization':
      return organizationIssue(change)
    case 'role':
      if (!isPermissionKey(change.key)) return `${quote(change.key)} is not a role key`
      return change.role?.permissions.every(isPermissionKey) === false
        ? 'permissions holds something that is not a permission key'
        : null
    case 'manifest':
      return manifestIssue(change.manifest)
    default:
      return null
  }
}

function modelIssue(text: string): string | null {
  const [beyond] = boundIssues(text)
  if (beyond !== undefined) return `${beyond.place} ${beyond.message}`
  try {
    const [reserved] = reservedTypeIssues(knownModel(text), placesIn(text))
    return reserved === undefined ? null : `${reserved.place} ${reserved.message}`
  } catch (err) {
    if (err instanceof PdpError) return err.message
    throw err
  }
}

/** The names that only one app may claim: its audiences, and its model's types except mere subject types. */
export function claimsOf(manifest: Manifest): readonly { readonly kind: 'audience' | 'type'; readonly name: string }[] {
  const model = manifest.model === null ? [] : [...knownModel(manifest.model)]
  const types = model.flatMap(([name, relations]) => (relations.size === 0 && SUBJECT_TYPES.has(name) ? [] : [name]))
  return [
    ...manifest.audiences.map((name) => ({ kind: 'audience', name }) as const),
    ...types.map((name) => ({ kind: 'type', name }) as const),
  ]
}

function manifestIssue(manifest: Manifest): string | null {
  if (!isId(manifest.app)) return `app ${quote(manifest.app)} is not an id`
  const model = manifest.model === null ? null : modelIssue(manifest.model)
  if (model !== null) return model
  const declared = Object.keys(manifest.permissions)
  const bad = [...declared, ...Object.keys(manifest.roles)].find((key) => !isPermissionKey(key))
  if (bad !== undefined) return `${quote(bad)} is not a key`
  for (const [key, role] of Object.entries(manifest.roles)) {
    const unknown = role.permissions.find((permission) => !Object.hasOwn(manifest.permissions, permission))
    if (unknown !== undefined)
      return `role ${key} has permission ${quote(unknown)}, which the manifest does not declare`
  }
  return null
}

export function reservedTupleIssue(tuple: { object: string; relation: string }): string | null {
  if (typeOf(tuple.object) !== 'organization' || !MEMBERSHIP_RELATIONS.has(tuple.relation)) return null
  return `organization#${tuple.relation} comes from memberships only; write a membership instead`
}

function expiryIssue(expiresAtMs: number | null): string | null {
  return expiresAtMs === null || (Number.isSafeInteger(expiresAtMs) && expiresAtMs > 0)
    ? null
    : 'expiresAtMs is not an instant in milliseconds'
}

function grantIssue(log: JournalId, grant: RoleGrant): string | null {
  if (!isId(grant.id)) return `id ${quote(grant.id)} is not an id`
  const [type, id] = [typeOf(grant.subject), grant.subject.slice(grant.subject.indexOf(':') + 1)]
  const types = log === ENVIRONMENT ? ['user', 'service'] : ['user', 'service', 'group']
  // The environment's journal has no groups: organizations, which write their groups' members, could grant themselves roles.
  return types.includes(type) && isId(id)
    ? null
    : `subject ${quote(grant.subject)} is not ${types.map((t) => `${t}:<id>`).join(' or ')}`
}

function organizationIssue(change: Extract<Change, { kind: 'organization' }>): string | null {
  if (!isId(change.id)) return `${quote(change.id)} is not an id`
  const { organization } = change
  if (organization === null) return null
  if (organization.id !== change.id) return 'id differs from the organization that is written'
  if (organization.name.length === 0 || organization.name.length > ORGANIZATION_NAME_CHARACTERS_MAX) {
    return `name has not 1 to ${ORGANIZATION_NAME_CHARACTERS_MAX} characters`
  }
  return organization.parent === null || isId(organization.parent)
    ? null
    : `parent ${quote(organization.parent)} is not an id`
}
