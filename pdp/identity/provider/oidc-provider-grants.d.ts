/** Helpers of oidc-provider for grants of our own: outside its promise of stability, another reason why its version is pinned. */

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
