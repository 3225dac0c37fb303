/** The parts that sign-in at other providers needs. */

import type { SharedAttempts } from '../../limits/shared-attempts.ts'
import type { AccountParts } from '../account/deps.ts'
import type { AccountVisit } from '../account/visit.ts'
import type { UpstreamClient, UpstreamPerson } from './client.ts'
import type { Links } from './links.ts'
import type { IdentityProviders, ProviderWithSecret } from './providers.ts'
import type { createSealed } from './sealed.ts'

export type UpstreamDeps = {
  readonly providers: IdentityProviders
  readonly links: Links
  readonly client: UpstreamClient
  /** True if the person has nothing outside the organization and does not manage Portcullis. */
  readonly isOnlyIn: (user: string, organization: string) => Promise<boolean>
  readonly sealed: ReturnType<typeof createSealed>
  /** Counts returns of browsers, for all nodes together, so that each is accepted once. */
  readonly returns: SharedAttempts
}
export type UpstreamParts = UpstreamDeps & { readonly account: AccountParts }
export type Come = {
  readonly visit: AccountVisit
  readonly provider: ProviderWithSecret
  readonly person: UpstreamPerson
  /** True: we asked the provider for a new sign-in of the person. */
  readonly fresh: boolean
}
