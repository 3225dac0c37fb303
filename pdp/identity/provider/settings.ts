/** Every setting of oidc-provider that differs from its default. */
import { type Account, type Client, type Configuration, errors, type JWTStructured } from 'oidc-provider'
import { isId } from '../../shared/domain/names.ts'
import { LANGUAGES } from '../html/words/words.ts'
import { ACCESS_TOKEN_SECONDS, DAY_SECONDS, SESSION_SECONDS } from '../oauth/durations.ts'
import { mountOf, PATHS, urlOf } from '../oauth/paths.ts'
import { type Context, paramsOf, requireClient, type Token, type TokenSource } from '../oauth/request.ts'
import {
  IDENTITY_SCOPES,
  OFFLINE_ACCESS,
  personScopes,
  refusedScope,
  SERVICE_SCOPES,
  scopesAt,
  splitScope,
} from '../oauth/scopes.ts'
import { ACR_VALUES, isAttainable } from '../people/sign-in/acr.ts'
import { isEmail } from '../people/sign-in/sign-in.ts'
import { signInPolicy } from '../people/sign-in/sign-in-policy.ts'
import { CLIENT_AUTH_METHODS, CLIENT_SIGNING_ALGORITHMS, OWN_MEMBERS } from './client-metadata.ts'
import type { ProviderDeps } from './deps.ts'
import { assertionRule } from './jwt-kinds.ts'
import type { Mint } from './mint.ts'
import type { ProviderPages } from './pages.ts'

const INTERACTION_SECONDS = 900
const CODE_SECONDS = 60
const DEVICE_CODE_SECONDS = 600
const BACKCHANNEL_SECONDS = 300
const BACKCHANNEL_SECONDS_MAX = 600
const PUSHED_SECONDS = 60
const REFRESH_SECONDS = 30 * DAY_SECONDS
// The life of an offline grant, at which its tokens end, too: longer than that of a refresh token that is used from time to time.
const GRANT_SECONDS = DAY_SECONDS
const OFFLINE_GRANT_SECONDS = 365 * DAY_SECONDS
const CLOCK_TOLERANCE_SECONDS = 5
/** A value for "no user", which can be no id. */
const NOBODY = ''
const BINDING_MESSAGE = /^[\x20-\x7e]{1,64}$/

type Features = NonNullable<Configuration['features']>
type Own = { readonly mint: Mint; readonly pages: Pick<ProviderPages, 'features' | 'renderError'> }
const ROUTES = {
  authorization: PATHS.authorize,
  pushed_authorization_request: PATHS.pushed,
  token: PATHS.token,
  device_authorization: PATHS.deviceAuthorization,
  code_verification: PATHS.device,
  backchannel_authentication: PATHS.backchannel,
  introspection: PATHS.introspect,
  revocation: PATHS.revoke,
  jwks: PATHS.jwks,
  end_session: PATHS.logout,
}
/** The claims in `claims_supported`. tokens/claims.ts decides which of them a token or UserInfo has. */
const CLAIMS = {
  ...Object.fromEntries(['iss', 'aud', 'exp', 'iat', 'nonce'].map((name) => [name, null])),
  openid: [
    ...['sub', 'acr', 'amr', 'auth_time', 'at_hash', 'org', 'org_name', 'org_role'],
    ...['roles', 'permissions'],
  ],
  groups: ['groups'],
  organizations: ['organizations'],
  email: ['email', 'email_verified'],
  profile: ['name'],
}

export function providerSettings(deps: ProviderDeps, own: Own): Configuration {
  return { ...protocol(deps, own), ...issuance(deps, own), ...people(deps, own.mint) }
}

