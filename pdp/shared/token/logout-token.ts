/** Verifies a logout token and carries it out once (OpenID Connect Back-Channel Logout 1.0 section 2.6). */
import { hash } from 'node:crypto'
import type { AlgorithmName } from './algorithms.ts'
import { TokenError } from './errors.ts'
import { hasType, members, parseJws } from './jws.ts'
import type { KeySource } from './keys.ts'
import { findSigner } from './signature.ts'

export type LoggedOut = {
  readonly sid: string | null
  readonly subject: string | null
  /** The token's time by the issuer's clock, in milliseconds since the epoch. */
  readonly atMs: number
}
/** Remembers the logout tokens that were carried out. Rejects when the memory cannot be read. */
export type LogoutMemory = {
  has(key: string): Promise<boolean>
  keep(key: string, forMs: number): Promise<void>
}

/** The header's `typ` (section 2.4). */
export const LOGOUT_TYPE = 'logout+jwt'
export const LOGOUT_EVENT = 'http://schemas.openid.net/event/backchannel-logout'
const TOKEN_CHARS_MAX = 8_192
/** Allows for clocks that differ, and for a request that was sent again. */
const AGE_SECONDS_MAX = 300
const FUTURE_SECONDS_MAX = 60

type Expected = {
  readonly issuer: string
  readonly clientId: string
  readonly keys: KeySource
  readonly algorithms: readonly AlgorithmName[]
}

/**
 * Calls `end` for a new token, and remembers the token afterwards, so that it can be sent again after a failure; to end the same sessions
 * twice does no harm. Rejects with TokenError `token_invalid` or `keys_unavailable`, and as `end` does.
 */
export async function takeLogoutToken(
  token: string,
  expected: Expected,
  { memory, clock }: { readonly memory: LogoutMemory; readonly clock: () => number },
  end: (loggedOut: LoggedOut) => Promise<void>,
): Promise<void> {
  const { key, ...loggedOut } = await verify(token, expected, clock)
  if (await memory.has(key)) throw refused('it came before')
  await end(loggedOut)
  await memory.keep(key, (AGE_SECONDS_MAX + FUTURE_SECONDS_MAX) * 1_000)
}

async function verify(
  token: string,
  expected: Expected,
  clock: () => number,
): Promise<LoggedOut & { readonly key: string }> {
  const jws = parseJws(token, TOKEN_CHARS_MAX)
  if (jws === null) throw refused('it is not a compact JWS')
  // A page may have seen tokens of another kind, such as an ID token: these must not sign people out.
  if (!hasType(jws.header, LOGOUT_TYPE)) throw refused(`typ is not ${LOGOUT_TYPE}`)
  await findSigner(token, jws.header, expected)
  const { iss, aud, iat, exp, jti, events, nonce, sid = null, sub = null } = jws.payload
  if (iss !== expected.issuer) throw refused('iss is not the issuer of this address')
  const audiences = Array.isArray(aud) ? aud : [aud]
  if (!audiences.includes(expected.clientId)) throw refused('aud does not name our client')
  if (members(members(events)?.[LOGOUT_EVENT]) === null)
    throw refused('events does not say that somebody was signed out')
  if (nonce !== undefined) throw refused('it has a nonce, which only ID tokens have')
  const now = clock() / 1_000
  if (typeof iat !== 'number' || !(iat > now - AGE_SECONDS_MAX && iat < now + FUTURE_SECONDS_MAX))
    throw refused('iat is not of the last minutes')
  if (exp !== undefined && !(typeof exp === 'number' && exp > now - FUTURE_SECONDS_MAX)) throw refused('it has expired')
  if (typeof jti !== 'string' || jti === '') throw refused('it has no jti')
  if (!isNameOrNull(sid) || !isNameOrNull(sub) || (sid === null && sub === null))
    throw refused('it names neither a session nor a subject')
  return { sid, subject: sub, atMs: iat * 1_000, key: `jti:${hash('sha256', JSON.stringify([iss, jti]), 'base64url')}` }
}

const isNameOrNull = (value: unknown): value is string | null =>
  value === null || (typeof value === 'string' && value !== '')

const refused = (message: string): TokenError =>
  new TokenError('token_invalid', `the logout token is refused: ${message}`)
