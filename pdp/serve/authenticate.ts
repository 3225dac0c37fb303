/** Who asks: the bearer token of a request, live, and what its holder may ask of us. */

import type { TokenState } from '../identity/token-state.ts'
import type { Pdp } from '../pdp.ts'
import type { Directory } from '../store/contracts.ts'
import { parseAuthorization } from '../token/authorization.ts'
import { challenge } from '../token/challenge.ts'
import { TokenError } from '../token/errors.ts'
import { scopesOf } from './client-registration.ts'
import { Refusal } from './status.ts'

export type ActiveToken = Extract<TokenState, { active: true }>
/** The holder of a client_credentials token for us, and the organizations that it stays within; none: everywhere. */
export type Manager = { readonly token: ActiveToken; readonly bounds: readonly string[] }

const BEARER = challenge('Bearer', {})

/**
 * `fields`: every Authorization field of the request. Throws Refusal `token_missing` with a challenge when there is none or
 * it is malformed. DPoP credentials are not accepted: this version does not verify proofs for its own URLs.
 */
export function bearerToken(fields: readonly string[] | undefined): string {
  try {
    const { scheme, token } = parseAuthorization(fields ?? [])
    if (scheme === 'bearer') return token
  } catch (err) {
    if (!(err instanceof TokenError)) throw err
  }
  throw new Refusal('token_missing', 'send one access token as Authorization: Bearer', {
    headers: { 'www-authenticate': BEARER },
  })
}

/** Throws Refusal unless the token may name another subject, or ask for reasons, by scope `decisions:read`. */
export function requireReader(token: ActiveToken): void {
  if (token.subject.type !== 'service')
    throw new Refusal('permission_denied', 'only a client_credentials token may ask this')
  requireScope(token, 'decisions:read')
  requireUnboundKey(token)
}

export type ManagerDeps = {
  readonly introspect: (token: string) => Promise<TokenState>
  readonly directory: Directory
  readonly issuer: string
}
/** The manager behind a request, with `scope`. Throws Refusal. */
export async function authenticateManager(
  deps: ManagerDeps,
  request: { readonly authorization: readonly string[] | undefined; readonly scope: string },
): Promise<Manager> {
  const token = await deps.introspect(bearerToken(request.authorization))
  if (!token.active) throw invalidToken('the token is not active')
  if (!token.audiences.includes(deps.issuer)) throw invalidToken('the token is meant for another audience')
  if (token.subject.type !== 'service')
    throw new Refusal('permission_denied', 'only a client_credentials token may manage')
  requireUnboundKey(token)
  requireScope(token, request.scope)
  // The client's registration of now counts as well as the token, in scopes and organization: neither may widen the other.
  const client = await deps.directory.client(token.clientId)
  if (client === null) throw invalidToken('the client is gone')
  const registered = scopesOf(client.metadata)
  const held = { ...token, scopes: new Set(registered.filter((scope) => token.scopes.has(scope))) }
  requireScope(held, request.scope)
  const bounds = [token.organization, client.organization].filter((organization) => organization !== null)
  return { token: held, bounds: [...new Set(bounds)] }
}

/** Throws Refusal when the manager is bound to an organization. */
export function requireUnbound(manager: Manager): void {
  if (manager.bounds.length > 0)
    throw new Refusal('permission_denied', 'a client that is bound to an organization may not do this')
}

/** Throws Refusal unless the organization is the manager's or below it. Which others exist is not told to a bound one. */
export async function requireWithin(manager: Manager, organization: string, pdp: Pick<Pdp, 'lineage'>): Promise<void> {
  const lineage = await pdp.lineage(organization)
  if (manager.bounds.some((bound) => !lineage?.includes(bound))) {
    throw new Refusal('permission_denied', 'the organization is not one that this client manages')
  }
  if (lineage === null) throw new Refusal('organization_unknown', `there is no organization ${organization}`)
}

function requireScope(token: ActiveToken, scope: string): void {
  if (token.scopes.has(scope)) return
  throw new Refusal('scope_insufficient', `this needs the scope ${scope}`, {
    headers: { 'www-authenticate': challenge('Bearer', { error: 'insufficient_scope', scope }) },
  })
}

// A sender-constrained token shown as a plain Bearer token proves nothing about who sends it: it is some resource server.
function requireUnboundKey(token: ActiveToken): void {
  if (token.jkt === null) return
  throw new Refusal('proof_missing', 'a DPoP-bound token may do this only with a proof', {
    headers: { 'www-authenticate': challenge('DPoP', { error: 'invalid_token' }) },
  })
}

function invalidToken(message: string): Refusal {
  return new Refusal('token_invalid', message, {
    headers: { 'www-authenticate': challenge('Bearer', { error: 'invalid_token' }) },
  })
}
