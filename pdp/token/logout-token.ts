/** Verifies a logout token (OpenID Connect Back-Channel Logout 1.0 section 2.6). */
import { hash } from 'node:crypto'
import type { AlgorithmName } from './algorithms.ts'
import { TokenError } from './errors.ts'
import { hasType, members, parseJws } from './jws.ts'
import type { KeySource } from './keys.ts'
import { findSigner } from './signature.ts'

export type LoggedOut = { readonly sid: string | null; readonly subject: string | null }

const EVENT = 'http://schemas.openid.net/event/backchannel-logout'
const TOKEN_CHARS_MAX = 8_192
/** Of clocks that differ, and of a request that was sent again. */
const AGE_SECONDS_MAX = 300
const FUTURE_SECONDS_MAX = 60

/** `claim`: false when the key was claimed in that time already. Rejects with TokenError `token_invalid`, or `keys_unavailable`. */
export async function verifyLogoutToken(
  token: string,
  expected: {
    readonly issuer: string
    readonly clientId: string
    readonly keys: KeySource
    readonly algorithms: readonly AlgorithmName[]
  },
  deps: { readonly claim: (key: string, forMs: number) => Promise<boolean>; readonly clock: () => number },
): Promise<LoggedOut> {
  const jws = parseJws(token, TOKEN_CHARS_MAX)
  if (jws === null) throw refused('it is not a compact JWS')
  // Another kind of token, such as an ID token that a page has seen, must not sign anybody out.
  if (!hasType(jws.header, 'logout+jwt')) throw refused('typ is not logout+jwt')
  await findSigner(token, jws.header, expected)
  const { iss, aud, iat, exp, jti, events, nonce, sid = null, sub = null } = jws.payload
  if (iss !== expected.issuer) throw refused('iss is not the issuer of this address')
  const audiences = Array.isArray(aud) ? aud : [aud]
  if (!audiences.includes(expected.clientId)) throw refused('aud does not name our client')
  if (members(members(events)?.[EVENT]) === null) throw refused('events does not say that somebody was signed out')
  if (nonce !== undefined) throw refused('it has a nonce, which only ID tokens have')
  const now = deps.clock() / 1_000
  if (typeof iat !== 'number' || !(iat > now - AGE_SECONDS_MAX && iat < now + FUTURE_SECONDS_MAX))
    throw refused('iat is not of the last minutes')
  if (exp !== undefined && !(typeof exp === 'number' && exp > now - FUTURE_SECONDS_MAX)) throw refused('it has expired')
  if (typeof jti !== 'string' || jti === '') throw refused('it has no jti')
  if (!isNameOrNull(sid) || !isNameOrNull(sub) || (sid === null && sub === null))
    throw refused('it names neither a session nor a subject')
  const seenMs = (AGE_SECONDS_MAX + FUTURE_SECONDS_MAX) * 1_000
  const key = hash('sha256', JSON.stringify([iss, jti]), 'base64url')
  if (!(await deps.claim(`jti:${key}`, seenMs))) throw refused('it came before')
  return { sid, subject: sub }
}

const isNameOrNull = (value: unknown): value is string | null =>
  value === null || (typeof value === 'string' && value !== '')

const refused = (message: string): TokenError =>
  new TokenError('token_invalid', `the logout token is refused: ${message}`)
