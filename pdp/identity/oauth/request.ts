/** Types for a request's members that oidc-provider's types leave open: there, parameters are `unknown` and most members optional. */
import type { AccessToken, Client, ClientCredentials, KoaContextWithOIDC, Provider, Session } from 'oidc-provider'

export type Context = KoaContextWithOIDC
type Oidc = Pick<Context['oidc'], 'client' | 'session'>

/** The context of oidc-provider, which middleware gets although its type is Koa's. */
export const contextOf = (ctx: Parameters<Parameters<Provider['use']>[0]>[0]): Context => ctx as Context

export type Token = AccessToken | ClientCredentials
/** A token that is being minted. One of client_credentials has no person, grant or session. */
export type Minted = Pick<Token, 'kind' | 'jti' | 'scope' | 'jkt'> & {
  readonly clientId: string
  readonly client: Client
  readonly aud: string
} & Partial<Pick<AccessToken, 'accountId' | 'grantId' | 'sessionUid' | 'gty'>>

export function readToken(token: Token): Minted {
  const { kind, jti, scope, jkt, clientId, client, aud } = token
  if (clientId === undefined || client === undefined) throw new Error('a token without a client')
  if (typeof aud !== 'string') throw new Error('a token without exactly one audience')
  const common = { kind, jti, scope, jkt, clientId, client, aud }
  if (token.kind !== 'AccessToken') return common
  const { accountId, grantId, sessionUid, gty } = token
  return { ...common, accountId, grantId, sessionUid, gty }
}

/** The source of a token, with the authentication context. */
export type TokenSource = {
  readonly grantId?: string | undefined
  readonly acr?: string | undefined
  readonly authTime?: number | undefined
}

export type Params = {
  readonly client_id?: string
  readonly client_secret?: string
  readonly client_assertion?: string
  readonly redirect_uri?: string
  readonly scope?: string
  readonly resource?: string | readonly string[]
  readonly organization?: string
  readonly login_hint?: string
  readonly id_token_hint?: string
  readonly acr_values?: string
  readonly prompt?: string
  readonly ui_locales?: string
  readonly max_age?: number
  readonly binding_message?: string
  readonly requested_expiry?: string
  readonly device_code?: string
  readonly auth_req_id?: string
  readonly assertion?: string
  readonly subject_token?: string
  readonly subject_token_type?: string
  readonly actor_token?: string
  readonly actor_token_type?: string
  readonly requested_token_type?: string
  readonly audience?: string | readonly string[]
}

/** The parameters. oidc-provider has refused repeated ones, except `resource` and `audience`, and has parsed `max_age`. */
export const paramsOf = ({ params }: { readonly params?: object | undefined }): Params => (params ?? {}) as Params

/** The client. Call it only after oidc-provider has found it. */
export function requireClient({ client }: Pick<Oidc, 'client'>): Client {
  if (client === undefined) throw new Error('oidc-provider has found no client yet')
  return client
}

/** The session. Call it only after oidc-provider has read it. */
export function requireSession({ session }: Pick<Oidc, 'session'>): Session {
  if (session === undefined) throw new Error('oidc-provider has read no session yet')
  return session
}

/** The value that oidc-provider's forms must send back; empty if the session has no open form. */
export function xsrfOf({ state }: Pick<Session, 'state'>): string {
  return typeof state?.secret === 'string' ? state.secret : ''
}
