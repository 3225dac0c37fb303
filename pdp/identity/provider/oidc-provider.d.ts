/** The part of oidc-provider 9.13.3 that the identity service uses. The package ships no types; its version is pinned. */

declare module 'oidc-provider' {
  import type { EventEmitter } from 'node:events'
  import type { IncomingMessage, ServerResponse } from 'node:http'

  /** Request parameters after the library's own checks: single strings, except `resource`. */
  export type Params = {
    readonly client_id?: string
    readonly client_secret?: string
    readonly scope?: string
    readonly resource?: string | readonly string[]
    readonly organization?: string
    readonly grant_type?: string
    readonly redirect_uri?: string
    readonly login_hint?: string
    readonly acr_values?: string
    readonly prompt?: string
    readonly max_age?: number
    readonly binding_message?: string
    readonly device_code?: string
    readonly auth_req_id?: string
    readonly subject_token?: string
    readonly subject_token_type?: string
    readonly actor_token?: string
    readonly actor_token_type?: string
    readonly requested_token_type?: string
    readonly audience?: string | readonly string[]
  }

  export interface Client {
    readonly clientId: string
    readonly clientName?: string
    readonly clientSecret?: string
    readonly clientAuthMethod: string
    readonly applicationType: 'web' | 'native'
    readonly redirectUris: readonly string[]
    /** Ours, by extraClientMetadata. */
    readonly portcullis_app: string | null
    readonly portcullis_organization: string | null
    readonly portcullis_scope: string
    readonly portcullis_exchange_clients: readonly string[]
    readonly portcullis_exchange_resources: readonly string[]
    grantTypeAllowed(grantType: string): boolean
    compareClientSecret(actual: string): boolean | Promise<boolean>
  }

  export interface Grant {
    readonly jti?: string
    readonly accountId: string
    readonly clientId: string
    addOIDCScope(scope: string): void
    addResourceScope(resource: string, scope: string): void
    getOIDCScope(): string
    getResourceScope(resource: string): string
    save(): Promise<string>
  }

  export interface Session {
    readonly jti: string
    readonly uid: string
    readonly accountId?: string
    readonly acr?: string
    readonly amr?: readonly string[]
    /** While a form of oidc-provider's is open. */
    readonly state?: { readonly secret: string }
    authTime(): number | undefined
    /** True when the sign-in is older than so many seconds. */
    past(seconds: number): boolean
    resetIdentifier(): void
    loginAccount(details: { accountId: string; loginTs: number; acr: string; amr: readonly string[] }): void
    save(seconds: number): Promise<string>
    grantIdFor(clientId: string): string | undefined
    destroy(): Promise<void>
  }

  /** An access token or client_credentials token while it is minted. */
  export interface Token {
    readonly kind: 'AccessToken' | 'ClientCredentials'
    readonly jti: string
    readonly aud: string
    readonly accountId?: string
    readonly clientId: string
    readonly client: Client
    readonly grantId?: string
    readonly sessionUid?: string
    scope?: string | undefined
    readonly jkt?: string
    readonly gty?: string
    expiresIn?: number
    readonly expiration: number
    readonly tokenType: string
    resourceServer: ResourceServer
    setThumbprint(kind: 'jkt', thumbprint: string): void
    save(): Promise<string>
  }

  export interface ResourceServer {
    readonly audience: string
    readonly scopes: ReadonlySet<string>
    identifier(): string
  }

  /** A CIBA request. */
  export interface BackchannelRequest {
    readonly jti: string
    /** Seconds since the epoch. */
    readonly iat: number
    readonly accountId: string
    readonly clientId: string
    readonly params: Params
    readonly resource?: string | readonly string[]
  }

  /** `accountId`, `error` and `inFlight` are there once somebody answered. */
  export interface DeviceCode {
    readonly clientId: string
    readonly isExpired: boolean
    readonly accountId?: string
    readonly error?: string
    readonly inFlight?: boolean
  }

  /** Where a token comes from; carries the authentication context. */
  export interface TokenSource {
    readonly grantId?: string
    readonly acr?: string
    readonly authTime?: number
  }

  export interface OidcContext {
    readonly provider: Provider
    readonly route: string
    readonly params: Params
    readonly client: Client
    readonly session: Session
    readonly grant: Grant
    readonly account?: { readonly accountId: string }
    readonly acr?: string
    readonly prompts: ReadonlySet<string>
    readonly result?: { readonly consent?: { readonly grantId?: string }; readonly login?: object }
    readonly resourceServers: { readonly [identifier: string]: ResourceServer }
    readonly requestParamScopes: ReadonlySet<string>
    readonly requestParamOIDCScopes: ReadonlySet<string>
    readonly entities: {
      readonly AccessToken?: Token
      readonly AuthorizationCode?: TokenSource
      readonly RefreshToken?: TokenSource
      readonly DeviceCode?: TokenSource
      readonly BackchannelAuthenticationRequest?: TokenSource
    }
    entity(name: string, value: unknown): void
  }

