/** The client_credentials grant (RFC 6749 section 4.4) with DPoP, one resource, and an organization. */
import { type Client, errors, type Provider, type TokenEndpointGrantContext } from 'oidc-provider'
import {
  buildTokenResponse,
  checkDpopReplay,
  checkDpopRequired,
  resolveRequestedResources,
  validateDpop,
} from 'oidc-provider/lib/helpers/grants.js'
import type { Pdp } from '../../../shared/domain/decision.ts'
import { isId } from '../../../shared/domain/names.ts'
import { paramsOf } from '../../oauth/request.ts'
import { refusedScope, splitScope } from '../../oauth/scopes.ts'
import type { Mint } from '../mint.ts'

export const PARAMETERS = ['scope', 'resource', 'organization'] as const

export function clientCredentialsGrant(deps: {
  readonly provider: Provider
  readonly pdp: Pick<Pdp, 'ancestors'>
  readonly mint: Pick<Mint, 'describe'>
}): (ctx: TokenEndpointGrantContext) => Promise<void> {
  const { provider, pdp, mint } = deps
  return async (ctx) => {
    const { client } = ctx.oidc
    const params = paramsOf(ctx.oidc)
    const proof = await validateDpop(provider, ctx)
    const [resource, ...others] = await resolveRequestedResources(provider, ctx)
    if (resource === undefined || others.length > 0) throw new errors.InvalidTarget('exactly one resource is possible')
    const scope = grantedScope(client, params.scope, resource.scopes)
    const organization = await organizationOf(pdp, client, params.organization)

    checkDpopRequired(provider, ctx, proof)
    await checkDpopReplay(provider, ctx, proof, client.clientId)
    const token = new provider.ClientCredentials({ client, scope })
    token.resourceServer = resource
    if (proof !== undefined) token.setThumbprint('jkt', proof.thumbprint)
    mint.describe(token, { organization })
    ctx.oidc.entity('ClientCredentials', token)
    const accessToken = await token.save()
    ctx.body = buildTokenResponse(provider, {
      accessToken,
      expiresIn: token.expiration,
      scope,
      tokenType: token.tokenType,
    })
  }
}

/** Throws for a scope that the client is not registered for; drops one that the resource does not have (RFC 6749 section 3.3). */
function grantedScope(client: Client, scope: string | undefined, atResource: ReadonlySet<string>): string | undefined {
  const asked = [...new Set(splitScope(scope))]
  const refused = refusedScope({ asked, registered: splitScope(client.portcullis_scope), kind: 'service' })
  if (refused !== null) throw new errors.InvalidScope('the client may not ask for this scope', refused)
  return asked.filter((s) => atResource.has(s)).join(' ') || undefined
}

/** The organization: the client's own or one below it. A client of the whole environment may name any, or none. */
async function organizationOf(
  pdp: Pick<Pdp, 'ancestors'>,
  client: Client,
  asked: string | undefined,
): Promise<string | null> {
  const own = client.portcullis_organization
  if (asked === undefined || asked === own) return own
  const ancestors = isId(asked) ? await pdp.ancestors(asked) : null
  // Unknown and foreign organizations get the same message, so that it reveals nothing.
  if (ancestors === null || (own !== null && !ancestors.includes(own))) {
    throw new errors.InvalidRequest('organization is not one that the client may act in')
  }
  return asked
}
