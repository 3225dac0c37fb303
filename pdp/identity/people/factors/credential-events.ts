/** Records changes of ways to sign in: in the journal, as events (CAEP `credential-change`), and by ending sign-ins. */
import { appendArrivals } from '../../../engine/store/arrivals.ts'
import type { Transaction } from '../../../engine/store/directory.ts'
import type { WriteContext } from '../../../shared/domain/change.ts'
import { DIRECTORY } from '../../../shared/domain/journal.ts'
import { type CredentialChange, credentialChanged } from '../../../shared/domain/outbox/events.ts'
import type { AppendEvents, IdentityEvent } from '../../issuer/append.ts'
import type { Revocations } from '../../issuer/tokens/revocation.ts'
import { DELETE_UNNEEDED } from './recovery-codes.ts'

/** `app`: an authenticator app; `fido2-platform`: a passkey within the device; `fido2-roaming`: one that is plugged in or held near. */
export type Credential = 'app' | 'fido2-platform' | 'fido2-roaming'

const credentialEvent = (
  user: string,
  of: { readonly credential: Credential; readonly changed: CredentialChange },
  { actor }: WriteContext,
): IdentityEvent => ({ ...credentialChanged({ user, ...of, actor }), tenantsOf: user })

export const credentialOf = ({ transports }: { readonly transports: readonly string[] }): Credential =>
  transports.includes('internal') ? 'fido2-platform' : 'fido2-roaming'

/** Call both functions in the transaction of the change, after its lock. */
export function createCredentialChanges({
  appendEvents,
  revocations,
}: {
  readonly appendEvents: AppendEvents
  readonly revocations: Pick<Revocations, 'endUser'>
}) {
  return {
    async added(
      tx: Transaction,
      {
        user,
        kinds,
        credential,
      }: {
        readonly user: string
        readonly kinds: readonly ('passkey' | 'authenticator' | 'recovery_code')[]
        readonly credential: Credential
      },
      context: WriteContext,
    ): Promise<void> {
      const changes = kinds.map((kind) => ({ kind, id: user, op: 'write' }) as const)
      await appendArrivals(tx, DIRECTORY, changes, context)
      await appendEvents(tx, [credentialEvent(user, { credential, changed: 'create' }, context)])
    },
    /** Ends the person's sign-ins, and deletes recovery codes if the person has no second factor any more. */
    async removed(
      tx: Transaction,
      {
        user,
        kind,
        credentials,
      }: {
        readonly user: string
        readonly kind: 'passkey' | 'authenticator'
        readonly credentials: readonly Credential[]
      },
      context: WriteContext,
    ): Promise<void> {
      await tx.query(DELETE_UNNEEDED, [user])
      await appendArrivals(tx, DIRECTORY, [{ kind, id: user, op: 'delete' }], context)
      await revocations.endUser(tx, user, context)
      await appendEvents(
        tx,
        credentials.map((credential) => credentialEvent(user, { credential, changed: 'delete' }, context)),
      )
    },
  }
}
