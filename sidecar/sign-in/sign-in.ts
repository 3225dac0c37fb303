/** Signs browsers in as the route file says: one object per file, which makes a Browser for each request. */

import { createBrand } from '../../pdp/shared/pages/brand.ts'
import type { Fetch } from '../../pdp/shared/token/remote-keys.ts'
import type { TokenVerifier, TrustedIssuer } from '../../pdp/shared/token/verify.ts'
import type { Browser } from '../enforce/enforce.ts'
import type { ClientRequest } from '../http/client-request.ts'
import type { SignInEntry } from '../route-file/sign-in.ts'
import { createBrowser } from './browser.ts'
import { type SignInContext, siteOf } from './context.ts'
import type { SignInMemory } from './memory.ts'
import { createProvider, type Provider } from './provider.ts'
import type { Refresher } from './refresh.ts'
import { createSealing } from './sealing.ts'
import { createSessions } from './session-store.ts'

export type SignIn = { browser(client: ClientRequest): Browser }

export function createSignIn(
  {
    publicUrl,
    resource,
    signIn,
  }: { readonly publicUrl: string; readonly resource: string; readonly signIn: SignInEntry },
  deps: {
    readonly keys: readonly [Buffer, ...Buffer[]]
    readonly issuers: readonly TrustedIssuer[]
    readonly tokens: TokenVerifier
    readonly memory: SignInMemory
    readonly refresher: Refresher
    readonly starts: SignInContext['starts']
    readonly readSecret: (path: string) => string
    readonly fetch: Fetch
    readonly clock: () => number
    readonly count: SignInContext['count']
    readonly log: SignInContext['log']
  },
): SignIn {
  const { keys, tokens, memory, refresher, starts, clock, count, log, readSecret, fetch } = deps
  const issuers = new Map(
    deps.issuers.map(({ issuer, external = null, ...trusted }) => [
      issuer,
      { ...trusted, isExternal: external !== null },
    ]),
  )
  const providers = new Map<string, Provider>()
  for (const entry of signIn.providers) {
    // Another issuer may not know resource indicators, and refuse the request.
    const bound = issuers.get(entry.issuer)?.isExternal === false ? resource : null
    providers.set(entry.name, createProvider(entry, { fetch, resource: bound, readSecret, clock }))
  }
  const sealing = createSealing(keys, JSON.stringify([publicUrl, resource]))
  const site = siteOf(publicUrl)
  const { branding, ask } = signIn.pages
  const context: SignInContext = {
    site,
    theme: { brand: createBrand(branding), ask, host: new URL(site.origin).host },
    providers,
    issuers,
    sealing,
    sessions: createSessions({ sealing, memory, lifetime: signIn, clock }),
    refresher,
    memory,
    starts,
    tokens,
    clock,
    count,
    log,
  }
  return { browser: (client) => createBrowser(client, context, signIn.idleMaxMs) }
}
