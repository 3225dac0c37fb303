/** The operations by which management changes the identity service, alone or inside an open transaction. */

import { createExternalIssuers, type ExternalIssuers } from './issuer/tokens/external-issuers.ts'
import { createRevocations, type Revocations } from './issuer/tokens/revocation.ts'
import type { TokenHook } from './issuer/tokens/token-hook.ts'
import { createSecondFactor, type SecondFactor } from './people/factors/second-factor.ts'
import { createInvitations, type Invitations } from './people/invitations/invitations.ts'
import { createIdentityProviders, type IdentityProviders } from './people/upstream-providers/providers.ts'

export type Controls = {
  readonly sessions: Pick<Revocations, 'sessionsOf' | 'revokeSession' | 'revokeUser' | 'endUser' | 'endMember'>
  readonly secondFactor: Pick<SecondFactor, 'enroll' | 'remove' | 'removePasskeys'>
  readonly hook: Pick<TokenHook, 'configure' | 'read'>
  readonly issuers: Omit<ExternalIssuers, 'record'>
  readonly invitations: Invitations
  readonly identityProviders: IdentityProviders
}

/** `hook`: the token hook of the running process, which caches its settings for a short time. */
export function controlsWithin(
  parts: Parameters<typeof createRevocations>[0] &
    Parameters<typeof createExternalIssuers>[0] &
    Parameters<typeof createInvitations>[0] &
    Omit<Parameters<typeof createSecondFactor>[0], 'revocations'>,
  hook: Controls['hook'],
): Controls {
  const { issuer, sql, directory, appendEvents, masterKeys, clock } = parts
  const revocations = createRevocations(parts)
  return {
    sessions: revocations,
    secondFactor: createSecondFactor({
      issuer,
      sql,
      directory,
      appendEvents,
      masterKeys,
      clock,
      revocations,
    }),
    issuers: createExternalIssuers(parts),
    invitations: createInvitations(parts),
    identityProviders: createIdentityProviders(parts),
    hook: {
      read: () => hook.read(parts.sql),
      configure: (settings, context) => hook.configure(settings, context, parts.sql),
    },
  }
}
