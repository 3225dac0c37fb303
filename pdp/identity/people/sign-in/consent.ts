/** Decides to which organization a sign-in is bound and whether the person must agree, and makes the grant. */
import type { Client, Grant, Provider } from 'oidc-provider'
import type { Directory } from '../../../engine/store/directory.ts'
import type { Pdp } from '../../../shared/domain/decision.ts'
import type { Organization } from '../../../shared/domain/organization.ts'
import type { Choice } from '../../html/consent-page.ts'
import { type Binding, type Bindings, mayActIn } from '../../issuer/tokens/bindings.ts'
import { type Context, type Params, paramsOf, requireClient, requireSession } from '../../oauth/request.ts'
import { isOpenidScope, OFFLINE_ACCESS, scopesAt, splitScope } from '../../oauth/scopes.ts'
import { CONSOLE_CLIENT } from './console-sessions.ts'

const DEVICE_ROUTES: ReadonlySet<string> = new Set(['code_verification', 'device_resume'])

export type GrantRequest = {
  readonly accountId: string
  readonly client: Client
  readonly params: Params
  readonly organization: string | null
  readonly sessionUid: string | null
}
export type Consent = {
  /** oidc-provider's setting loadExistingGrant: the grant to continue with; undefined: the person must be asked. */
  existing(ctx: Context): Promise<Grant | undefined>
  choose(request: { accountId: string; client: Client; asked: string | null }): Promise<Choice>
  /**
   * Stores a grant of all that the client asked for and may have, and returns its id; undefined: the person is no longer an active member
   * of the organization.
   */
  grant(provider: Provider, request: GrantRequest): Promise<string | undefined>
}
export type ConsentDeps = {
  readonly issuer: string
  readonly directory: Pick<Directory, 'activeMemberships'>
  readonly pdp: Pick<Pdp, 'ancestors'>
  readonly bindings: Bindings
  /** Stores a client that has only a document, no registration. */
  readonly register: ((client: string) => Promise<void>) | undefined
}

/** `asked`: an id from the client or the person. `eligible`: organizations of active memberships that this client may use. */
export function chooseOrganization(request: {
  readonly asked: string | null
  readonly eligible: readonly Organization[]
  readonly clientOrganization: string | null
}): Choice {
  const { asked, eligible, clientOrganization } = request
  if (asked !== null) {
    const organization = eligible.find((o) => o.id === asked)
    return organization === undefined ? { kind: 'refused' } : { kind: 'bound', organization }
  }
  const [only, ...more] = eligible
  if (only === undefined) return clientOrganization === null ? { kind: 'unbound' } : { kind: 'refused' }
  return more.length === 0 ? { kind: 'bound', organization: only } : { kind: 'choose', from: eligible }
}

export function createConsent(deps: ConsentDeps): Consent {
  const { issuer, bindings } = deps

  async function choose(request: { accountId: string; client: Client; asked: string | null }): Promise<Choice> {
    const { asked, client } = request
    // A person's rights in the console do not depend on an organization that was chosen before.
    if (client.clientId === CONSOLE_CLIENT) return { kind: 'unbound' }
    const clientOrganization = client.portcullis_organization
    const eligible = await eligibleOrganizations(deps, request.accountId, clientOrganization)
    return chooseOrganization({ asked, eligible, clientOrganization })
  }

  async function grant(provider: Provider, request: GrantRequest): Promise<string | undefined> {
    const { accountId, client, params, organization, sessionUid } = request
    const granted = new provider.Grant({ accountId, clientId: client.clientId })
    const { identity, byResource } = wantedScopes(issuer, client, params)
    if (identity.length > 0) granted.addOIDCScope(identity.join(' '))
    for (const [resource, scopes] of byResource) {
      if (scopes.length > 0) granted.addResourceScope(resource, scopes.join(' '))
    }
    if (client.portcullis_document) await deps.register?.(client.clientId)
    const grantId = await granted.save()
    // A grant must never lack its binding: without one, no token is minted or accepted.
    const offline = identity.includes(OFFLINE_ACCESS)
    const user = accountId
    const binding = { grantId, organization, user, client: client.clientId, sessionUid, parentGrantId: null, offline }
    return (await bindings.bindMember(binding)) ? grantId : undefined
  }

  async function existing(ctx: Context): Promise<Grant | undefined> {
    const { provider, account, result } = ctx.oidc
    if (account === undefined) return undefined
    const [client, session, params] = [requireClient(ctx.oidc), requireSession(ctx.oidc), paramsOf(ctx.oidc)]
    const consented = result?.consent?.grantId
    const held = await heldGrant(bindings, ctx, consented ?? session.grantIdFor(client.clientId))
    if (consented !== undefined) return held?.grant
    const { accountId } = account
    let choice = await choose({ accountId, client, asked: params.organization ?? held?.binding.organization ?? null })
    // The person has left the former sign-in's organization, and the request names no other.
    if (choice.kind === 'refused' && params.organization === undefined && held !== null) {
      choice = await choose({ accountId, client, asked: null })
    }
    const isAgreed = held !== null && isBoundAs(held.binding, choice) && covers(issuer, ctx, held.grant)
    // A new grant is made although the former one is agreed: each grant can then be revoked alone.
    if (isAgreed && isInteractionDue(ctx)) return held.grant
    if (choice.kind === 'choose' || choice.kind === 'refused' || (mustAsk(ctx) && !isAgreed)) return undefined
    const organization = choice.kind === 'bound' ? choice.organization.id : null
    const sessionUid = session.uid
    const grantId = await grant(provider, { accountId, client, params, organization, sessionUid })
    return grantId === undefined ? undefined : provider.Grant.find(grantId)
  }

  return { existing, choose, grant }
}

