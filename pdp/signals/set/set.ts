/** Security event tokens (SETs, RFC 8417) in the form of SSF 1.0 and its interoperability profile: one event about one subject. */
import type { JsonMembers } from '../../shared/base/json-text.ts'
import { textIssue } from '../../shared/domain/json.ts'
import { hasType, type Jws, members, parseJws } from '../../shared/token/jws.ts'
import { SetError } from './errors.ts'
import type { SecurityEvent } from './event-types.ts'
import { parseSubject, type SubjectIdentifier } from './subjects.ts'

/** Header `typ` of a SET (RFC 8417 section 2.3); no other JWT has it. */
export const SET_TYPE = 'secevent+jwt'
/** Media type of a pushed SET (RFC 8935 section 2.1). */
export const SET_MEDIA_TYPE = 'application/secevent+jwt'
/** The most characters of a SET in compact form. */
export const SET_CHARS_MAX = 65_536

const ID_CHARS_MAX = 512
const AUDIENCES_MAX = 16
/** SSF 1.0 sections 4.1.3 and 4.1.7 forbid these: a SET must not pass for an access token or an ID token. */
const FORBIDDEN_CLAIMS = ['exp', 'sub'] as const

export type SetClaims = {
  readonly iss: string
  readonly aud: readonly string[]
  /** The time of the SET in seconds since the epoch. */
  readonly iat: number
  readonly jti: string
  /** The same for all events of one cause. */
  readonly txn: string | null
  /** The time of the event in seconds since the epoch (RFC 8417 section 2.2), for events without `event_timestamp`. */
  readonly toe: number | null
  readonly subject: SubjectIdentifier
  readonly event: SecurityEvent
}

/** A decoded SET with a checked type, but otherwise unverified. Throws SetError `invalid_request`. */
export function parseSet(text: string): Jws {
  const jws = parseJws(text, SET_CHARS_MAX)
  if (jws === null) throw invalid('the SET is not a compact JWS (RFC 7515), or uses extensions')
  if (!hasType(jws.header, SET_TYPE)) throw invalid(`header typ is not ${SET_TYPE}`)
  return jws
}

/** The claims. Throws SetError `invalid_request` that names the wrong claim. */
export function parseSetClaims(payload: JsonMembers): SetClaims {
  const forbidden = FORBIDDEN_CLAIMS.find((name) => payload[name] !== undefined)
  if (forbidden !== undefined) throw invalid(`a SET must not have the claim ${forbidden}`)
  return {
    iss: textAt(payload, 'iss'),
    aud: audiencesOf(payload.aud),
    iat: secondsOf(payload.iat, 'iat'),
    jti: textAt(payload, 'jti'),
    txn: payload.txn === undefined ? null : textAt(payload, 'txn'),
    toe: payload.toe === undefined ? null : secondsOf(payload.toe, 'toe'),
    // Parts in unknown formats are left out. Without the part `session`, the event then ends all sessions of the user.
    subject: parseSubject(payload.sub_id, 'sub_id', 'left out'),
    event: eventOf(payload.events),
  }
}

/** The interoperability profile allows exactly one event in a SET. */
function eventOf(value: unknown): SecurityEvent {
  const [[type, event] = ['', null], ...others] = Object.entries(members(value) ?? {})
  if (type === '' || others.length > 0) throw invalid('events has not exactly one member')
  if (!isText(type) || !URL.canParse(type)) throw invalid('the name of the event is not a URI')
  const given = members(event)
  if (given === null) throw invalid('the event is not a JSON object')
  return { type, members: given }
}

function audiencesOf(value: unknown): readonly string[] {
  const audiences: readonly unknown[] = Array.isArray(value) ? value : [value]
  if (audiences.length === 0 || audiences.length > AUDIENCES_MAX || !audiences.every(isText))
    throw invalid('claim aud is missing or malformed')
  return audiences
}

function textAt(payload: JsonMembers, name: string): string {
  const value = payload[name]
  if (!isText(value)) throw invalid(`claim ${name} is missing or malformed`)
  return value
}

function secondsOf(value: unknown, name: string): number {
  if (typeof value !== 'number' || !Number.isFinite(value) || value < 0)
    throw invalid(`claim ${name} is missing or malformed`)
  return value
}

const isText = (value: unknown): value is string =>
  typeof value === 'string' && value !== '' && value.length <= ID_CHARS_MAX && textIssue(value) === null

const invalid = (message: string): SetError => new SetError('invalid_request', message)
