/** Adds our claims to a token that oidc-provider mints, and stores the record by which it can be revoked. */
import { type Account, type Adapter, type AdapterPayload, type Client, errors } from 'oidc-provider'
import type { Actor, Pdp, Subject } from '../../shared/domain/decision.ts'
import type { JsonObject } from '../../shared/domain/json.ts'
import type { Log } from '../../shared/process/log.ts'
import { actorsIn } from '../../shared/token/claims.ts'
import type { IsSignedIn } from '../issuer/sign-in-validity.ts'
import { type Binding, type Bindings, mayActIn } from '../issuer/tokens/bindings.ts'
import type { ReadClaimSources } from '../issuer/tokens/claim-sources.ts'
import { accessTokenClaims, type ClaimSources, idTokenClaims } from '../issuer/tokens/claims.ts'
import type { Resources } from '../issuer/tokens/resources.ts'
import type { TokenHook } from '../issuer/tokens/token-hook.ts'
import { type Context, type Minted, readToken, requireClient, type Token, type TokenSource } from '../oauth/request.ts'
import { splitScope } from '../oauth/scopes.ts'

export type MintDeps = {
  readonly issuer: string
  readonly bindings: Bindings
  readonly isSignedIn: IsSignedIn
  readonly pdp: Pick<Pdp, 'ancestors' | 'decide'>
  readonly resources: Resources
  readonly readClaimSources: ReadClaimSources
  readonly hook: Pick<TokenHook, 'claims'>
  readonly adapter: (kind: string) => Adapter
  readonly log: Log
}
/** Facts about a token that our own grants know, and oidc-provider does not. */
export type Provenance = {
  /** The organization of a client_credentials token, which has no grant. */
  readonly organization?: string | null
  readonly acr?: string | null
  readonly authTime?: number | null
  /** The `act` claim (RFC 8693 section 4.1). */
  readonly act?: JsonObject
}
export type Mint = {
  /** Called before the token is minted. */
  describe(token: Token, provenance: Provenance): void
  /** The setting extraTokenClaims of oidc-provider. Its own claims win: iss, sub, aud, exp, iat, jti, scope cannot be replaced. */
  accessTokenClaims(token: Token): Promise<JsonObject>
  /** The setting formats.customizers.jwt of oidc-provider, which waits for it: sees the final payload before it is signed. */
  record(ctx: Context, token: Token, payload: { readonly iat: number; readonly exp: number }): Promise<void>
  /** Gets the text of each access token, whose hash becomes the ID token's at_hash. */
  remember(token: Token, value: string): void
  /**
   * oidc-provider's findAccount. Undefined: the person was deleted or signed out, or the client may no longer use the grant. `source`: what
   * is redeemed; without one, the browser's session counts.
   */
  findAccount(ctx: Context, id: string, source?: TokenSource): Promise<Account | undefined>
}

export function createMint(deps: MintDeps): Mint {
  const { log } = deps
  // The origins of tokens: each is dropped with its token.
  const provenances = new WeakMap<Token, Provenance>()
  const claimSourcesOf = new WeakMap<Token, ClaimSources>()
  const values = new WeakMap<Token, string>()

  return {
    describe: (token, provenance) => void provenances.set(token, provenance),
    async accessTokenClaims(minting) {
      const provenance = provenances.get(minting) ?? {}
      const token = readToken(minting)
      const [binding, owner] = await Promise.all([
        bindingOf(deps.bindings, token),
        token.aud === deps.issuer ? null : deps.resources.owner(token.aud),
      ])
      const organization = binding === null ? (provenance.organization ?? null) : binding.organization
      const isService = token.accountId === undefined
      const subject = isService
        ? ({ type: 'service', id: token.clientId } as const)
        : ({ type: 'user', id: token.accountId ?? '' } as const)
      const [sources, added] = await Promise.all([
        deps.readClaimSources({ subject, organization, app: owner ?? token.client.portcullis_app }),
        deps.hook.claims({
          jti: token.jti,
          client_id: token.clientId,
          sub: subject.id,
          subject_type: subject.type,
          aud: token.aud,
          org: organization,
          scope: token.scope ?? '',
          grant_type: isService ? 'client_credentials' : (token.gty ?? ''),
        }),
      ])
      claimSourcesOf.set(minting, sources)
      const actors = actorsIn(provenance.act)
      const scopes = splitScope(token.scope)
      const held = await delegatedPermissions(deps.pdp, {
        ...{ sources, subject, organization, actors, scopes, audience: token.aud },
      })
      const { claims, leftOut } = accessTokenClaims(held, added)
      for (const what of leftOut) log.warn({ event: `${what}_left_out`, organization, jti: token.jti })
      return provenance.act === undefined ? claims : { ...claims, act: provenance.act }
    },
    async record(ctx, minting, times) {
      const token = readToken(minting)
      const record = recordOf({ ctx, token, times, provenance: provenances.get(minting) ?? {} })
      await deps.adapter(token.kind).upsert(token.jti, record, times.exp - times.iat)
    },
    remember: (token, value) => void values.set(token, value),
    async findAccount(ctx, id, source) {
      const since = source === undefined ? ctx.oidc.session?.authTime() : source.authTime
      if (!(await deps.isSignedIn(id, since))) return undefined
      if (source?.grantId !== undefined && !(await mayStillUse(deps, source.grantId, requireClient(ctx.oidc))))
        return undefined
      return {
        accountId: id,
        // Claims for ID tokens only, since oidc-provider's UserInfo is off.
        claims: (_use: string, scope: string) => {
          const token = ctx.oidc.entities.AccessToken
          const sources = token === undefined ? undefined : claimSourcesOf.get(token)
          if (token === undefined || sources === undefined) throw new Error('an ID token without an access token')
          return { sub: id, at_hash: values.get(token), ...idTokenClaims(sources, new Set(splitScope(scope))) }
        },
      }
    },
  }
}

