/** The parts that sign-in at other providers is made of. */

import type { SharedAttempts } from '../../limits/shared-attempts.ts'
import type { AccountParts } from '../account/deps.ts'
import type { Visit } from '../account/visit.ts'
import type { ForeignClient, ForeignPerson } from './client.ts'
import type { Links } from './links.ts'
import type { IdentityProviders, ProviderWithSecret } from './providers.ts'
import type { Sealed } from './sealed.ts'

export type ForeignDeps = {
  readonly providers: IdentityProviders
  readonly links: Links
  readonly client: ForeignClient
  readonly sealed: Sealed
  /** Which returns were seen already, by all nodes together. */
  readonly returns: SharedAttempts
}
export type ForeignParts = ForeignDeps & { readonly account: AccountParts }
export type Come = {
  readonly visit: Visit
  readonly provider: ProviderWithSecret
  readonly person: ForeignPerson
  /** The provider was told to ask the person to sign in once more. */
  readonly fresh: boolean
}
