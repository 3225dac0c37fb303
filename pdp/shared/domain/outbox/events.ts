/** Events of the outbox, and which of their readers may read each. */

/**
 * The cause of an event in the words of CAEP 1.0 section 2. `policy`: a rule of this server, for example against reuse of a refresh token.
 * `actor`: of a WriteContext. `subject`: the person whom the change is about.
 */
export function initiatorOf(actor: string, subject: string | null): 'admin' | 'user' | 'policy' | 'system' {
  if (subject !== null && actor === `user:${subject}`) return 'user'
  if (actor === 'identity') return 'policy'
  return actor.includes(':') ? 'admin' : 'system'
}

/** `PUBLISHED_EVENTS` are listed by the management API as well; the others leave as Shared Signals only. */
export const PUBLISHED_EVENTS = ['entitlement.updated', 'session.revoked', 'invitation.changed'] as const
export type OutboxEventType =
  | (typeof PUBLISHED_EVENTS)[number]
  /** Ends all sessions of a person; `session.revoked` ends one. */
  | 'user.signed_out'
  | 'claims.changed'
  | 'credential.changed'
  /** A client may no longer act for a person. */
  | 'delegation.ended'
  /** Events of browser sessions, for receivers that ask for them. */
  | 'session.established'
  | 'assurance.changed'

export type InvitationChange = 'created' | 'withdrawn' | 'accepted' | 'declined'
/** `user`: the user who accepted the invitation. */
export const invitationChanged = (of: {
  readonly organization: string
  readonly id: string
  readonly change: InvitationChange
  readonly user: string | null
}) =>
  ({
    type: 'invitation.changed',
    organization: of.organization,
    data: { organization: of.organization, invitation: of.id, change: of.change, user: of.user },
  }) as const

export type CredentialChange = 'create' | 'update' | 'delete'

/** The event of a person's credential; `credential`: a `credential_type` of CAEP 1.0 section 3.3.1. */
export const credentialChanged = (of: {
  readonly user: string
  readonly credential: string
  readonly changed: CredentialChange
  readonly actor: string
}) =>
  ({
    type: 'credential.changed',
    organization: null,
    data: {
      user: of.user,
      credential: of.credential,
      change: of.changed,
      initiating_entity: initiatorOf(of.actor, of.user),
    },
  }) as const
