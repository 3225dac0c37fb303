/** Cookies of our pages. */
import type { IncomingMessage, ServerResponse } from 'node:http'

/** The value of the cookie; empty: the request has no such cookie. */
export function cookieOf({ headers }: Pick<IncomingMessage, 'headers'>, name: string): string {
  const pair = (headers.cookie ?? '').split(/; */).find((one) => one.startsWith(`${name}=`))
  return pair?.slice(name.length + 1) ?? ''
}

/** Sets cookies that scripts cannot read, for the whole host unless a path is given. */
export function createSetCookie(issuer: string) {
  const secure = issuer.startsWith('https:') ? '; Secure' : ''
  return (res: ServerResponse, pair: string, { seconds, path = '/' }: { seconds: number; path?: string }): void =>
    void res.appendHeader('set-cookie', `${pair}; Path=${path}; Max-Age=${seconds}; HttpOnly; SameSite=Lax${secure}`)
}

/** The cookie's name. With the prefix `__Host-`, no other host and no plain http can set the cookie (RFC 6265bis section 4.1.3.2). */
export const hostCookie = (issuer: string, name: string): string =>
  issuer.startsWith('https:') ? `__Host-portcullis-${name}` : `portcullis_${name.replace('-', '_')}`
