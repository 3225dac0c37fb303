/** RFC 8693: exchanges a person's access token for one with another resource, less scope, or an actor. */
import { type Client, errors, type Provider, type TokenEndpointGrantContext } from 'oidc-provider'
import {
  buildTokenResponse,
  checkDpopReplay,
  checkDpopRequired,
  resolveRequestedResources,
  validateDpop,
} from 'oidc-provider/lib/helpers/grants.js'
import type { Pdp } from '../../../shared/domain/decision.ts'
import { isJsonObject, type JsonObject } from '../../../shared/domain/json.ts'
import { actorsIn } from '../../../shared/token/claims.ts'
import { type Bindings, mayActIn, mayKnow } from '../../issuer/tokens/bindings.ts'
import type { Delegation, Delegations } from '../../issuer/tokens/delegations.ts'
import type { Introspection } from '../../issuer/tokens/introspection.ts'
import type { TokenRecord } from '../../issuer/tokens/token-state.ts'
import { PATHS, urlOf } from '../../oauth/paths.ts'
import { type Params, paramsOf } from '../../oauth/request.ts'
import { refusedScope, splitScope } from '../../oauth/scopes.ts'
import type { Consent } from '../../people/sign-in/consent.ts'
import type { Mint } from '../mint.ts'
import { type ExchangePolicyDeps, requireExchange } from './exchange-policy.ts'

const ACCESS_TOKEN = 'urn:ietf:params:oauth:token-type:access_token'
const JWT = 'urn:ietf:params:oauth:token-type:jwt'
const NOT_THEIRS = 'organization is not one that the person and the client may act in'
const TYPES: ReadonlySet<string | undefined> = new Set([ACCESS_TOKEN, JWT])
/** How often a token may be exchanged in a row: each exchange adds a grant that the new token depends on. */
const CHAIN_MAX = 8

export const EXCHANGE_PARAMETERS = [
  'subject_token',
  'subject_token_type',
  'actor_token',
  'actor_token_type',
  'requested_token_type',
  'resource',
  'audience',
  'scope',
  'organization',
] as const

export type ExchangeDeps = ExchangePolicyDeps & {
  readonly issuer: string
  readonly provider: Provider
  readonly introspection: Pick<Introspection, 'record' | 'isRevoked'>
  readonly bindings: Bindings
  readonly consent: Consent
  readonly pdp: Pick<Pdp, 'ancestors'>
  readonly delegations: Pick<Delegations, 'find'>
  readonly mint: Mint
  readonly clock: () => number
}

export function tokenExchangeGrant(deps: ExchangeDeps): (ctx: TokenEndpointGrantContext) => Promise<void> {
  const { provider, mint } = deps
  return async (ctx) => {
    const { client } = ctx.oidc
    const params = paramsOf(ctx.oidc)
    checkForm(params)
    const proof = await validateDpop(provider, ctx)
    checkDpopRequired(provider, ctx, proof)
    await checkDpopReplay(provider, ctx, proof, client.clientId)
    const subject = await subjectOf(deps, client, params.subject_token ?? '')
    requireKey('subject_token', subject, proof)
    const actor = params.actor_token === undefined ? null : await live(deps, client, params.actor_token)
    if (params.actor_token !== undefined && actor === null) throw new errors.InvalidRequest('actor_token is not active')
    if (actor !== null) requireKey('actor_token', actor, proof)
    requireOneTarget(params)
    const [resource, ...others] = await resolveRequestedResources(provider, ctx)
    if (resource === undefined || others.length > 0) throw new errors.InvalidTarget('exactly one resource is possible')
    await requireExchange(deps, { client, subject, resource: resource.identifier() })
    const wanted = narrowedScope({ client, subject, asked: params.scope, atResource: resource.scopes })
    const organization = await organizationOf(deps, { client, subject, asked: params.organization })
    const acting = actingFor(subject, { client: client.clientId, actor: actor?.subject.id ?? null })
    const given = await delegationsOf(deps, { subject, organization, acting, audience: resource.identifier() }, wanted)
    const scope = wanted.filter((s) => given.every(({ scopes }) => scopes?.includes(s) ?? true)).join(' ') || undefined
    const grantId = await childGrant(deps, { client, subject, organization, resource: resource.identifier(), scope })

    const token = new provider.AccessToken({ accountId: subject.subject.id, client, grantId, gty: 'token_exchange' })
    token.resourceServer = resource
    token.scope = scope
    // The new token ends with its parent, so that repeated exchanges gain no time, and with the delegation.
    const endsAtMs = Math.min(subject.expiresAtMs, ...given.flatMap(({ expiresAtMs }) => expiresAtMs ?? []))
    token.expiresIn = Math.max(1, Math.min(token.expiration, Math.floor((endsAtMs - deps.clock()) / 1_000)))
    if (proof !== undefined) token.setThumbprint('jkt', proof.thumbprint)
    mint.describe(token, {
      acr: subject.acr,
      authTime: subject.authTime,
      ...acting,
    })
    ctx.oidc.entity('AccessToken', token)
    const accessToken = await token.save()
    // A revocation after this check also revokes the new token. One just before it would not, so the token is checked once more.
    if (await deps.introspection.isRevoked(subject)) throw new errors.InvalidRequest('subject_token is not active')
    ctx.body = buildTokenResponse(provider, {
      accessToken,
      expiresIn: token.expiration,
      scope,
      tokenType: token.tokenType,
      issuedTokenType: ACCESS_TOKEN,
    })
  }
}

