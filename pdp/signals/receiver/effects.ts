/** The effects of a security event of another issuer: entries of the token journal that revoke tokens of that issuer only. */
import type { Change } from '../../shared/domain/change.ts'
import { type IssuerCause, idAtIssuer } from '../../shared/domain/revocation.ts'
import { CAEP_EVENTS, RISC_EVENTS, type SecurityEvent } from '../set/event-types.ts'
import type { SetClaims } from '../set/set.ts'
import type { SimpleSubject, SubjectIdentifier } from '../set/subjects.ts'

/** Events that end the session in their subject, or all sessions of a person without one. */
const ENDS_SESSIONS: ReadonlySet<string> = new Set([CAEP_EVENTS.sessionRevoked])
/** Events that end all tokens of the person that were issued before. */
const ENDS_ACCESS: ReadonlySet<string> = new Set([
  CAEP_EVENTS.credentialChange,
  RISC_EVENTS.accountDisabled,
  RISC_EVENTS.accountPurged,
  RISC_EVENTS.sessionsRevoked,
  RISC_EVENTS.credentialCompromise,
])
/** The events to request from a transmitter whose registration names none. */
export const ACTED_ON: readonly string[] = [...ENDS_SESSIONS, ...ENDS_ACCESS]

/** The allowed difference of clocks. A token with a later `iat` is refused in any case. */
const SKEW_MS = 60_000

/** The effects of an event. Null: its type has none. Empty: no token of the issuer can name its subject. */
export function effectsOf(
  claims: Pick<SetClaims, 'event' | 'subject' | 'toe' | 'iat'>,
  { issuer, nowMs }: { readonly issuer: string; readonly nowMs: number },
): readonly (Change & { readonly kind: 'token' })[] | null {
  const { event, subject } = claims
  if (!ENDS_SESSIONS.has(event.type) && !ENDS_ACCESS.has(event.type)) return null
  const issuedUntilMs = Math.min(endOf(claims), nowMs + SKEW_MS)
  const session = ENDS_SESSIONS.has(event.type) ? sessionOf(subject) : null
  const people = namesIn(partOf(subject, 'user'), issuer)
  const change = (by: IssuerCause, value: string, isForEver: boolean): Change & { readonly kind: 'token' } => ({
    kind: 'token',
    by,
    id: idAtIssuer(issuer, value),
    ...(!isForEver && { issuedUntilMs }),
  })
  const ofPeople = people.map(({ by, value }) => change(by, value, by === 'foreign_jti'))
  if (session === null) return ofPeople
  const ofSession = sessionNames(session, issuer).map(({ by, value }) => change(by, value, true))
  // The event does not say whether an opaque id alone is a session or a person.
  if (subject.format !== 'complex') return [...ofSession, ...ofPeople]
  // Tokens that name no session may belong to the ended one.
  const others = new Set(people.filter(({ by }) => by !== 'foreign_jti').map(({ value }) => value))
  return [...ofSession, ...[...others].map((value) => change('foreign_sessionless', value, false))]
}

/** The end of the second of the event (CAEP 1.0 section 2, RFC 8417 section 2.2), because `iat` of tokens may have milliseconds. */
function endOf({ event, toe, iat }: { readonly event: SecurityEvent; toe: number | null; iat: number }): number {
  const { event_timestamp: at } = event.members
  const seconds = typeof at === 'number' && Number.isFinite(at) && at > 0 ? at : (toe ?? iat)
  return Math.floor(seconds) * 1_000 + 999
}

type Name = { readonly by: IssuerCause; readonly value: string }

/** The issuer's names of the subject; none for another issuer's subject. */
function namesIn(subject: SimpleSubject | null, issuer: string): readonly Name[] {
  switch (subject?.format) {
    case 'iss_sub':
      return subject.iss === issuer ? [{ by: 'foreign_subject', value: subject.sub }] : []
    case 'email':
      return [{ by: 'foreign_email', value: subject.email.toLowerCase() }]
    case 'opaque':
      return [{ by: 'foreign_subject', value: subject.id }]
    case 'jwt_id':
      return subject.iss === issuer ? [{ by: 'foreign_jti', value: subject.jti }] : []
    case 'aliases':
      return subject.identifiers.flatMap((alias) => namesIn(alias, issuer))
    default:
      return []
  }
}

/** The session; null when it is not named as in tokens: then all sessions of the person may be meant. */
function sessionOf(subject: SubjectIdentifier): SimpleSubject | null {
  const session = partOf(subject, 'session')
  // Keycloak writes `ALL` for all sessions of the user.
  const isAll = subject.format === 'complex' && subject.parts.has('user')
  if (isAll && session?.format === 'opaque' && session.id === 'ALL') return null
  return session?.format === 'opaque' || session?.format === 'jwt_id' ? session : null
}

function sessionNames(session: SimpleSubject, issuer: string): readonly Name[] {
  return session.format === 'opaque' ? [{ by: 'foreign_session', value: session.id }] : namesIn(session, issuer)
}

/** A part of the subject. A simple subject is a person; an opaque one may also be a session. */
function partOf(subject: SubjectIdentifier, name: 'user' | 'session'): SimpleSubject | null {
  if (subject.format === 'complex') return subject.parts.get(name) ?? null
  return name === 'user' || subject.format === 'opaque' ? subject : null
}
