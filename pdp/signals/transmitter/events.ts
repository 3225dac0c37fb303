/** Makes a security event for one receiver from an event of the outbox, if the receiver may see it. */
import { isJsonObject, type JsonObject, type JsonValue } from '../../shared/domain/json.ts'
import type { OutboxEventType } from '../../shared/domain/outbox/events.ts'
import { CAEP_EVENTS, delegationEnded, entitlementUpdated } from '../set/event-types.ts'
import type { SimpleSubject, SubjectIdentifier } from '../set/subjects.ts'
import type { Stream, SubjectFormat } from './streams.ts'

export type OutboxRow = {
  readonly seq: number
  readonly id: string
  readonly txn: string | null
  readonly type: OutboxEventType
  readonly organization: string | null
  readonly atMs: number
  readonly data: JsonObject
  /** The organizations of the event, each with itself and all above it. Deleted ones are absent. */
  readonly ancestors: ReadonlyMap<string, readonly string[]>
}
/** The facts that decide which events a receiver gets. */
export type Audience = {
  /** Organizations; each that is not null must be the event's organization or above it. */
  readonly bounds: readonly (string | null)[]
  /** The app whose roles the receiver may see; null: no app. */
  readonly app: string | null
  readonly subjectFormat: SubjectFormat
  readonly eventsDelivered: ReadonlySet<string>
}
export type Content = {
  readonly type: string
  readonly subject: SubjectIdentifier
  readonly members: JsonObject
}

/** The URI of each event type; a type that is absent is not sent to receivers. */
const TYPES: { readonly [type in OutboxEventType]?: (issuer: string) => string } = {
  'session.revoked': () => CAEP_EVENTS.sessionRevoked,
  'user.signed_out': () => CAEP_EVENTS.sessionRevoked,
  'claims.changed': () => CAEP_EVENTS.tokenClaimsChange,
  'credential.changed': () => CAEP_EVENTS.credentialChange,
  'entitlement.updated': entitlementUpdated,
  'delegation.ended': delegationEnded,
  'session.established': () => CAEP_EVENTS.sessionEstablished,
  'assurance.changed': () => CAEP_EVENTS.assuranceLevelChange,
}
/** Events of each sign-in: only receivers that name them get them. */
const ON_REQUEST: ReadonlySet<string> = new Set([CAEP_EVENTS.sessionEstablished, CAEP_EVENTS.assuranceLevelChange])
/** All event types that this transmitter sends, besides those about a stream. */
export const eventsSupported = (issuer: string): readonly string[] => [
  ...new Set(Object.values(TYPES).map((uri) => uri(issuer))),
]

/** The event types for a receiver. `eventsRequested`: null if it named none. */
export const eventsDelivered = (
  issuer: string,
  { eventsRequested }: Pick<Stream, 'eventsRequested'>,
): readonly string[] =>
  eventsSupported(issuer).filter((type) => eventsRequested?.includes(type) ?? !ON_REQUEST.has(type))

export const audienceOf = (
  issuer: string,
  stream: Pick<Stream, 'organization' | 'subjectFormat' | 'eventsRequested'>,
  client: { readonly organization: string | null; readonly app: string | null },
): Audience => ({
  bounds: [stream.organization, client.organization],
  app: client.app,
  subjectFormat: stream.subjectFormat,
  eventsDelivered: new Set(eventsDelivered(issuer, stream)),
})

/** The event for a receiver; null if the receiver did not request it or may not see it. */
export function contentOf(issuer: string, row: OutboxRow, audience: Audience): Content | null {
  const type = TYPES[row.type]?.(issuer)
  if (type === undefined || !audience.eventsDelivered.has(type)) return null
  const tenants = visibleTenants(row, audience)
  if (tenants === null) return null
  const members = membersOf(row, audience)
  if (members === null) return null
  return { type, subject: subjectOf(issuer, row, { tenants, format: audience.subjectFormat }), members }
}

/** The organizations of the event that the receiver may see; null when it may not see the event at all. */
function visibleTenants({ organization, data, ancestors }: OutboxRow, { bounds }: Audience): readonly string[] | null {
  const limits = bounds.filter((bound) => bound !== null)
  const tenants = organization === null ? textsOf(data.tenants) : [organization]
  const visible = tenants.filter((tenant) => limits.every((limit) => ancestors.get(tenant)?.includes(limit)))
  return limits.length > 0 && visible.length === 0 ? null : visible
}