function protocol(
  { issuer, clock, keys, masterKeys, secondFactor, demands }: ProviderDeps,
  { pages }: Own,
): Configuration {
  return {
    jwks: { keys: keys.privateJwks },
    scopes: [...IDENTITY_SCOPES, OFFLINE_ACCESS, ...SERVICE_SCOPES],
    responseTypes: ['code'],
    pkce: { required: () => true },
    allowOmittingSingleRegisteredRedirectUri: false,
    clientAuthMethods: [...CLIENT_AUTH_METHODS],
    enabledJWA: {
      idTokenSigningAlgValues: ['RS256'],
      clientAuthSigningAlgValues: [...CLIENT_SIGNING_ALGORITHMS],
      dPoPSigningAlgValues: [...CLIENT_SIGNING_ALGORITHMS],
    },
    clockTolerance: CLOCK_TOLERANCE_SECONDS,
    assertJwtClientAuthClaimsAndHeader: assertionRule({ issuer, clock }),
    acrValues: [...ACR_VALUES],
    claims: CLAIMS,
    discovery: {
      userinfo_endpoint: urlOf(issuer, PATHS.userinfo),
      protected_resources: [issuer],
      ui_locales_supported: [...LANGUAGES.keys()],
      prompt_values_supported: ['none', 'login', 'consent'],
    },
    extraClientMetadata: { properties: [...OWN_MEMBERS] },
    extraParams: {
      organization: (_ctx: Context, value: string | undefined) => {
        if (value !== undefined && !isId(value)) throw new errors.InvalidRequest('organization is not an id')
      },
      scope: (ctx: Context, value: string | undefined, client: Client) => {
        checkPersonScope(askedScope(ctx) === '' ? defaultScope(ctx, client) : value, client)
        keepOfflineAccess(ctx, client)
      },
    },
    routes: ROUTES,
    cookies: {
      names: { session: sessionCookie(issuer), interaction: 'portcullis_interaction', resume: 'portcullis_resume' },
      keys: masterKeys.derive('cookie-signature').map((key) => key.toString('base64url')),
      long: { httpOnly: true, sameSite: 'lax' },
      short: { httpOnly: true, sameSite: 'lax' },
    },
    interactions: {
      policy: signInPolicy({ secondFactor, demands }),
      url: (_ctx: Context, i: { uid: string }) => `${mountOf(issuer)}${PATHS.interaction}/${i.uid}`,
    },
    renderError: pages.renderError,
    // A public client may call the token endpoint from its own pages.
    clientBasedCORS: (_ctx: Context, origin: string, client: Client) =>
      client.clientAuthMethod === 'none' &&
      client.redirectUris?.some((uri) => URL.parse(uri)?.origin === origin) === true,
  }
}

function issuance(deps: ProviderDeps, { mint, pages }: Own): Configuration {
  return {
    features: {
      devInteractions: { enabled: false },
      clientCredentials: { enabled: true },
      dPoP: { enabled: true, nonceSecret: deps.masterKeys.derive('dpop-nonce')[0], requireNonce: () => false },
      // oidc-provider's UserInfo refuses JWT access tokens; userinfo.ts is ours.
      userinfo: { enabled: false },
      backchannelLogout: { enabled: true },
      pushedAuthorizationRequests: { enabled: true },
      introspection: {
        enabled: true,
        allowedPolicy: (ctx: Context) => requireClient(ctx.oidc).clientAuthMethod !== 'none',
      },
      revocation: {
        enabled: true,
        // The default policy with our message. RFC 7009 section 2.1: the request is refused.
        allowedPolicy: (_ctx: Context, client: Client, token: { readonly clientId?: string | undefined }) => {
          if (token.clientId !== client.clientId) throw new errors.InvalidRequest('the token belongs to another client')
          return true
        },
      },
      ciba: ciba(deps),
      ...pages.features,
      resourceIndicators: resourceIndicators(deps),
    },
    revokeGrantPolicy: () => true,
    issueRefreshToken: (_ctx: Context, client: Client, source: { readonly scopes: ReadonlySet<string> }) =>
      client.grantTypeAllowed('refresh_token') && source.scopes.has(OFFLINE_ACCESS),
    rotateRefreshToken: async (ctx: Context) => {
      const binding = await deps.bindings.find(ctx.oidc.entities.RefreshToken?.grantId ?? '')
      if (binding?.isMember === false) {
        throw new errors.InvalidGrant('the person is no longer an active member of the organization')
      }
      // A confidential client may change its key, but not go back to bearer tokens.
      if (binding?.senderConstrained !== false && ctx.req.headers.dpop === undefined) {
        throw new errors.InvalidGrant('DPoP proof JWT not provided')
      }
      return true
    },
    ttl: {
      AccessToken: ACCESS_TOKEN_SECONDS,
      ClientCredentials: ACCESS_TOKEN_SECONDS,
      IdToken: (ctx: Context) => ctx.oidc.entities.AccessToken?.expiration ?? ACCESS_TOKEN_SECONDS,
      AuthorizationCode: CODE_SECONDS,
      DeviceCode: DEVICE_CODE_SECONDS,
      BackchannelAuthenticationRequest: (_ctx: Context, request: { readonly params?: object | undefined }) =>
        Math.min(Number(paramsOf(request).requested_expiry ?? BACKCHANNEL_SECONDS), BACKCHANNEL_SECONDS_MAX),
      PushedAuthorizationRequest: PUSHED_SECONDS,
      RefreshToken: REFRESH_SECONDS,
      Grant: (_ctx: Context, grant: { getOIDCScope(): string }) =>
        splitScope(grant.getOIDCScope()).includes(OFFLINE_ACCESS) ? OFFLINE_GRANT_SECONDS : GRANT_SECONDS,
      Interaction: INTERACTION_SECONDS,
      Session: SESSION_SECONDS,
    },
    extraTokenClaims: (_ctx: Context, token: Token) => mint.accessTokenClaims(token),
    formats: {
      customizers: {
        jwt: (ctx: Context, token: Token, { payload: { iat, exp } }: JWTStructured) =>
          mint.record(ctx, token, { iat: Number(iat), exp: Number(exp) }),
      },
    },
  }
}

