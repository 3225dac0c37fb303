/** A sealed session in cookies. Browsers store 4 KB of each, so a long session is split over several. */
import { OWN_COOKIES, ownCookie } from '../http/cookies.ts'

export const SESSION_COOKIE = `${OWN_COOKIES}session`
/** The longest part: with name and attributes, its cookie stays below 4,096 bytes (RFC 6265 section 6.1). */
const PART_CHARS = 3_500
const PARTS_MAX = 4
const FIRST = /^([1-4])\.(.+)$/s

const nameOf = (at: number): string => (at === 0 ? SESSION_COOKIE : `${SESSION_COOKIE}-${at}`)
const isOfSession = (name: string): boolean => name === SESSION_COOKIE || name.startsWith(`${SESSION_COOKIE}-`)

/** Joins the parts of a sealed session. Surplus parts, from an earlier longer session, are ignored. Null: a part is missing. */
export function joinSession(own: ReadonlyMap<string, string>): string | null {
  const [, count = '', first = ''] = FIRST.exec(own.get(SESSION_COOKIE) ?? '') ?? []
  const parts = [first]
  for (let at = 1; at < Number(count); at += 1) parts.push(own.get(nameOf(at)) ?? '')
  return count === '' || parts.includes('') ? null : parts.join('')
}

/** Values for Set-Cookie, which also remove cookies of `own` that are no longer used. Null: the session is too long. */
export function splitSession(sealed: string, own: ReadonlyMap<string, string>): readonly string[] | null {
  const count = Math.ceil(sealed.length / PART_CHARS)
  if (count > PARTS_MAX) return null
  const cookies = new Map<string, string>()
  for (let at = 0; at < count; at += 1)
    cookies.set(nameOf(at), `${at === 0 ? `${count}.` : ''}${sealed.slice(at * PART_CHARS, (at + 1) * PART_CHARS)}`)
  const stale = [...own.keys()].filter((name) => isOfSession(name) && !cookies.has(name))
  return [...[...cookies].map(([name, value]) => ownCookie(name, value)), ...stale.map(removal)]
}

export const removal = (name: string): string => ownCookie(name, '', 0)
