/** Parses the claims of a verified access token (RFC 9068 section 2.2). */
import type { JsonMembers } from '../base/json-text.ts'
import { TokenError } from './errors.ts'
import { members } from './jws.ts'

/**
 * The claims of a verified access token.
 *
 * @example
 * ```ts
 * const isBound = (claims: AccessClaims): boolean => claims.jkt !== null
 * ```
 */
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
  /** RFC 9449 section 6.1: thumbprint of the key that DPoP proofs for this token must use. Null: a bearer token. */
  readonly jkt: string | null
  /** Another issuer's groups, which hold the subject while the token lives; empty for our own tokens. */
  readonly groups: readonly string[]
  /** The names that another issuer may use for this token when it ends a session or an account. Absent for our own tokens. */
  readonly issuerNames?: IssuerNames
  /** SHA-256 of the token in base64url: the token's key in caches and handles, and the `ath` of proofs. */
  readonly digest: string
  /** All signed claims, in an object without prototype. */
  readonly all: JsonMembers
}

/** Names in another issuer's token, in the issuer's own form, without our prefix. */
export type IssuerNames = {
  /** `sub`, and the value of another claim if that one names our subject. */
  readonly subjects: readonly string[]
  readonly session: string | null
  readonly email: string | null
  readonly jti: string | null
  /** All claims of the token. */
  readonly claims: JsonMembers
}

export const ID_CHARS_MAX = 256
/** The id grammar of the domain model (ARCHITECTURE.md section 5), because these ids appear in tuples and header fields. */
export const ID = /^(?!\*$)[\x21\x22\x24-\x7e]{1,256}$/
// Matches a list of scopes (RFC 6749 section 3.3).
const SCOPE = /^[\x21\x23-\x5b\x5d-\x7e]+(?: [\x21\x23-\x5b\x5d-\x7e]+)*$/
const THUMBPRINT = /^[A-Za-z0-9_-]{43}$/
/** The latest second that a Date can express. */
const SECONDS_MAX = 8.64e12

/** Checks only the form of each claim. Throws TokenError `token_invalid`, which names the claim. */
export function parseClaims(
  payload: JsonMembers,
  digest: string,
  external?: { readonly groups: readonly string[]; readonly issuerNames: IssuerNames },
): AccessClaims {
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
    groups: [],
    ...external,
    digest,
    all: Object.freeze(payload),
  })
}

/** A client that acts, in the form of decisions. */
type Actor = { readonly type: 'service'; readonly id: string }
const NO_ACTORS: readonly Actor[] = []

/** The actors of a token, the current one first (RFC 8693 section 4.1). One that cannot be read becomes a client without delegation. */
export function actorsIn(act: unknown): readonly Actor[] {
  if (act === undefined) return NO_ACTORS
  const actors: Actor[] = []
  for (let at: unknown = act; at !== undefined; at = members(at)?.act) {
    const sub = members(at)?.sub
    actors.push({ type: 'service', id: typeof sub === 'string' ? sub : '' })
  }
  return actors
}

/** An optional NumericDate in milliseconds since the epoch; null: absent. */
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

/** The thumbprint of the key, or null. A confirmation that we cannot check, such as `null`, `[]` or unknown members, is an error. */
function confirmation(value: unknown): string | null {
  if (value === undefined) return null
  const { jkt, ...unknown } = members(value) ?? {}
  if (typeof jkt !== 'string' || !THUMBPRINT.test(jkt) || Object.keys(unknown).length > 0) throw invalid('cnf')
  return jkt
}

const invalid = (name: string): TokenError => new TokenError('token_invalid', `claim ${name} is missing or malformed`)
