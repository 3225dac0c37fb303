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
  /** Groups of another issuer that hold the subject as long as the token lives; none for our own tokens. */
  readonly groups: readonly string[]
  /** The names that another issuer may use for this token when it ends a session or an account. Absent for our own tokens. */
  readonly issuerNames?: IssuerNames
  /** SHA-256 of the token in base64url: the token's key in caches and handles, and the `ath` of proofs. */
  readonly digest: string
  /** All signed claims; the object has no prototype. */
  readonly all: JsonMembers
}

/** Names in a token of another issuer, as the issuer wrote them, without our prefix. */
export type IssuerNames = {
  /** `sub`, and the claim that names our subject if that is another one. */
  readonly subjects: readonly string[]
  readonly session: string | null
  readonly email: string | null
  readonly jti: string | null
  /** All claims. */
  readonly claims: JsonMembers
}

export const ID_CHARS_MAX = 256
/** The id grammar of the domain model (ARCHITECTURE.md section 5), because these ids appear in tuples and header fields. */
export const ID = /^(?!\*$)[\x21\x22\x24-\x7e]{1,256}$/
// RFC 6749 section 3.3.
const SCOPE = /^[\x21\x23-\x5b\x5d-\x7e]+(?: [\x21\x23-\x5b\x5d-\x7e]+)*$/
const THUMBPRINT = /^[A-Za-z0-9_-]{43}$/
/** The latest time that a Date can represent. */
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

/** As decisions name a client that acts. */
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

/** Rejects a confirmation that we cannot check, such as `null`, `[]` or unknown members, instead of ignoring it. */
function confirmation(value: unknown): string | null {
  if (value === undefined) return null
  const { jkt, ...unknown } = members(value) ?? {}
  if (typeof jkt !== 'string' || !THUMBPRINT.test(jkt) || Object.keys(unknown).length > 0) throw invalid('cnf')
  return jkt
}

const invalid = (name: string): TokenError => new TokenError('token_invalid', `claim ${name} is missing or malformed`)