  export interface Context {
    readonly req: IncomingMessage
    readonly res: ServerResponse
    readonly response: { get(header: string): string | undefined }
    readonly path: string
    readonly method: string
    query: { readonly [name: string]: string | readonly string[] | undefined }
    readonly state: { failure?: unknown }
    status: number
    body: unknown
    type: string
    readonly oidc: OidcContext
    set(header: string, value: string): void
  }

  /** A request outside oidc-provider's own routes. */
  export interface KoaContext {
    readonly secure: boolean
    readonly cookies: {
      secure: boolean
      set(name: string, value: string, options: object): void
    }
  }

  export interface Interaction {
    readonly uid: string
    readonly prompt: { readonly name: string; readonly reasons: readonly string[] }
    readonly params: Params
    readonly session?: { readonly accountId?: string; readonly uid?: string }
  }

  export interface Adapter {
    upsert(id: string, payload: object, expiresIn?: number): Promise<void>
    find(id: string): Promise<object | undefined>
    findByUid(uid: string): Promise<object | undefined>
    findByUserCode(userCode: string): Promise<object | undefined>
    consume(id: string): Promise<void>
    destroy(id: string): Promise<void>
    revokeByGrantId(grantId: string): Promise<void>
  }

  export class Provider extends EventEmitter {
    /** Of the request that is being answered; undefined outside of any. */
    static readonly ctx: Context | undefined
    constructor(issuer: string, configuration: object)
    proxy: boolean
    readonly Grant: {
      new (properties: { accountId: string; clientId: string }): Grant
      find(id: string): Promise<Grant | undefined>
    }
    readonly Client: {
      prototype: Client
      find(id: string): Promise<Client | undefined>
      validate(metadata: object): Promise<void>
    }
    readonly Session: {
      new (): Session
      prototype: Session
      get(ctx: KoaContext): Promise<Session>
    }
    readonly AccessToken: {
      new (properties: { accountId: string; client: Client; grantId: string; gty: string }): Token
      prototype: Token
    }
    readonly DeviceCode: {
      /** Undefined for a code that was never there, or is long gone. */
      findByUserCode(
        normalized: string,
        options: { readonly ignoreExpiration: boolean },
      ): Promise<DeviceCode | undefined>
    }
    readonly BackchannelAuthenticationRequest: { find(id: string): Promise<BackchannelRequest | undefined> }
    readonly IdToken: { validate(jwt: string, client: Client): Promise<object> }
    readonly ReplayDetection: { unique(issuer: string, jti: string, expiresAt: number): Promise<boolean> }
    readonly ClientCredentials: new (properties: {
      client: Client
      scope: string | undefined
    }) => Token
    use(middleware: (ctx: Context, next: () => Promise<void>) => Promise<void>): this
    callback(): (req: IncomingMessage, res: ServerResponse) => Promise<void>
    registerGrantType(
      name: string,
      handler: (ctx: Context) => Promise<void>,
      parameters: readonly string[],
      duplicates: readonly string[],
    ): void
    createContext(req: IncomingMessage, res: ServerResponse): KoaContext
    cookieName(kind: 'session'): string
    /** Answers a CIBA request with a grant's id, or with a refusal. */
    backchannelResult(
      request: BackchannelRequest,
      result: string | Error,
      context?: {
        readonly acr?: string | undefined
        readonly amr?: readonly string[] | undefined
        readonly authTime?: number | undefined
        readonly sessionUid?: string
      },
    ): Promise<void>
    interactionDetails(req: IncomingMessage, res: ServerResponse): Promise<Interaction>
    interactionFinished(req: IncomingMessage, res: ServerResponse, result: object): Promise<void>
  }

  type ErrorClass = new (description?: string) => Error
  export const errors: {
    readonly OIDCProviderError: new (
      status: number,
      code: string,
    ) => Error & { readonly error: string; readonly error_description?: string; readonly statusCode: number }
    readonly InvalidGrant: ErrorClass
    readonly InvalidRequest: ErrorClass
    readonly InvalidClientAuth: ErrorClass
    readonly InvalidRequestUri: ErrorClass
    readonly InvalidTarget: ErrorClass
    readonly InvalidScope: new (description: string, scope: string) => Error
    readonly SessionNotFound: ErrorClass
    readonly AccessDenied: ErrorClass
    readonly InvalidBindingMessage: ErrorClass
    readonly UnmetAuthenticationRequirements: ErrorClass
  }

  export class Check {
    constructor(reason: string, description: string, error: string, check: (ctx: Context) => boolean | Promise<boolean>)
  }
  interface Prompt {
    readonly checks: { add(check: Check): void }
  }
  export const interactionPolicy: {
    readonly Check: typeof Check
    base(): { get(name: 'login' | 'consent'): Prompt }
  }
}