/** The permissions as a decision would allow them. If a client acts for a person and the app demands it: those that both have. */
async function delegatedPermissions(
  pdp: Pick<Pdp, 'decide'>,
  of: {
    readonly sources: ClaimSources
    readonly subject: Subject
    readonly organization: string | null
    readonly actors: readonly Actor[]
    readonly scopes: readonly string[]
    readonly audience: string
  },
): Promise<ClaimSources> {
  const { sources, subject, organization, actors, scopes, audience } = of
  const { permissions } = sources.held
  if (actors.length === 0 || organization === null || permissions.length === 0) return sources
  const resource = `organization:${organization}`
  const asked = permissions.map((relation) => ({ relation, resource }))
  const question = { organization, subject, actors, scopes, audiences: [audience], permissions: asked }
  const decision = await pdp.decide(question)
  const held = permissions.filter((_, at) => decision.permissions[at]?.allowed === true)
  return { ...sources, held: { ...sources.held, permissions: held } }
}

async function bindingOf(bindings: Bindings, token: Minted): Promise<Binding | null> {
  if (token.grantId === undefined) return null
  const binding = await bindings.find(token.grantId)
  if (binding === null) throw new errors.InvalidGrant('the grant is bound to nothing')
  const isFirst = token.gty?.endsWith('refresh_token') !== true
  if (isFirst && token.jkt !== undefined && !binding.senderConstrained) await bindings.constrain(token.grantId)
  return binding
}

/**
 * True if the organization still exists and the client may act in it. An ended membership needs no check: management ends its grants, and a
 * refresh is refused (see `rotateRefreshToken`).
 */
async function mayStillUse(deps: MintDeps, grantId: string, client: Client): Promise<boolean> {
  const binding = await deps.bindings.find(grantId)
  return binding !== null && (await mayActIn(deps.pdp, client.portcullis_organization, binding.organization))
}

/** The record that revocation and introspection need; acr and auth_time are here because they are not in the token. */
function recordOf(minted: {
  ctx: Context
  token: Minted
  times: { iat: number; exp: number }
  provenance: Provenance
}): AdapterPayload {
  const { ctx, token, times, provenance } = minted
  const { RefreshToken, AuthorizationCode, DeviceCode, BackchannelAuthenticationRequest } = ctx.oidc.entities
  const source = RefreshToken ?? AuthorizationCode ?? DeviceCode ?? BackchannelAuthenticationRequest
  return {
    kind: token.kind,
    jti: token.jti,
    iat: times.iat,
    exp: times.exp,
    clientId: token.clientId,
    clientEpoch: token.client.portcullis_token_epoch,
    accountId: token.accountId,
    grantId: token.grantId,
    sessionUid: token.sessionUid,
    aud: token.aud,
    scope: token.scope,
    jkt: token.jkt,
    gty: token.gty,
    acr: source?.acr ?? provenance.acr ?? undefined,
    authTime: source?.authTime ?? provenance.authTime ?? undefined,
  }
}
