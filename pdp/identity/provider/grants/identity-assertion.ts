/** RFC 7523 section 2.1: issues a token for a person whom another provider asserts, without any page of ours. */
import { type Client, errors, type Provider, type TokenEndpointGrantContext } from 'oidc-provider'
import {
  buildTokenResponse,
  checkDpopReplay,
  checkDpopRequired,
  resolveRequestedResources,
  validateDpop,
} from 'oidc-provider/lib/helpers/grants.js'
import { PdpError } from '../../../shared/domain/errors.ts'
import { TokenError } from '../../../shared/token/errors.ts'
import type { IsSignedIn } from '../../issuer/sign-in-validity.ts'
import { type Params, paramsOf } from '../../oauth/request.ts'
import { personScopes, refusedScope, splitScope } from '../../oauth/scopes.ts'
import { BY_PASSWORD, BY_PASSWORD_AND_CODE, type Demands } from '../../people/sign-in/acr.ts'
import type { Consent } from '../../people/sign-in/consent.ts'
import type { IdentityAssertion, ReadAssertion } from '../../people/upstream-providers/assertions.ts'
import type { Mint } from '../mint.ts'

export const ASSERTION_PARAMETERS = ['assertion', 'scope', 'resource', 'organization'] as const

type Deps = {
  readonly provider: Provider
  readonly readAssertion: ReadAssertion
  readonly consent: Pick<Consent, 'choose' | 'grant'>
  readonly isSignedIn: IsSignedIn
  readonly demands: Demands
  readonly mint: Pick<Mint, 'describe'>
}
type Asserted = IdentityAssertion & { readonly user: string }

export function identityAssertionGrant(deps: Deps): (ctx: TokenEndpointGrantContext) => Promise<void> {
  const { provider, mint } = deps
  return async (ctx) => {
    const { client } = ctx.oidc
    const params = paramsOf(ctx.oidc)
    const proof = await validateDpop(provider, ctx)
    checkDpopRequired(provider, ctx, proof)
    await checkDpopReplay(provider, ctx, proof, client.clientId)
    const asserted = await assertedTo(deps, client, params.assertion)
    nameResource(params, asserted)
    const [resource, ...others] = await resolveRequestedResources(provider, ctx)
    if (resource === undefined || others.length > 0) throw new errors.InvalidTarget('exactly one resource is possible')
    const scope =
      scopeOf(client, params.scope, asserted)
        .filter((s) => resource.scopes.has(s))
        .join(' ') || undefined
    const organization = await organizationOf(deps, client, params.organization, asserted)
    // The assertion is used up only after all other checks, so that a refused request does not cost it.
    if (!(await provider.ReplayDetection.unique(asserted.issuer, asserted.jti, asserted.expiresAt)))
      throw new errors.InvalidGrant('the assertion was used before')
    const grantId = await deps.consent.grant(provider, {
      accountId: asserted.user,
      client,
      organization,
      sessionUid: null,
      params: { resource: resource.identifier(), scope: scope ?? '' },
    })
    if (grantId === undefined) throw new errors.InvalidGrant(NOT_THEIRS)

    const token = new provider.AccessToken({ accountId: asserted.user, client, grantId, gty: 'jwt_bearer' })
    token.resourceServer = resource
    token.scope = scope
    if (proof !== undefined) token.setThumbprint('jkt', proof.thumbprint)
    const { acr } = asserted.hasTwoFactors ? BY_PASSWORD_AND_CODE : BY_PASSWORD
    mint.describe(token, { acr, authTime: asserted.signedInAt })
    ctx.oidc.entity('AccessToken', token)
    const accessToken = await token.save()
    ctx.body = buildTokenResponse(provider, {
      accessToken,
      expiresIn: token.expiration,
      scope,
      tokenType: token.tokenType,
    })
  }
}

const NOT_THEIRS = 'the organization is not one that the provider, the person and the client may act in'

/** Throws InvalidGrant, with the same text for a person who is unknown, was signed out, or needs a second factor. */
async function assertedTo(deps: Deps, client: Client, assertion: string | undefined): Promise<Asserted> {
  if (assertion === undefined) throw new errors.InvalidRequest('assertion is required')
  const asserted = await deps.readAssertion(assertion).catch((err: unknown) => {
    if (!(err instanceof TokenError)) throw err
    if (err.code === 'token_invalid') throw new errors.InvalidGrant(err.message)
    throw new PdpError('store_unavailable', 'the keys of the provider are missing', { cause: err })
  })
  if (asserted.clientId !== client.clientId) throw new errors.InvalidGrant('the assertion is for another client')
  const { user, hasTwoFactors, signedInAt } = asserted
  if (user === null || !(await deps.isSignedIn(user, signedInAt)) || (deps.demands(client) && !hasTwoFactors))
    throw new errors.InvalidGrant('the person of the assertion cannot sign in here by it')
  return { ...asserted, user }
}

/** RFC 8707: the provider names the resources, the request one of them. */
function nameResource(params: Params, { resources }: Asserted): void {
  const asked = [params.resource ?? []].flat()
  if (asked.some((one) => !resources.includes(one)))
    throw new errors.InvalidTarget('the assertion is for another resource')
  const [only, ...more] = resources
  if (asked.length > 0 || only === undefined) return
  if (more.length > 0) throw new errors.InvalidTarget('resource is required: the assertion names several')
  Object.assign(params, { resource: only })
}

/** The scopes of the token, limited by assertion and registration. A request without `scope` gets all of them. */
function scopeOf(client: Client, asked: string | undefined, { scopes }: Asserted): readonly string[] {
  const registered = personScopes(splitScope(client.portcullis_scope))
  const allowed = scopes === null ? registered : registered.filter((s) => scopes.includes(s))
  if (asked === undefined) return allowed
  const wanted = [...new Set(splitScope(asked))]
  const refused =
    refusedScope({ asked: wanted, registered, kind: 'person' }) ?? wanted.find((s) => !allowed.includes(s))
  if (refused !== undefined && refused !== null)
    throw new errors.InvalidScope('neither the client nor the assertion may exceed its scope', refused)
  return wanted
}

async function organizationOf(
  { consent }: Deps,
  client: Client,
  named: string | undefined,
  { user, organizations }: Asserted,
): Promise<string | null> {
  const isTheirs = (id: string): boolean => organizations?.includes(id) !== false
  const choice = await consent.choose({ accountId: user, client, asked: named ?? null })
  if (choice.kind === 'unbound' && organizations === undefined) return null
  const from = choice.kind === 'bound' ? [choice.organization] : choice.kind === 'choose' ? choice.from : []
  const [only, ...more] = from.filter(({ id }) => isTheirs(id))
  if (more.length > 0) throw new errors.InvalidRequest('organization is required: the person is in several')
  if (only === undefined) throw new errors.InvalidGrant(NOT_THEIRS)
  return only.id
}
