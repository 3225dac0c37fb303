/** The scope offline_access of a person's request, which oidc-provider drops silently when nothing asks for consent. */
import { type Client, errors } from 'oidc-provider'
import type { Context } from './request.ts'
import { OFFLINE_ACCESS, splitScope } from './scopes.ts'

/**
 * OpenID Connect Core section 11 lets another condition take the place of `prompt=consent`: the registration of the client,
 * or the page that asks wherever the registration is not enough (`mustAsk` in sign-in/consent.ts). Throws InvalidScope for a
 * client that cannot use a refresh token.
 */
export function keepOfflineAccess(ctx: Context, client: Client): void {
  const { params } = ctx.oidc
  if (params === undefined || !splitScope(askedScope(ctx)).includes(OFFLINE_ACCESS)) return
  if (!client.grantTypeAllowed('refresh_token'))
    throw new errors.InvalidScope('the client is not registered for the grant type refresh_token', OFFLINE_ACCESS)
  const kept = typeof params.scope === 'string' ? splitScope(params.scope) : []
  params.scope = [...new Set([...kept, OFFLINE_ACCESS])].join(' ')
}

/** As the client sent it: in the request itself, or in the one that it pushed. */
function askedScope({ oidc, query }: Context): string {
  const pushed = oidc.entities.PushedAuthorizationRequest
  const scope = pushed === undefined ? (oidc.body ?? query).scope : pushedScope(pushed.request)
  return typeof scope === 'string' ? scope : ''
}

/** oidc-provider keeps a pushed request as a JWT. */
function pushedScope(request: string): unknown {
  const claims: unknown = JSON.parse(Buffer.from(request.split('.')[1] ?? '', 'base64url').toString() || 'null')
  return typeof claims === 'object' && claims !== null && 'scope' in claims ? claims.scope : undefined
}
