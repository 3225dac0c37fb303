/** Checks what the holder of an access token may do at this API now. */
import type { IncomingMessage } from 'node:http'
import type { Directory } from '../../../engine/store/directory.ts'
import type { TokenState } from '../../../identity/issuer/tokens/token-state.ts'
import { holdsScope, scopesOf } from '../../../identity/oauth/scopes.ts'
import type { Pdp } from '../../../shared/domain/decision.ts'
import { challenge } from '../../../shared/token/challenge.ts'
import { RequestProblem } from '../http/status.ts'
import {
  type ActiveToken,
  type CredentialDeps,
  invalidToken,
  presentedToken,
  provesKey,
  unproven,
} from './credentials.ts'

/** The holder of a client_credentials token for this API. `organizationScope`: it acts only within these; empty: everywhere. */
export type ManagementClient = { readonly token: ActiveToken; readonly organizationScope: readonly string[] }

/**
 * Throws RequestProblem unless the token may ask about another subject or for reasons (scope `decisions:read`). `provenKey`:
 * the sender proved that it holds the key that the token is bound to.
 */
export function requireReader(token: ActiveToken, provenKey: boolean): void {
  if (token.subject.type !== 'service')
    throw new RequestProblem('permission_denied', 'only a client_credentials token may ask this')
  requireScope(token, 'decisions:read')
  if (token.jkt !== null && !provenKey) {
    throw unproven('a DPoP-bound token may ask this over HTTP only, as Authorization: DPoP with a proof')
  }
}

/** Authenticates the caller of a request and requires `scope`. `provenBefore`: the request's proof was already verified. Throws RequestProblem. */
export async function authenticateManagementClient(
  deps: CredentialDeps & {
    readonly introspect: (token: string) => Promise<TokenState>
    readonly directory: Directory
  },
  request: { readonly message: IncomingMessage; readonly scope: string; readonly provenBefore: boolean },
): Promise<ManagementClient> {
  const { issuer } = deps
  const presented = presentedToken(issuer, request.message)
  const token = await deps.introspect(presented.token)
  if (!token.active) throw invalidToken(issuer, presented.scheme, 'the token is not active')
  if (!token.audiences.includes(issuer))
    throw invalidToken(issuer, presented.scheme, 'the token is meant for another audience')
  if (token.subject.type !== 'service')
    throw new RequestProblem('permission_denied', 'only a client_credentials token may manage')
  const isProven = request.provenBefore || (await provesKey(deps, request.message, { ...presented, state: token }))
  if (token.jkt !== null && !isProven) throw unproven('send a DPoP-bound token as Authorization: DPoP with a proof')
  requireScope(token, request.scope)
  // A scope or an organization must be allowed by both the token and the current registration of the client.
  const client = await deps.directory.client(token.clientId)
  if (client === null) throw invalidToken(issuer, presented.scheme, 'the client was deleted')
  const registered = new Set(scopesOf(client.metadata))
  const both = [...registered, ...token.scopes].filter(
    (scope) => holdsScope(registered, scope) && holdsScope(token.scopes, scope),
  )
  const held = { ...token, scopes: new Set(both) }
  requireScope(held, request.scope)
  const organizationScope = [token.organization, client.organization].filter((organization) => organization !== null)
  return { token: held, organizationScope: [...new Set(organizationScope)] }
}

/** Throws RequestProblem if the caller is bound to an organization. */
export function requireUnbound(caller: Pick<ManagementClient, 'organizationScope'>): void {
  if (caller.organizationScope.length > 0)
    throw new RequestProblem('permission_denied', 'a client that is bound to an organization may not do this')
}

/**
 * The organizations for the caller's lists. `within`: this one and all below it; `{}`: all; null: none, because the caller is bound to two
 * organizations and neither is above the other.
 */
export async function reachOf(
  { organizationScope }: Pick<ManagementClient, 'organizationScope'>,
  pdp: Pick<Pdp, 'ancestors'>,
): Promise<{ readonly within: string } | { readonly [none in never]: never } | null> {
  if (organizationScope.length === 0) return {}
  for (const within of organizationScope) if (await isWithin({ organizationScope }, within, pdp)) return { within }
  return null
}

/** True if the organization is the caller's own or below it. Null is the whole environment, where only unbound callers are. */
export async function isWithin(
  { organizationScope }: Pick<ManagementClient, 'organizationScope'>,
  organization: string | null,
  pdp: Pick<Pdp, 'ancestors'>,
): Promise<boolean> {
  if (organizationScope.length === 0) return true
  const ancestors = organization === null ? null : await pdp.ancestors(organization)
  return organizationScope.every((bound) => ancestors?.includes(bound) === true)
}

/** Throws RequestProblem unless the organization is the caller's own or below it. The message does not reveal whether others exist. */
export async function requireWithin(
  caller: Pick<ManagementClient, 'organizationScope'>,
  organization: string,
  pdp: Pick<Pdp, 'ancestors'>,
): Promise<void> {
  const ancestors = await pdp.ancestors(organization)
  if (caller.organizationScope.some((bound) => !ancestors?.includes(bound))) {
    throw new RequestProblem('permission_denied', 'the organization is not one that this client manages')
  }
  if (ancestors === null) throw new RequestProblem('organization_unknown', `there is no organization ${organization}`)
}

function requireScope(token: ActiveToken, scope: string): void {
  if (holdsScope(token.scopes, scope)) return
  throw new RequestProblem('scope_insufficient', `this needs the scope ${scope}`, asking([scope], token.jkt))
}

/** A write that needs more than the scope of its call: the answer names what to ask a token for (RFC 6750 section 3.1). */
export const lacksScopes = (message: string, scopes: readonly string[]): RequestProblem =>
  new RequestProblem('permission_denied', message, scopes.length === 0 ? {} : asking(scopes, null))

const asking = (scopes: readonly string[], jkt: string | null) => ({
  headers: {
    'www-authenticate': challenge(jkt === null ? 'Bearer' : 'DPoP', {
      error: 'insufficient_scope',
      scope: scopes.join(' '),
    }),
  },
})
