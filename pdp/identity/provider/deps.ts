/** The dependencies of our oidc-provider. */

import type { MasterKeys } from '../../shared/base/encryption.ts'
import type { Pdp } from '../../shared/domain/decision.ts'
import type { Log } from '../../shared/process/log.ts'
import type { FrameOf } from '../html/frame.ts'
import type { SigningKeys } from '../issuer/keys/signing-keys.ts'
import type { IsSignedIn } from '../issuer/sign-in-validity.ts'
import type { Bindings } from '../issuer/tokens/bindings.ts'
import type { ReadClaimSources } from '../issuer/tokens/claim-sources.ts'
import type { Delegations } from '../issuer/tokens/delegations.ts'
import type { Introspection } from '../issuer/tokens/introspection.ts'
import type { Resources } from '../issuer/tokens/resources.ts'
import type { TokenHook } from '../issuer/tokens/token-hook.ts'
import type { Semaphores } from '../limits/attempts.ts'
import type { KnownAddresses } from '../limits/known-addresses.ts'
import type { ClientOf } from '../limits/limit-address.ts'
import type { Starts } from '../limits/starts.ts'
import type { SecondFactor } from '../people/factors/second-factor.ts'
import type { Demands } from '../people/sign-in/acr.ts'
import type { Consent } from '../people/sign-in/consent.ts'
import type { ReadAssertion } from '../people/upstream-providers/assertions.ts'
import type { AdapterDeps } from './adapter.ts'
import type { DecoyHashes } from './client-decoy.ts'
import type { ProvenSecrets } from './proven-secrets.ts'

export type ProviderDeps = Omit<AdapterDeps, 'redemption'> & {
  readonly issuer: string
  readonly keys: SigningKeys
  readonly masterKeys: MasterKeys
  readonly pdp: Pick<Pdp, 'ancestors' | 'decide'>
  readonly delegations: Pick<Delegations, 'find'>
  readonly bindings: Bindings
  readonly resources: Resources
  readonly readClaimSources: ReadClaimSources
  readonly consent: Consent
  readonly hook: Pick<TokenHook, 'claims'>
  readonly introspection: Pick<Introspection, 'record' | 'isRevoked'>
  readonly secondFactor: Pick<SecondFactor, 'has'>
  readonly demands: Demands
  readonly isSignedIn: IsSignedIn
  readonly readAssertion: ReadAssertion
  readonly semaphores: Semaphores
  readonly clientOf: ClientOf
  readonly frameOf: FrameOf
  readonly provenSecrets: ProvenSecrets
  readonly known: KnownAddresses
  readonly starts: Starts
  readonly decoys: DecoyHashes
  readonly clock: () => number
  readonly log: Log
}
