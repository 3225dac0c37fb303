/** Challenges for passkeys to sign. Each is accepted once, within minutes, from the same browser and for the same purpose. */
import { hash, randomBytes } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Queries } from '../../../engine/store/directory.ts'
import { cookieOf, createSetCookie, hostCookie } from '../../oauth/own-cookies.ts'

export const CHALLENGE_SECONDS = 300
/** 256 random bits in base64url. */
const VALUE = /^[\w-]{43}$/

/** `purpose`: the action, the page and the person, if known. */
export type ChallengeOf = { readonly req: IncomingMessage; readonly purpose: string }

/** `clock`: milliseconds since the epoch. */
export function createPasskeyChallenges(deps: {
  readonly issuer: string
  readonly sql: Queries
  readonly clock: () => number
}): {
  /** Makes a challenge, and gives the browser a cookie if it has none. */
  create(of: ChallengeOf & { readonly res: ServerResponse }): Promise<string>
  /** Uses up the challenge. False if it is not for this browser and purpose, or has expired. */
  take(challenge: string, of: ChallengeOf): Promise<boolean>
} {
  const { sql, clock } = deps
  const setCookie = createSetCookie(deps.issuer)
  const name = hostCookie(deps.issuer, 'passkey')
  const browserOf = (req: IncomingMessage): string | null => {
    const value = cookieOf(req, name)
    return VALUE.test(value) ? value : null
  }
  const boundTo = (browser: string, purpose: string): string => digestOf(`${browser} ${purpose}`)
  return {
    async create({ req, res, purpose }) {
      const browser = browserOf(req) ?? randomBytes(32).toString('base64url')
      setCookie(res, `${name}=${browser}`, { seconds: CHALLENGE_SECONDS })
      const challenge = randomBytes(32).toString('base64url')
      await sql.query(
        `insert into passkey_challenge (digest, bound_to, expires_at) values ($1, $2, to_timestamp($3::float8))`,
        [digestOf(challenge), boundTo(browser, purpose), clock() / 1_000 + CHALLENGE_SECONDS],
      )
      return challenge
    },
    async take(challenge, { req, purpose }) {
      const browser = browserOf(req)
      if (browser === null) return false
      const taken = await sql.query(
        `delete from passkey_challenge where digest = $1 and bound_to = $2 and expires_at > to_timestamp($3::float8)
         returning 1`,
        [digestOf(challenge), boundTo(browser, purpose), clock() / 1_000],
      )
      return taken.length > 0
    },
  }
}

const digestOf = (text: string): string => hash('sha256', text, 'base64url')