function resourceIndicators({ issuer, keys, resources }: ProviderDeps): Features['resourceIndicators'] {
  return {
    enabled: true,
    defaultResource: (_ctx: Context, _client: Client, oneOf?: readonly string[]) => oneOf?.[0] ?? issuer,
    useGrantedResource: () => true,
    getResourceServerInfo: async (_ctx: Context, resource: string, client: Client) => {
      const isIssuer = resource === issuer
      if (!isIssuer && (await resources.owner(resource)) === null) throw new errors.InvalidTarget()
      return {
        scope: scopesAt({ isIssuer }, splitScope(client.portcullis_scope)).join(' '),
        audience: resource,
        accessTokenTTL: ACCESS_TOKEN_SECONDS,
        accessTokenFormat: 'jwt',
        jwt: { sign: { alg: 'RS256', kid: keys.activeKid } },
      }
    },
  }
}

/** CIBA: the person sees the request on its page (approval.ts); no message is sent. */
function ciba({ directory, consent }: ProviderDeps): Features['ciba'] {
  return {
    enabled: true,
    deliveryModes: ['poll'],
    // A person whom the client could not sign in counts as unknown: the client learns nothing, and the person gets no request.
    processLoginHint: async (ctx: Context, hint = '') => {
      const client = requireClient(ctx.oidc)
      const params = paramsOf(ctx.oidc)
      const person = isEmail(hint) ? await directory.userByEmail(hint) : null
      const accountId = person?.id ?? NOBODY
      const choice = await consent.choose({ accountId, client, asked: params.organization ?? null })
      if (person === null) return undefined
      return client.portcullis_organization !== null && choice.kind === 'refused' ? undefined : person.id
    },
    processLoginHintToken: () => {
      throw new errors.InvalidRequest('login_hint_token is not supported')
    },
    verifyUserCode: (_ctx: Context, _account: Account, code: string | undefined) => {
      if (code !== undefined) throw new errors.InvalidRequest('user_code is not supported: nobody has one')
    },
    validateRequestContext: (ctx: Context) => {
      if (!isAttainable(splitScope(paramsOf(ctx.oidc).acr_values))) {
        throw new errors.InvalidRequest('none of the acr_values can be reached here')
      }
    },
    validateBindingMessage: (_ctx: Context, message: string | undefined) => {
      if (message !== undefined && !BINDING_MESSAGE.test(message)) {
        throw new errors.InvalidBindingMessage('binding_message has 1 to 64 visible ASCII characters')
      }
    },
    triggerAuthenticationDevice: () => undefined,
  }
}

function people({ consent }: ProviderDeps, mint: Mint): Configuration {
  return {
    findAccount: (ctx: Context, id: string, source?: TokenSource) => mint.findAccount(ctx, id, source),
    loadExistingGrant: (ctx: Context) => consent.existing(ctx),
    // Our own binding is grant_binding.session_uid: oidc-provider's knows only one grant per client and session.
    expiresWithSession: () => false,
  }
}

/** With this prefix, no other host of the domain can sign a browser in as another person (RFC 6265bis section 4.1.3.2). */
const sessionCookie = (issuer: string): string =>
  issuer.startsWith('https:') ? '__Host-portcullis-identity' : 'portcullis_session'

/** The default scope: all registered scopes but offline access (RFC 6749 section 3.3), as for MCP clients. */
function defaultScope({ oidc }: Context, client: Client): string {
  const scope = personScopes(splitScope(client.portcullis_scope)).join(' ')
  if (oidc.params !== undefined) oidc.params.scope = scope
  return scope
}

function checkPersonScope(scope: string | undefined, client: Client): void {
  const asked = splitScope(scope)
  if (asked.length === 0) throw new errors.InvalidScope('scope is required: the client is registered for none', '')
  const refused = refusedScope({ asked, registered: splitScope(client.portcullis_scope), kind: 'person' })
  if (refused !== null) throw new errors.InvalidScope('the client may not ask for this scope', refused)
}

/**
 * Keeps offline access without `prompt=consent`, as OpenID Connect Core section 11 allows: the registration, or the page that asks where it
 * is not enough (`mustAsk` in sign-in/consent.ts), replaces it. Throws InvalidScope for a client that cannot use a refresh token.
 */
function keepOfflineAccess(ctx: Context, client: Client): void {
  const { params } = ctx.oidc
  if (params === undefined || !splitScope(askedScope(ctx)).includes(OFFLINE_ACCESS)) return
  if (!client.grantTypeAllowed('refresh_token'))
    throw new errors.InvalidScope('the client is not registered for the grant type refresh_token', OFFLINE_ACCESS)
  const kept = typeof params.scope === 'string' ? splitScope(params.scope) : []
  params.scope = [...new Set([...kept, OFFLINE_ACCESS])].join(' ')
}

/** The client's scope, from the request or from the one that it pushed before. */
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
