/** What `@types/oidc-provider` lacks: our own members of a client (`extraClientMetadata`) and the life of a token. */
import 'oidc-provider'

declare module 'oidc-provider' {
  interface Client {
    readonly portcullis_app: string | null
    readonly portcullis_organization: string | null
    readonly portcullis_scope: string
    readonly portcullis_second_factor: boolean
    readonly portcullis_token_epoch: number
    readonly portcullis_exchange_clients: readonly string[]
    readonly portcullis_exchange_resources: readonly string[]
  }
  interface AccessToken {
    /** Seconds, in place of the setting `ttl`. */
    expiresIn?: number
  }
}
