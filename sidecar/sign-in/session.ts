/** The session of a browser: the person, the provider, and the tokens. */
import { hash } from 'node:crypto'
import { members } from '../../pdp/shared/token/jws.ts'

export type Session = {
  readonly id: string
  /** The provider of the route file. */
  readonly provider: string
  readonly issuer: string
  /** The sub claim of the ID token. */
  readonly subject: string
  /** The id of the issuer's session; null: the issuer does not send it. */
  readonly sid: string | null
  readonly accessToken: string
  /** The arrival of the token, like all times here in milliseconds since the epoch. */
  readonly tokenGotMs: number
  readonly tokenExpiresMs: number
  readonly refreshToken: string | null
  /** The ID token, as a hint for the issuer when the person signs out. */
  readonly idToken: string | null
  readonly beganMs: number
  /** The time of the ID token by the issuer's clock; null: the issuer did not send it. */
  readonly issuedMs: number | null
  readonly seenMs: number
}
export type Lifetime = { readonly sessionMaxMs: number; readonly idleMaxMs: number }

export const digestOf = (text: string): string => hash('sha256', text, 'base64url')

/** The time at which the session ends if no request comes. */
export const endOf = ({ beganMs, seenMs }: Session, { sessionMaxMs, idleMaxMs }: Lifetime): number =>
  Math.min(beganMs + sessionMaxMs, seenMs + idleMaxMs)

const TEXTS = ['id', 'provider', 'issuer', 'subject', 'accessToken'] as const
const OPTIONAL_TEXTS = ['sid', 'refreshToken', 'idToken'] as const
const TIMES = ['tokenGotMs', 'tokenExpiresMs', 'beganMs', 'seenMs'] as const

/** Reads a session. Null: the text is none, or one of another version. */
export function parseSession(text: string): Session | null {
  const found = members(parseJson(text))
  if (found === null) return null
  // Sessions of version 0.1.0 lack this member.
  const read: { readonly [name: string]: unknown } = { issuedMs: null, ...found }
  const isGood =
    TEXTS.every((name) => typeof read[name] === 'string') &&
    OPTIONAL_TEXTS.every((name) => read[name] === null || typeof read[name] === 'string') &&
    TIMES.every((name) => Number.isFinite(read[name])) &&
    (read.issuedMs === null || Number.isFinite(read.issuedMs))
  return isGood ? (read as Session) : null
}

export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}
