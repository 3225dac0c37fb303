/** Events about the credentials that a write of the directory changed. No event holds a credential. */
import type { WriteContext } from '../../../shared/domain/change.ts'
import { type CredentialChange, credentialChanged, initiatorOf } from '../../../shared/domain/outbox/events.ts'
import type { Client, StoredClient } from '../directory.ts'
import type { OutboxEvent } from './outbox.ts'

/** How a credential changed; null when it did not. `after` undefined: the write keeps what is stored. */
export function credentialChange(before: string | null, after: string | null | undefined): CredentialChange | null {
  if (after === undefined || after === before) return null
  if (after === null) return 'delete'
  return before === null ? 'create' : 'update'
}

export function credentialEvent(of: {
  readonly user: string
  readonly credential: string
  readonly changed: CredentialChange
  readonly context: WriteContext
}): OutboxEvent {
  return { ...credentialChanged({ ...of, actor: of.context.actor }), tenantsOf: of.user }
}

/** Events about a client's secret and its keys (RFC 7591 section 2). */
export function clientCredentialEvents(
  before: (Client & Pick<StoredClient, 'secretHash'>) | null,
  after: Client & Partial<Pick<StoredClient, 'secretHash'>>,
  { actor }: WriteContext,
): readonly OutboxEvent[] {
  const changes = [
    ['client_secret', credentialChange(before?.secretHash ?? null, after.secretHash)],
    ['jwks', credentialChange(keysOf(before), keysOf(after))],
  ] as const
  return changes.flatMap(([credential, changed]) =>
    changed === null
      ? []
      : [
          {
            type: 'credential.changed',
            organization: after.organization,
            data: { client: after.id, credential, change: changed, initiating_entity: initiatorOf(actor, null) },
          } as const,
        ],
  )
}

function keysOf(client: Client | null): string | null {
  const keys = client?.metadata.jwks ?? client?.metadata.jwks_uri
  return keys === undefined ? null : JSON.stringify(keys)
}