/** Requires the proof of the key if the token is bound to one (RFC 9449 section 7.1). */
function requireKey(name: string, { jkt }: TokenRecord, proof: { readonly thumbprint: string } | undefined): void {
  if (jkt !== null && jkt !== proof?.thumbprint) {
    throw new errors.InvalidRequest(`the ${name} is bound to a key, and the request has no DPoP proof of it`)
  }
}

function checkForm(params: Params): void {
  if (params.subject_token === undefined) throw new errors.InvalidRequest('subject_token is missing')
  if (!TYPES.has(params.subject_token_type)) throw new errors.InvalidRequest('subject_token_type is not supported')
  if ((params.actor_token === undefined) !== (params.actor_token_type === undefined)) {
    throw new errors.InvalidRequest('actor_token and actor_token_type go together')
  }
  if (params.actor_token_type !== undefined && !TYPES.has(params.actor_token_type)) {
    throw new errors.InvalidRequest('actor_token_type is not supported')
  }
  if (params.requested_token_type !== undefined && !TYPES.has(params.requested_token_type)) {
    throw new errors.InvalidRequest('requested_token_type is not supported')
  }
}

/** RFC 8693 section 2.1: a client names the target by `resource` or by `audience`. A resource is its own audience here. */
function requireOneTarget(params: Params): void {
  const [target, ...others] = new Set([params.resource ?? [], params.audience ?? []].flat())
  if (others.length > 0) throw new errors.InvalidTarget('resource and audience name several targets')
  if (target !== undefined) Object.assign(params, { resource: target })
}

/** The token's record; null if it is not valid, also for a token of another tenant, which introspection calls inactive. */
async function live(deps: ExchangeDeps, client: Client, token: string): Promise<TokenRecord | null> {
  const record = await deps.introspection.record(token)
  if (record === null || !(await mayKnow(deps.pdp, client, record))) return null
  return (await deps.introspection.isRevoked(record)) ? null : record
}

async function subjectOf(deps: ExchangeDeps, client: Client, token: string): Promise<TokenRecord> {
  const record = await live(deps, client, token)
  // A service's token cannot be exchanged: that would only hide which client it was issued to.
  if (record === null || record.grantId === null) throw new errors.InvalidRequest('subject_token is not active')
  if (record.grants.length > CHAIN_MAX) throw new errors.InvalidRequest('the subject_token was exchanged too often')
  return record
}

