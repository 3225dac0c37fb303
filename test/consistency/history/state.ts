/** What each log holds at each of its revisions, replayed from what the writers asked for. Shares no code with the stores. */
import { createHash } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import type { Change } from '../../../pdp/shared/domain/change.ts'
import { ENVIRONMENT, type JournalId } from '../../../pdp/shared/domain/journal.ts'
import type { StoredManifest } from '../../../pdp/shared/domain/manifest.ts'
import type { Membership } from '../../../pdp/shared/domain/membership.ts'
import type { Organization } from '../../../pdp/shared/domain/organization.ts'
import type { OrganizationRole, RoleGrant } from '../../../pdp/shared/domain/role.ts'
import type { Tuple } from '../../../pdp/shared/domain/tuple.ts'
import type { World } from '../../support/reference.ts'
import { rulesOf } from '../conditions/models.ts'

type Table<V> = ReadonlyMap<string, V>
/** Never changed once made. */
export type State = {
  readonly tuples: Table<Tuple>
  readonly memberships: Table<Membership>
  readonly grants: Table<RoleGrant>
  readonly gates: Table<boolean>
  /** How often entitlements were written. */
  readonly entitlementVersion: number
  readonly organizations: Table<Organization>
  readonly roles: Table<OrganizationRole>
  readonly manifests: Table<StoredManifest>
}
export const NOTHING: State = {
  tuples: new Map(),
  memberships: new Map(),
  grants: new Map(),
  gates: new Map(),
  entitlementVersion: 0,
  organizations: new Map(),
  roles: new Map(),
  manifests: new Map(),
}

const keyOf = ({ object, relation, subject }: Tuple): string => `${object}#${relation}@${subject}`

function replaced<V>(table: Table<V>, key: string, value: V | null): Table<V> {
  if (isDeepStrictEqual(table.get(key) ?? null, value)) return table
  const copy = new Map(table)
  if (value === null) copy.delete(key)
  else copy.set(key, value)
  return copy
}

/** One change. The same object when it finds what it asks for already there. */
function applied(state: State, change: Change): State {
  switch (change.kind) {
    case 'tuple': {
      const tuples = replaced(state.tuples, keyOf(change.tuple), change.op === 'write' ? change.tuple : null)
      return tuples === state.tuples ? state : { ...state, tuples }
    }
    case 'membership': {
      const memberships = replaced(state.memberships, change.user, change.membership)
      return memberships === state.memberships ? state : { ...state, memberships }
    }
    case 'role_grant': {
      const { id, app, role, subject } = change.grant
      const held = [...state.grants.values()].some((g) => g.app === app && g.role === role && g.subject === subject)
      if (change.op === 'write' && held) return state
      const grants = replaced(state.grants, id, change.op === 'write' ? change.grant : null)
      return grants === state.grants ? state : { ...state, grants }
    }
    case 'entitlement': {
      const enabled = change.entitlement === null ? null : change.entitlement.value.enabled === true
      const gates = replaced(state.gates, change.key, enabled)
      return gates === state.gates ? state : { ...state, gates }
    }
    case 'organization': {
      const organizations = replaced(state.organizations, change.id, change.organization)
      return organizations === state.organizations ? state : { ...state, organizations }
    }
    case 'role': {
      const roles = replaced(state.roles, change.key, change.role)
      return roles === state.roles ? state : { ...state, roles }
    }
    case 'manifest': {
      const current = state.manifests.get(change.manifest.app)
      const version = current?.version ?? 0
      if (isDeepStrictEqual(current, { ...change.manifest, version })) return state
      const next = { ...change.manifest, version: version + 1 }
      return { ...state, manifests: replaced(state.manifests, next.app, next) }
    }
    case 'clear':
      return { ...NOTHING, entitlementVersion: state.entitlementVersion + 1 }
    default:
      return state
  }
}

/** They leave no row behind that is followed here, and are always worth an entry. */
const ALWAYS_LOGGED: ReadonlySet<Change['kind']> = new Set(['token', 'user', 'client', 'clear'])

/** A whole write, and those of its changes that took effect. */
export function replay(state: State, changes: readonly Change[]): { state: State; effective: readonly Change[] } {
  let at = state
  const effective: Change[] = []
  for (const change of changes) {
    const next = applied(at, change)
    // Writing an equal value is a write all the same: it raises the version.
    const isWritten = change.kind === 'entitlement' && change.entitlement !== null
    if (next !== at || isWritten || ALWAYS_LOGGED.has(change.kind)) effective.push(change)
    at = next
  }
  const raised = effective.length > 0 && changes.some((c) => c.kind === 'entitlement')
  return { state: raised ? { ...at, entitlementVersion: at.entitlementVersion + 1 } : at, effective }
}

/** The ancestors, nearest first, from the organization on; [] when there is no such organization. */
export function lineageIn(environment: State, organization: string): readonly string[] {
  const path: string[] = []
  for (let at = environment.organizations.get(organization); at !== undefined; ) {
    path.push(at.id)
    at = at.parent === null ? undefined : environment.organizations.get(at.parent)
  }
  return path
}

export function worldOf(states: ReadonlyMap<JournalId, State>, clockMs: number): World {
  const environment = states.get(ENVIRONMENT) ?? NOTHING
  const content = [...states].map(([log, state]) => {
    const { memberships } = state
    return [log, { tuples: [...state.tuples.values()], memberships, grants: [...state.grants.values()] }] as const
  })
  const manifests = [...environment.manifests.values()]
  return {
    clockMs,
    organizations: environment.organizations,
    content: new Map(content),
    environmentGrants: [...environment.grants.values()],
    roles: [...environment.roles.values()],
    manifests,
    rules: Object.assign({}, ...manifests.map((m) => rulesOf(m.model))),
  }
}

/** The state as `readTables` describes the database's. */
export function describe(state: State): readonly string[] {
  const md5 = (text: string): string => createHash('md5').update(text).digest('hex')
  const list = (items: readonly string[]): string => `[${items.map((i) => JSON.stringify(i)).join(', ')}]`
  return [
    ...[...state.tuples.values()].map(
      ({ condition: c, ...t }) =>
        `tuple ${keyOf(t)} ${t.expiresAtMs ?? 'never'}${c === undefined ? '' : ` ${c.name} ${JSON.stringify(c.context)}`}`,
    ),
    ...[...state.memberships].map(([user, { role, status }]) => `membership ${user} ${role} ${status}`),
    ...[...state.grants.values()].map((g) => `grant ${g.id} ${g.app ?? ''} ${g.role} ${g.subject}`),
    ...[...state.gates].map(([key, enabled]) => `gate ${key} ${enabled}`),
    ...[...state.organizations.values()].map((o) => `organization ${o.id} ${o.parent ?? ''}`),
    ...[...state.roles.values()].map((r) => `role ${r.key} ${r.permissions.join(',')}`),
    ...[...state.manifests.values()].map(
      (m) => `manifest ${m.app} ${m.version} ${md5(m.model ?? '')} ${list(m.roles.clerk?.permissions ?? [])}`,
    ),
  ].sort()
}
