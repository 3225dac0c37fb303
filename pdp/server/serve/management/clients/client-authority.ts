/** Authority over clients: a caller that sets a client's secret can act as that client, so the client must not hold more than the caller. */

import { type Client, SYSTEM } from '../../../../engine/store/directory.ts'
import { readDeclared } from '../../../../engine/writes/role-definitions.ts'
import { holdsScope, isIdentityScope, isServiceScope, scopesOf } from '../../../../identity/oauth/scopes.ts'
import type { Subject } from '../../../../shared/domain/decision.ts'
import { ENVIRONMENT } from '../../../../shared/domain/journal.ts'
import { lacksScopes, type ManagementClient, requireUnbound, requireWithin } from '../../authentication/authenticate.ts'
import { RequestProblem } from '../../http/status.ts'
import type { Reach } from '../deps.ts'
import { hasKey } from './client-registration.ts'

/** The most grants of one client that are read. A client with more is refused. */
const GRANTS_MAX = 1_000
const NAMED_MAX = 20

/** A caller, or the client that set the secret of another client: both need authority over that client. */
export type Holder = Pick<ManagementClient, 'organizationScope'> & {
  readonly clientId: string
  readonly scopes: ReadonlySet<string>
}
export const holderOf = ({ token: { clientId, scopes }, organizationScope }: ManagementClient): Holder => ({
  clientId,
  scopes,
  organizationScope,
})

/** Requires that the client is in the holder's organizations and has nothing that the holder lacks. Throws RequestProblem. */
export async function requireAuthorityOver(deps: Reach, holder: Holder, client: Client): Promise<void> {
  if (client.organization === null) requireUnbound(holder)
  else await requireWithin(holder, client.organization, deps.pdp)
  const lacking = await lackingScopes(deps, holder, client)
  if (lacking.length > 0) throw refusal('scope', lacking, lacking.filter(isServiceScope))
  // An unbound client manages the whole environment, so it needs no further check.
  if (holder.organizationScope.length === 0 || client.organization === null || client.id === holder.clientId) return
  const place = { id: client.id, organization: client.organization }
  refuse('role or permission', await lackingRoles(deps, holder, place))
  if (holder.scopes.has('relationships:write')) return
  refuse('relationship', await deps.directory.clientRelations(place.id, place.organization, NAMED_MAX))
}

function refuse(what: string, lacking: readonly string[]): void {
  if (lacking.length > 0) throw refusal(what, lacking, [])
}

function refusal(what: string, lacking: readonly string[], scopes: readonly string[]): RequestProblem {
  const names = lacking.slice(0, NAMED_MAX).join(', ')
  return lacksScopes(`a client can give or take a ${what} only if it holds it itself; it lacks ${names}`, scopes)
}

/** An unbound client can give any scope of an API. A bound client can give those that it is registered for. */
async function lackingScopes(deps: Reach, holder: Holder, client: Client): Promise<readonly string[]> {
  const { clientId, scopes, organizationScope } = holder
  const own = organizationScope.length === 0 ? null : await deps.directory.client(clientId)
  const registered = new Set(own === null ? [] : scopesOf(own.metadata))
  return scopesOf(client.metadata).filter((scope) => {
    if (isServiceScope(scope)) return !holdsScope(scopes, scope)
    return own !== null && !isIdentityScope(scope) && scope !== 'offline_access' && !registered.has(scope)
  })
}

/** Roles and permissions that the client holds and the holder lacks: in its organization, and wherever it has grants. */
async function lackingRoles(
  { pdp, store }: Reach,
  holder: Holder,
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
      const holds = await pdp.held({ organization, subject: { type: 'service', id: holder.clientId }, app })
      for (const role of held.roles) if (!holds.roles.includes(role)) lacking.add(role)
      for (const key of held.permissions) if (!holds.permissions.includes(key)) lacking.add(key)
    }
  }
  return [...lacking]
}

/**
 * True if the stored secret may stay after a change of the registration. Its setter can act as the client, and so must have authority over
 * the changed client.
 */
export async function mayKeepSecret(
  deps: Reach,
  { before, after }: { readonly before: Stored; readonly after: Client },
): Promise<boolean> {
  const authenticates = before.secretHash !== null || hasKey(before.metadata)
  if (!authenticates || !isWidened(before, after) || before.secretSetBy === SYSTEM) return true
  const setter = before.secretSetBy === null ? null : await deps.directory.client(before.secretSetBy)
  if (setter === null) return false
  const scopes = new Set(scopesOf(setter.metadata))
  if (!scopes.has('clients:write')) return false
  const organizationScope = setter.organization === null ? [] : [setter.organization]
  try {
    await requireAuthorityOver(deps, { clientId: setter.id, scopes, organizationScope }, after)
    return true
  } catch (err) {
    if (err instanceof RequestProblem) return false
    throw err
  }
}

type Stored = NonNullable<Awaited<ReturnType<Reach['directory']['client']>>>

function isWidened(before: Client, after: Client): boolean {
  if (before.organization !== after.organization || before.app !== after.app) return true
  if (isMethodChanged(before, after)) return true
  const had = new Set(scopesOf(before.metadata))
  return scopesOf(after.metadata).some((scope) => !holdsScope(had, scope))
}

export const isMethodChanged = (before: Client, after: Client): boolean => methodOf(before) !== methodOf(after)
// The authentication method, with the default of RFC 7591 section 2.
const methodOf = ({ metadata }: Client): unknown => metadata.token_endpoint_auth_method ?? 'client_secret_basic'