/**
 * True for clients that need the person's consent: a tenant's, one without registration, and a native one, which others can imitate (RFC
 * 8252 section 8.6). For others, the operator's registration is consent.
 */
function mustAsk({ oidc }: Context): boolean {
  const { prompts, result } = oidc
  const client = requireClient(oidc)
  const loginPending = prompts.has('login') && result?.login === undefined
  return (
    loginPending ||
    // RFC 8628 section 5.4: an attacker may have started the sign-in on a device, and sent its code to this person.
    DEVICE_ROUTES.has(oidc.route) ||
    prompts.has('consent') ||
    client.applicationType === 'native' ||
    client.portcullis_document ||
    client.portcullis_organization !== null
  )
}

/** True if this request ends at a page: the question then comes with a later request. */
function isInteractionDue({ oidc }: Context): boolean {
  const { prompts, result } = oidc
  return (
    (prompts.has('login') && result?.login === undefined) || prompts.has('consent') || DEVICE_ROUTES.has(oidc.route)
  )
}

async function eligibleOrganizations(
  { directory, pdp }: ConsentDeps,
  accountId: string,
  clientOrganization: string | null,
): Promise<readonly Organization[]> {
  const organizations = (await directory.activeMemberships(accountId)).map((m) => m.organization)
  if (clientOrganization === null) return organizations
  const eligible: Organization[] = []
  for (const organization of organizations) {
    if (await mayActIn(pdp, clientOrganization, organization.id)) eligible.push(organization)
  }
  return eligible
}

async function heldGrant(
  bindings: Bindings,
  { oidc }: Context,
  grantId: string | undefined,
): Promise<{ readonly grant: Grant; readonly binding: Binding } | null> {
  if (grantId === undefined) return null
  const [grant, binding] = await Promise.all([oidc.provider.Grant.find(grantId), bindings.find(grantId)])
  if (grant === undefined || binding === null) return null
  const isTheirs = grant.accountId === oidc.account?.accountId && grant.clientId === oidc.client?.clientId
  return isTheirs ? { grant, binding } : null
}

function isBoundAs(binding: Binding, choice: Choice): boolean {
  if (choice.kind === 'bound') return binding.organization === choice.organization.id
  return choice.kind === 'unbound' && binding.organization === null
}

function wantedScopes(issuer: string, client: Client, params: Params) {
  const registered = splitScope(client.portcullis_scope)
  const asked = splitScope(params.scope)
  const resources = params.resource === undefined ? [issuer] : [params.resource].flat()
  const byResource = resources.map((resource): [string, readonly string[]] => [
    resource,
    scopesAt({ isIssuer: resource === issuer }, registered).filter((s) => asked.includes(s)),
  ])
  return { identity: asked.filter((s) => isOpenidScope(s) && registered.includes(s)), byResource }
}

function covers(issuer: string, { oidc }: Context, grant: Grant): boolean {
  const { identity, byResource } = wantedScopes(issuer, requireClient(oidc), paramsOf(oidc))
  const has = (granted: string, wanted: readonly string[]) => wanted.every((s) => splitScope(granted).includes(s))
  return (
    has(grant.getOIDCScope(), identity) &&
    byResource.every(([resource, scopes]) => has(grant.getResourceScope(resource), scopes))
  )
}

/** The organization that the person chose; undefined: none, or one that was not offered. */
export function organizationFrom(choice: Choice, form: URLSearchParams): string | null | undefined {
  switch (choice.kind) {
    case 'bound':
      return choice.organization.id
    case 'unbound':
      return null
    case 'choose':
      return choice.from.find(({ id }) => id === form.get('organization'))?.id
    case 'refused':
      return undefined
  }
}
