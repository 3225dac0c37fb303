/** Cookies of these pages: a mark of the browser that asked for a mail, and the token of a mail's link while its page is open. */
import { randomBytes } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { cookieOf, createSetCookie, hostCookie } from '../../oauth/own-cookies.ts'
import { digestOf, KEPT_SECONDS, type MailedKind } from '../mail/mailed-tokens.ts'

/** 256 random bits in base64url. */
const VALUE = /^[\w-]{43}$/
const PAGE_SECONDS = 1_800

export type BrowserCookies = {
  /** The digest of the browser's cookie, which this sets if it is missing. */
  mark(req: IncomingMessage, res: ServerResponse): string
  /** True if the token is for this browser. */
  isSame(req: IncomingMessage, browser: string | null): boolean
  /** Keeps a link's token in a cookie, so that it can be taken out of the URL. */
  keep(res: ServerResponse, kind: MailedKind, token: string): void
  /** The link's token; empty: no token is kept. */
  kept(req: IncomingMessage, kind: MailedKind): string
  drop(res: ServerResponse, kind: MailedKind): void
  /** Keeps the id of the sign-in from which the person asks for a mail; empty: none. Only this browser can continue the sign-in. */
  keepSignIn(res: ServerResponse, id: string): void
  keptSignIn(req: IncomingMessage): string
}

export function createBrowserCookies({ issuer }: { readonly issuer: string }): BrowserCookies {
  const nameOf = (of: MailedKind | 'browser' | 'from'): string => hostCookie(issuer, `mail-${of}`)
  const set = createSetCookie(issuer)
  return {
    mark(req, res) {
      const present = cookieOf(req, nameOf('browser'))
      const value = VALUE.test(present) ? present : randomBytes(32).toString('base64url')
      set(res, `${nameOf('browser')}=${value}`, { seconds: KEPT_SECONDS.reset })
      return digestOf(value)
    },
    isSame: (req, browser) => browser === null || digestOf(cookieOf(req, nameOf('browser'))) === browser,
    keep: (res, kind, token) =>
      set(res, `${nameOf(kind)}=${VALUE.test(token) ? token : ''}`, { seconds: PAGE_SECONDS }),
    kept: (req, kind) => cookieOf(req, nameOf(kind)),
    drop: (res, kind) => set(res, `${nameOf(kind)}=`, { seconds: 0 }),
    keepSignIn: (res, id) => set(res, `${nameOf('from')}=${id}`, { seconds: id === '' ? 0 : PAGE_SECONDS }),
    keptSignIn: (req) => cookieOf(req, nameOf('from')),
  }
}
