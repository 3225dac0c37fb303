/** Events for other services when people change how they sign in (CAEP, `credential-change`). */
import type { WriteContext } from '../../../shared/domain/change.ts'
import { type CredentialChange, credentialChanged } from '../../../shared/domain/outbox/events.ts'
import type { IdentityEvent } from '../../issuer/append.ts'

/** An authenticator app; a passkey in the device itself; one that is plugged in, or held to it. */
export type Credential = 'app' | 'fido2-platform' | 'fido2-roaming'

export const credentialEvent = (
  user: string,
  of: { readonly credential: Credential; readonly changed: CredentialChange },
  { actor }: WriteContext,
): IdentityEvent => ({ ...credentialChanged({ user, ...of, actor }), tenantsOf: user })

export const credentialOf = ({ transports }: { readonly transports: readonly string[] }): Credential =>
  transports.includes('internal') ? 'fido2-platform' : 'fido2-roaming'
