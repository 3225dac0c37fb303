/** The function by which oidc-provider ends a session: its library does not promise to keep it, nor the other helpers that we use. */
declare module 'oidc-provider/lib/actions/end_session.js' {
  import type { KoaContextWithOIDC as Context } from 'oidc-provider'

  /** Handlers of which the last one ends the request's session and continues. */
  export const confirm: readonly ((ctx: Context) => Promise<void>)[]
}
