/**
 * Roles that a write gives indirectly: the group's to its new member, those of new ancestors in a moved organization, and a person's own
 * when the membership becomes active.
 */

import type { HeldRole, Store } from '../../../../engine/store/contract.ts'
import { type Definitions, definitionsOf, readDeclared } from '../../../../engine/writes/role-definitions.ts'
import { scopesIn } from '../../../../identity/oauth/management-app.ts'
import type { JournalId } from '../../../../shared/domain/journal.ts'
import type { MembershipStatus } from '../../../../shared/domain/membership.ts'
import { isDelegation } from '../../../../shared/domain/subjects.ts'
import type { Tuple } from '../../../../shared/domain/tuple.ts'
import { lacksScopes, type ManagementClient } from '../../authentication/authenticate.ts'
import { beyondCaller, managesAll } from '../../authentication/people.ts'
import { RequestProblem } from '../../http/status.ts'
import type { Reach } from '../deps.ts'

const SCOPE = 'roles:write'
/** The scope for adding members, which includes saying which clients act for them. */
const DELEGATING = 'directory:write'
/** The most grants of one organization that are read. If there are more, the write is refused. */
const GRANTS_MAX = 1_000
const GROUPS_MAX = 1_000
const NAMED_MAX = 20
const GROUP = 'group:'

type Given = { readonly roles: readonly HeldRole[]; readonly what: string }

/** Throws RequestProblem if these tuples give a new group member roles that the caller may not give. */
export async function requireGivenToGroups(
  at: Reach,
  caller: ManagementClient,
  { log, tuples }: { readonly log: JournalId; readonly tuples: readonly Omit<Tuple, 'expiresAtMs'>[] },
): Promise<void> {
  if (tuples.some(isDelegation) && !caller.token.scopes.has(DELEGATING))
    throw lacksScopes('a tuple service:…#acts_for@… lets a client act for a person, which needs this scope as well', [
      DELEGATING,
    ])
  const joined = tuples.filter(({ object, relation }) => relation === 'member' && object.startsWith(GROUP))
  const groups = new Set(joined.map(({ object }) => object))
  if (groups.size === 0) return
  const roles = await rolesOfGroups(at.store, log, [...groups])
  await requireGivable(at, caller, { log, given: { roles, what: 'a member of the group would have' } })
}

/** Throws RequestProblem if grants in the organizations that become ancestors give what the caller may not give. */
export async function requireGivenByMove(
  at: Reach,
  caller: ManagementClient,
  { log, above }: { readonly log: JournalId; readonly above: readonly JournalId[] },
): Promise<void> {
  const roles: HeldRole[] = []
  for (const organization of above) roles.push(...(await grantsIn(at.store, organization)))
  await requireGivable(at, caller, { log, given: { roles, what: 'holders of a role above it would have' } })
}

/** Throws RequestProblem if a membership becomes active and so gives its person roles that the caller may not give. */
export async function requireGivenByReturn(
  at: Reach,
  caller: ManagementClient,
  {
    log,
    user,
    blocked,
    before,
    after,
  }: {
    readonly log: JournalId
    readonly user: string
    /** The directory of a company has blocked the person. */
    readonly blocked: boolean
    readonly before: MembershipStatus | null
    readonly after: MembershipStatus
  },
): Promise<void> {
  if (after !== 'active' || managesAll(caller)) return
  // An unbound client can let in a person whom a directory blocked. Then all roles of the person, everywhere, count again.
  const isLetIn = caller.organizationScope.length === 0 && blocked
  // The roles of a guest, who has no membership, count already.
  if (!isLetIn && (before === null || before === 'active')) return
  const roles = isLetIn ? await rolesOfUser(at, user) : await rolesIn(at.store, [log], `user:${user}`)
  await requireGivable(at, caller, { log, given: { roles, what: `${user} would have again` } })
}

/** Throws RequestProblem if granted roles of an app get more permissions and the caller may not give roles. */
export async function requireGivingRoles(
  at: Reach,
  caller: ManagementClient,
  change: {
    readonly app: string
    readonly before: Definitions
    readonly after: { readonly [role: string]: { readonly permissions: readonly string[] } }
  },
): Promise<void> {
  if (caller.token.scopes.has(SCOPE)) return
  const { app, before, after } = change
  for (const [role, { permissions }] of Object.entries(after)) {
    const had = before({ app, role }) ?? []
    const more = permissions.filter((key) => !had.includes(key))
    if (more.length === 0) continue
    const granted = await at.store.roleGrants({ apps: [app], role }, { after: null, countMax: 1 })
    if (granted.length > 0) throw lacksScope(`holders of role ${role} would have ${listed(more)}`)
  }
}

