/** Redirects some requests from other sites to the same page by GET, because only then the browser sends our cookies (SameSite=Lax). */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { readForm } from '../oauth/forms.ts'
import { PATHS, urlOf } from '../oauth/paths.ts'
import { STATUS } from '../oauth/status.ts'

/** Paths to which applications may send forms (OpenID Connect Core section 3.1.2.1, RP-Initiated Logout section 2). */
const BY_FORM: ReadonlySet<string> = new Set([PATHS.authorize, PATHS.logout])

/** The URL to redirect to; undefined: no redirect is needed; null: the form is too large. */
export async function repeatedByGet(
  req: IncomingMessage,
  path: string,
  issuer: string,
): Promise<string | null | undefined> {
  // A browser that reloads the URL to which a form was sent gets the page that showed the form.
  if (path === PATHS.logoutConfirm && req.method === 'GET') return urlOf(issuer, PATHS.logout)
  if (req.method !== 'POST' || !BY_FORM.has(path)) return undefined
  const form = await readForm(req)
  return form === null ? null : `${urlOf(issuer, path)}?${form}`
}

export function goByGet(res: ServerResponse, url: string): void {
  res.writeHead(STATUS.seeOther, { location: url, 'cache-control': 'no-store', 'referrer-policy': 'no-referrer' })
  res.end()
}
