/** What the engine is put together from. */
import type { Pdp } from '../pdp.ts'
import type { Log } from '../process/log.ts'
import type { AdapterDeps } from './adapter.ts'
import type { Gates } from './attempts.ts'
import type { Bindings } from './bindings.ts'
import type { DecoyHashes } from './client-decoy.ts'
import type { Consent } from './consent.ts'
import type { ReadFacts } from './facts.ts'
import type { Introspection } from './introspection.ts'
import type { SigningKeys } from './keys.ts'
import type { ProvenSecrets } from './proven-secrets.ts'
import type { Resources } from './resources.ts'
import type { SecondFactor } from './second-factor.ts'
import type { IsSignedIn } from './sign-ins.ts'
import type { TokenHook } from './token-hook.ts'

export type EngineDeps = Omit<AdapterDeps, 'rotation'> & {
  readonly issuer: string
  readonly keys: SigningKeys
  readonly masterKey: Buffer
  readonly pdp: Pick<Pdp, 'lineage'>
  readonly bindings: Bindings
  readonly resources: Resources
  readonly readFacts: ReadFacts
  readonly consent: Consent
  readonly hook: Pick<TokenHook, 'claims'>
  readonly introspection: Pick<Introspection, 'record' | 'isDead'>
  readonly secondFactor: Pick<SecondFactor, 'has'>
  readonly isSignedIn: IsSignedIn
  readonly gates: Gates
  readonly provenSecrets: ProvenSecrets
  readonly decoys: DecoyHashes
  readonly clock: () => number
  readonly log: Log
}
