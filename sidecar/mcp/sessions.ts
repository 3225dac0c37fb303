/**
 * Binds sessions of older revisions to their subject. The client's session id has a MAC over subject and client, which is verified with
 * each request. Nothing is stored, so sidecars with the same key accept each other's ids.
 */
import { createHmac, timingSafeEqual } from 'node:crypto'
import type { AccessClaims } from '../../pdp/shared/token/claims.ts'

export type SessionOwner = Pick<AccessClaims, 'issuer' | 'subject' | 'clientId' | 'organization'>
export type SessionSeal = {
  seal(session: string, owner: SessionOwner): string
  /** The service's session id; null: it is not a session of this owner. */
  open(sealed: string, owner: SessionOwner): string | null
}

const MARK = '.'
const SESSION_CHARS_MAX = 1_024

/** `keys`: the first one makes the MAC, all are accepted. */
export function createSessionSeal(keys: readonly [Buffer, ...Buffer[]]): SessionSeal {
  const macOf = (key: Buffer, session: string, { issuer, subject, clientId, organization }: SessionOwner): Buffer => {
    // The label makes the MAC differ from any other use of the same key.
    const text = JSON.stringify(['mcp session', issuer, subject, clientId, organization, session])
    return Buffer.from(createHmac('sha256', key).update(text).digest('base64url'))
  }
  return {
    seal: (session, owner) => `${session}${MARK}${macOf(keys[0], session, owner)}`,
    open(sealed, owner) {
      const at = sealed.lastIndexOf(MARK)
      if (at < 1 || sealed.length > SESSION_CHARS_MAX) return null
      const session = sealed.slice(0, at)
      const given = Buffer.from(sealed.slice(at + 1))
      const isOurs = keys.some((key) => {
        const wanted = macOf(key, session, owner)
        return given.length === wanted.length && timingSafeEqual(given, wanted)
      })
      return isOurs ? session : null
    },
  }
}
