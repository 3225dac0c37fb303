/** How oidc-provider ends a session: outside its promise of stability, as its other helpers here. */
declare module 'oidc-provider/lib/actions/end_session.js' {
  import type { KoaContextWithOIDC as Context } from 'oidc-provider'

  /** The last one ends the session of the request and leads on. */
  export const confirm: readonly ((ctx: Context) => Promise<void>)[]
}
