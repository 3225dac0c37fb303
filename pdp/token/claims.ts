/** The claims of a verified access token (RFC 9068 section 2.2), narrowed once. */
import { TokenError } from './errors.ts'
import { type JsonMembers, members } from './jws.ts'

export type AccessClaims = {
  readonly issuer: string
  readonly subject: string
  readonly clientId: string
  readonly audiences: readonly string[]
  readonly scopes: ReadonlySet<string>
  readonly jti: string
  readonly issuedAtMs: number
  readonly expiresAtMs: number
  readonly organization: string | null
  /** RFC 9449 section 6.1: the key that every use of this token must be proven with. Null: a bearer token. */
  readonly jkt: string | null
  /** SHA-256 of the token in base64url: stands for the token in caches and handles, and is a proof's `ath`. */
  readonly digest: string
  /** Every claim as it was signed; no prototype. */
  readonly all: JsonMembers
}

// The ids of the domain model: they end up in tuples and in header fields.
const ID = /^(?!\*$)[\x21\x22\x24-\x7e]{1,256}$/
// RFC 6749 section 3.3.
const SCOPE = /^[\x21\x23-\x5b\x5d-\x7e]+(?: [\x21\x23-\x5b\x5d-\x7e]+)*$/
const THUMBPRINT = /^[A-Za-z0-9_-]{43}$/
/** The last instant that a Date can hold; anything later is a mistake and would not compare. */
const SECONDS_MAX = 8.64e12

/** Shape only; who issued it, for whom and when is the verifier's. Throws TokenError `token_invalid` naming the claim. */
export function parseClaims(payload: JsonMembers, digest: string): AccessClaims {
  return Object.freeze({
    issuer: text(payload, 'iss'),
    subject: id(payload, 'sub'),
    clientId: id(payload, 'client_id'),
    audiences: audiences(payload.aud),
    scopes: scopes(payload.scope),
    jti: text(payload, 'jti'),
    issuedAtMs: instant(payload, 'iat'),
    expiresAtMs: instant(payload, 'exp'),
    organization: payload.org === undefined ? null : id(payload, 'org'),
    jkt: confirmation(payload.cnf),
    digest,
    all: Object.freeze(payload),
  })
}

/** Milliseconds since the epoch of an optional NumericDate; null when absent. */
export const optionalInstant = (payload: JsonMembers, name: string): number | null =>
  payload[name] === undefined ? null : instant(payload, name)

function text(payload: JsonMembers, name: string): string {
  const value = payload[name]
  if (typeof value !== 'string' || value === '') throw invalid(name)
  return value
}

function id(payload: JsonMembers, name: string): string {
  const value = text(payload, name)
  if (!ID.test(value)) throw invalid(name)
  return value
}

function instant(payload: JsonMembers, name: string): number {
  const value = payload[name]
  if (typeof value !== 'number' || !(value >= 0 && value <= SECONDS_MAX)) throw invalid(name)
  return value * 1_000
}

function audiences(value: unknown): readonly string[] {
  const list: readonly unknown[] = Array.isArray(value) ? value : [value]
  if (list.length === 0 || !list.every((item) => typeof item === 'string')) throw invalid('aud')
  return Object.freeze([...list])
}

function scopes(value: unknown): ReadonlySet<string> {
  if (value === undefined || value === '') return new Set()
  if (typeof value !== 'string' || !SCOPE.test(value)) throw invalid('scope')
  return new Set(value.split(' '))
}

/** A confirmation that we cannot check must not count as none: `null`, `[]` and unknown members are refused. */
function confirmation(value: unknown): string | null {
  if (value === undefined) return null
  const { jkt, ...unknown } = members(value) ?? {}
  if (typeof jkt !== 'string' || !THUMBPRINT.test(jkt) || Object.keys(unknown).length > 0) throw invalid('cnf')
  return jkt
}

const invalid = (name: string): TokenError =>
  new TokenError('token_invalid', `claim ${name} is missing or not of its form`)