function subjectOf(
  issuer: string,
  { data }: OutboxRow,
  { tenants, format }: { readonly tenants: readonly string[]; readonly format: SubjectFormat },
): SubjectIdentifier {
  const person = textOf(data.user)
  const client = textOf(data.client)
  const session = textOf(data.session)
  const [tenant, ...others] = tenants
  const of = (sub: string): SimpleSubject => ({ format: 'iss_sub', iss: issuer, sub })
  if (person !== null && format === 'iss_sub') return of(person)
  const parts = new Map<string, SimpleSubject>()
  if (person !== null) parts.set('user', of(person))
  if (client !== null) parts.set('application', of(client))
  if (session !== null) parts.set('session', { format: 'opaque', id: session })
  // A subject can name one tenant only; without one, the event is about all of them.
  if (tenant !== undefined && others.length === 0) parts.set('tenant', { format: 'opaque', id: tenant })
  return { format: 'complex', parts }
}

/** The time of an event in seconds since the epoch (CAEP 1.0 section 2). */
const seconds = (ms: number): number => Math.floor(ms / 1_000)

function membersOf({ type, data, atMs }: OutboxRow, { app }: Audience): JsonObject | null {
  const common: JsonObject = {
    event_timestamp: seconds(atMs),
    ...(data.initiating_entity === undefined ? {} : { initiating_entity: data.initiating_entity }),
  }
  switch (type) {
    case 'session.revoked':
      return { ...common, reason_admin: { en: 'The session ended.' } }
    case 'user.signed_out':
      return { ...common, reason_admin: { en: 'All sessions of the user ended.' } }
    case 'credential.changed':
      return {
        ...common,
        credential_type: data.credential ?? '',
        change_type: data.change ?? '',
        reason_admin: { en: 'A credential changed.' },
      }
    case 'claims.changed': {
      const claims = claimsOf(data, app)
      return claims === null ? null : { ...common, claims }
    }
    case 'session.established':
      return { ...common, ...picked(data, ['acr', 'amr']) }
    case 'assurance.changed':
      return {
        ...common,
        namespace: 'RFC8176',
        current_level: data.current ?? '',
        previous_level: data.previous ?? '',
        change_direction: data.direction ?? '',
      }
    case 'delegation.ended':
      return { ...common, ...picked(data, ['organization', 'client']) }
    case 'entitlement.updated':
      return { ...common, ...picked(data, ['organization', 'keys', 'version']) }
    default:
      return null
  }
}

/** The new values of the claims that changed: the tier, and the roles that are organization-wide or of the receiver's app. */
function claimsOf(data: JsonObject, app: string | null): JsonObject | null {
  const isSeen = (owner: JsonValue | undefined): boolean => owner === null || owner === app
  const roles = listOf(data.roles).flatMap((granted) => {
    const { app: owner, role } = recordOf(granted)
    return isSeen(owner) && typeof role === 'string' ? [role] : []
  })
  const claims: JsonObject = {
    ...(data.org_role === undefined ? {} : { org_role: data.org_role }),
    ...(listOf(data.apps).some(isSeen) ? { roles: [...new Set(roles)] } : {}),
  }
  return Object.keys(claims).length === 0 ? null : claims
}

const picked = (data: JsonObject, names: readonly string[]): JsonObject =>
  Object.fromEntries(
    names.flatMap((name) => {
      const value = data[name]
      return value === undefined ? [] : [[name, value] as const]
    }),
  )

const textOf = (value: JsonValue | undefined): string | null => (typeof value === 'string' ? value : null)
const listOf = (value: JsonValue | undefined): readonly JsonValue[] => (Array.isArray(value) ? value : [])
const textsOf = (value: JsonValue | undefined): readonly string[] =>
  listOf(value).filter((item) => typeof item === 'string')
const recordOf = (value: JsonValue): JsonObject => (isJsonObject(value) ? value : {})

/** All organizations in an event. */
export const organizationsOf = ({ organization, data }: Pick<OutboxRow, 'organization' | 'data'>): readonly string[] =>
  organization === null ? textsOf(data.tenants) : [organization]