function narrowedScope(request: {
  client: Client
  subject: TokenRecord
  asked: string | undefined
  atResource: ReadonlySet<string>
}): readonly string[] {
  const { client, subject, asked, atResource } = request
  const wanted = asked === undefined ? [...subject.scopes] : [...new Set(splitScope(asked))]
  const excess = wanted.find((s) => !subject.scopes.has(s))
  if (excess !== undefined) throw new errors.InvalidScope('the scope exceeds that of the subject_token', excess)
  const registered = splitScope(client.portcullis_scope)
  const refused = asked === undefined ? null : refusedScope({ asked: wanted, registered, kind: 'person' })
  if (refused !== null) throw new errors.InvalidScope('the client may not ask for this scope', refused)
  return wanted.filter((s) => atResource.has(s))
}

/** The organization of the new token: the subject token's, or another one of the person's in which the client may act. */
async function organizationOf(
  deps: ExchangeDeps,
  request: { client: Client; subject: TokenRecord; asked: string | undefined },
): Promise<string | null> {
  const { client, subject, asked } = request
  const own = client.portcullis_organization
  if (asked === undefined || asked === subject.organization) {
    if (await mayActIn(deps.pdp, own, subject.organization)) return subject.organization
  } else {
    const choice = await deps.consent.choose({ accountId: subject.subject.id, client, asked })
    if (choice.kind === 'bound') return choice.organization.id
  }
  throw new errors.InvalidRequest(NOT_THEIRS)
}

async function childGrant(
  { provider, bindings }: ExchangeDeps,
  child: {
    client: Client
    subject: TokenRecord
    organization: string | null
    resource: string
    scope: string | undefined
  },
): Promise<string> {
  const { client, subject, organization, scope } = child
  const grant = new provider.Grant({ accountId: subject.subject.id, clientId: client.clientId })
  if (scope !== undefined) grant.addResourceScope(child.resource, scope)
  const grantId = await grant.save()
  const binding = {
    grantId,
    organization,
    user: subject.subject.id,
    client: client.clientId,
    sessionUid: subject.sessionUid,
    parentGrantId: subject.grantId,
    offline: subject.sessionUid === null,
  }
  // Within the parent's organization no membership is needed: the grant ends with its parent.
  if (organization === subject.organization) await bindings.bind(binding)
  else if (!(await bindings.bindMember(binding))) throw new errors.InvalidRequest(NOT_THEIRS)
  return grantId
}

/**
 * The `act` claim of the new token (RFC 8693 section 4.1): earlier actors are nested, the outermost is the current one. The client
 * is an actor unless the subject_token was issued to it, also if it sends no `actor_token` or another client's.
 */
function actingFor(
  subject: TokenRecord,
  { client, actor }: { readonly client: string; readonly actor: string | null },
): { act?: JsonObject } {
  if (actor !== null && actor !== client) return { act: { sub: actor, ...actingFor(subject, { client, actor: null }) } }
  return actor === null && client === subject.clientId
    ? inherited(subject)
    : { act: { sub: client, ...inherited(subject) } }
}

/**
 * The delegations of the new token's actors; none if the app requires none. Throws for a missing one, without which the token would be
 * useless; the error tells where the person can grant it.
 */
async function delegationsOf(
  { issuer, delegations, resources }: ExchangeDeps,
  of: {
    readonly subject: TokenRecord
    readonly organization: string | null
    readonly acting: { readonly act?: JsonObject }
    readonly audience: string
  },
  wanted: readonly string[],
): Promise<readonly Delegation[]> {
  const actors = actorsIn(of.acting.act)
  const { organization } = of
  if (actors.length === 0 || organization === null || !(await resources.needsDelegation(of.audience))) return []
  const user = of.subject.subject.id
  return Promise.all(
    actors.map(async ({ id: client }) => {
      const found = await delegations.find({ organization, client, user })
      if (found !== null) return found
      const query = new URLSearchParams({ client_id: client, organization, scope: wanted.join(' ') })
      const page = `${urlOf(issuer, PATHS.accountDelegations)}?${query}`
      throw new errors.InvalidRequest(
        `the person has not let the client ${client} act in ${organization}: they can at ${page}`,
      )
    }),
  )
}

function inherited({ act }: TokenRecord): { act?: JsonObject } {
  return isJsonObject(act) ? { act } : {}
}
