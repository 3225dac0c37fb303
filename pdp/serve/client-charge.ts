/** Who may set a client's secret can act as that client, so nobody has charge of one that holds more than they do. */
import { isIdentityScope, isServiceScope } from '../identity/scopes.ts'
import type { Subject } from '../pdp.ts'
import { ENVIRONMENT } from '../store/contracts.ts'
import type { Client } from '../store/directory.ts'
import { type Manager, requireUnbound, requireWithin } from './authenticate.ts'
import { scopesOf } from './client-registration.ts'
import type { ManagementDeps } from './management-route.ts'
import { readDeclared } from './role-definitions.ts'
import { Refusal } from './status.ts'

/** Grants to one client that are looked at; beyond them nobody can say what it holds. */
const GRANTS_MAX = 1_000
const NAMED_MAX = 20

/** The client must be within the manager's organizations and hold nothing that the manager does not. Throws Refusal. */
export async function requireCharge(deps: ManagementDeps, manager: Manager, client: Client): Promise<void> {
  if (client.organization === null) requireUnbound(manager)
  else await requireWithin(manager, client.organization, deps.pdp)
  refuse('scope', await lackingScopes(deps, manager, client))
  // Nobody is above an unbound client, which manages the environment.
  if (manager.bounds.length === 0 || client.organization === null || client.id === manager.token.clientId) return
  const place = { id: client.id, organization: client.organization }
  refuse('role or permission', await lackingRoles(deps, manager, place))
  if (manager.token.scopes.has('relationships:write')) return
  refuse('relationship', await deps.directory.clientRelations(place.id, place.organization, NAMED_MAX))
}

function refuse(what: string, lacking: readonly string[]): void {
  if (lacking.length === 0) return
  const names = lacking.slice(0, NAMED_MAX).join(', ')
  throw new Refusal('permission_denied', `nobody gives or takes a ${what} that they do not hold: ${names}`)
}

/** Scopes of APIs are given freely by who manages the environment; a tenant's client gives those that it is registered for. */
async function lackingScopes(deps: ManagementDeps, manager: Manager, client: Client): Promise<readonly string[]> {
  const { token, bounds } = manager
  const own = bounds.length === 0 ? null : await deps.directory.client(token.clientId)
  const registered = new Set(own === null ? [] : scopesOf(own.metadata))
  return scopesOf(client.metadata).filter((scope) => {
    if (isServiceScope(scope)) return !token.scopes.has(scope)
    return own !== null && !isIdentityScope(scope) && scope !== 'offline_access' && !registered.has(scope)
  })
}

/** What the client holds where it can act: in its organization, however it came by it, and below by grants of its own. */
async function lackingRoles(
  { pdp, store }: ManagementDeps,
  manager: Manager,
  client: { readonly id: string; readonly organization: string },
): Promise<readonly string[]> {
  const subject: Subject = { type: 'service', id: client.id }
  const own = await store.roleGrants({ subject: `service:${client.id}` }, { after: null, countMax: GRANTS_MAX })
  if (own.length === GRANTS_MAX) return [`more than ${GRANTS_MAX} role grants`]
  const places = new Set([client.organization, ...own.map(({ log }) => log).filter((log) => log !== ENVIRONMENT)])
  const { manifests } = await readDeclared(store)
  const lacking = new Set<string>()
  for (const organization of places) {
    for (const app of [null, ...manifests.map((manifest) => manifest.app)]) {
      const held = await pdp.held({ organization, subject, app })
      if (held.roles.length + held.permissions.length === 0) continue
      const holds = await pdp.held({ organization, subject: manager.token.subject, app })
      for (const role of held.roles) if (!holds.roles.includes(role)) lacking.add(role)
      for (const key of held.permissions) if (!holds.permissions.includes(key)) lacking.add(key)
    }
  }
  return [...lacking]
}
