/** Types that `@types/oidc-provider` lacks: our members of clients (`extraClientMetadata`), sessions and tokens; helpers for grants. */
import 'oidc-provider'
import type { Seen } from '../oauth/seen.ts'

declare module 'oidc-provider' {
  interface Client {
    readonly portcullis_app: string | null
    readonly portcullis_document: boolean
    readonly portcullis_organization: string | null
    readonly portcullis_scope: string
    readonly portcullis_second_factor: boolean
    readonly portcullis_token_epoch: number
    readonly portcullis_exchange_clients: readonly string[]
    readonly portcullis_exchange_resources: readonly string[]
  }
  interface Session {
    /** Browser and address of the session's latest request; absent if an earlier version stored it. */
    seen?: Seen
  }
  interface AccessToken {
    /** The life of the token in seconds, in place of the setting `ttl`. */
    expiresIn?: number
  }
}

// Helpers that oidc-provider does not promise to keep stable: one more reason why its version is fixed.
declare module 'oidc-provider/lib/helpers/grants.js' {
  import type { KoaContextWithOIDC as Context, Provider, ResourceServerInstance as ResourceServer } from 'oidc-provider'

  type Proof = { readonly thumbprint: string; readonly jti: string }
  export function validateDpop(provider: Provider, ctx: Context): Promise<Proof | undefined>
  export function checkDpopReplay(
    provider: Provider,
    ctx: Context,
    proof: Proof | undefined,
    clientId: string,
  ): Promise<void>
  export function checkDpopRequired(provider: Provider, ctx: Context, proof: Proof | undefined): void
  export function resolveRequestedResources(provider: Provider, ctx: Context): Promise<readonly ResourceServer[]>
  export function buildTokenResponse(
    provider: Provider,
    token: {
      accessToken: string
      expiresIn: number
      scope: string | undefined
      tokenType: string
      issuedTokenType?: string
    },
  ): object
}
