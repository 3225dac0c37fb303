/** Requests that are answered by a GET to one of our pages: browsers send our cookies, which are SameSite=Lax, from other sites with that alone. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { readForm } from '../oauth/forms.ts'
import { PATHS, urlOf } from '../oauth/paths.ts'
import { STATUS } from '../oauth/status.ts'

/** OpenID Connect Core section 3.1.2.1 and RP-Initiated Logout section 2: applications may send a form. */
const BY_FORM: ReadonlySet<string> = new Set([PATHS.authorize, PATHS.logout])

/** Which request is to be repeated by GET, if this is one; `null`: its form is too large. */
export async function repeatedByGet(
  req: IncomingMessage,
  path: string,
  issuer: string,
): Promise<string | null | undefined> {
  // A browser that opens the address of a form again finds the page that the form was on.
  if (path === PATHS.logoutConfirm && req.method === 'GET') return urlOf(issuer, PATHS.logout)
  if (req.method !== 'POST' || !BY_FORM.has(path)) return undefined
  const form = await readForm(req)
  return form === null ? null : `${urlOf(issuer, path)}?${form}`
}

export function goByGet(res: ServerResponse, url: string): void {
  res.writeHead(STATUS.seeOther, { location: url, 'cache-control': 'no-store', 'referrer-policy': 'no-referrer' })
  res.end()
}