async function requireGivable(
  at: Reach,
  caller: ManagementClient,
  { log, given: { roles, what } }: { readonly log: JournalId; readonly given: Given },
): Promise<void> {
  const definitions = definitionsOf(await readDeclared(at.store))
  const lacking = new Set<string>()
  for (const [app, held] of Map.groupBy(roles, ({ app }) => app)) {
    const given = new Set(held.flatMap((role) => definitions(role) ?? []))
    if (given.size === 0) continue
    if (!caller.token.scopes.has(SCOPE)) throw lacksScope(`${what} ${listed([...given])}`)
    // An unbound client manages the whole environment, but gives only management scopes that it has.
    if (caller.organizationScope.length === 0) {
      for (const key of beyondCaller(caller, [...given])) lacking.add(key)
      continue
    }
    const own = await at.pdp.held({ organization: log, subject: caller.token.subject, app })
    for (const key of given) if (!own.permissions.includes(key)) lacking.add(key)
  }
  if (lacking.size === 0) return
  throw lacksPermissions([...lacking])
}

/**
 * The roles of a person and the person's groups in all organizations; with `app`, only the app's. Roles that a membership withholds count,
 * because a suspension may end.
 */
export async function rolesOfUser(
  { store, provisioning }: Reach,
  user: string,
  app?: string,
): Promise<readonly HeldRole[]> {
  const subject = `user:${user}`
  const direct = await readGrants(store, app === undefined ? { subject } : { subject, apps: [app] })
  const grouped = await provisioning.groupOrganizations(user, GROUPS_MAX + 1)
  if (grouped.length > GROUPS_MAX) throw tooMany(`${user} is in groups of more than ${GROUPS_MAX} organizations`)
  const roles = [...direct, ...(await rolesIn(store, grouped, subject))]
  return app === undefined ? roles : roles.filter((role) => role.app === app)
}

/** Roles that the subject and its groups have in the given logs. */
async function rolesIn(
  store: Pick<Store, 'rows'>,
  logs: readonly JournalId[],
  subject: string,
): Promise<readonly HeldRole[]> {
  if (logs.length === 0) return []
  const asked = logs.map((log) => ({ log, kind: 'grants', subject }) as const)
  const { rows } = await store.rows([...logs], asked)
  return rows.flatMap((row) => ('grants' in row ? row.grants.map(({ app, role }) => ({ app, role })) : []))
}

/** Roles of the groups and of all groups that they are members of. */
async function rolesOfGroups(
  store: Pick<Store, 'rows'>,
  log: JournalId,
  groups: readonly string[],
): Promise<readonly HeldRole[]> {
  const keys = groups.map((group) => ({ log, kind: 'groups', subject: `${group}#member` }) as const)
  const { rows } = await store.rows([log], keys)
  const above = rows.flatMap((row) => ('groups' in row ? row.groups : []))
  const all = new Set([...groups, ...above.map(({ subject }) => subject.slice(0, subject.indexOf('#')))])
  if (all.size > GROUPS_MAX) throw tooMany(`the groups are members of more than ${GROUPS_MAX} groups`)
  const asked = [...all].map((subject) => ({ log, kind: 'grants', subject }) as const)
  const held = (await store.rows([log], asked)).rows.flatMap((row) => ('grants' in row ? row.grants : []))
  return held.map(({ app, role }) => ({ app, role }))
}

const grantsIn = (store: Pick<Store, 'roleGrants'>, log: JournalId) => readGrants(store, { log })

async function readGrants(
  store: Pick<Store, 'roleGrants'>,
  filter: { readonly log: JournalId } | { readonly subject: string; readonly apps?: readonly string[] },
): Promise<readonly HeldRole[]> {
  const grants = await store.roleGrants(filter, { after: null, countMax: GRANTS_MAX + 1 })
  if (grants.length > GRANTS_MAX) throw tooMany(`more than ${GRANTS_MAX} role grants would have to be read`)
  return [...new Map(grants.map(({ app, role }) => [JSON.stringify([app, role]), { app, role }])).values()]
}

/** Permissions that manage Portcullis are also scopes: the error names those that a client may ask for. */
export const lacksPermissions = (lacking: readonly string[]): RequestProblem =>
  lacksScopes(`a client can give only permissions that it holds itself; it lacks ${listed(lacking)}`, [
    ...scopesIn(lacking),
  ])
const listed = (keys: readonly string[]): string => keys.slice(0, NAMED_MAX).join(', ')
const tooMany = (message: string): RequestProblem => new RequestProblem('evaluation_limit', message)
const lacksScope = (effect: string): RequestProblem =>
  lacksScopes(`${effect}; this write also needs the scope ${SCOPE}`, [SCOPE])
