/** Reads from a browser's fields whether a person will see the answer, and which page sent the request. */
import { mediaTypeOf } from '../../pdp/shared/base/media-type.ts'
import { RequestError } from '../request/errors.ts'
import { fieldValues, type InboundRequest } from '../request/inbound.ts'
import type { Frame, Theme } from './pages.ts'
import { readerWords } from './words/words.ts'

/** `document`: a person waits for a page, and may be redirected. `page`: only a page is useful. `program`: neither. */
export type Reader = 'document' | 'page' | 'program'

const SAFE = new Set(['GET', 'HEAD', 'OPTIONS'])
const READS = new Set(['GET', 'HEAD'])

/** The value of a field that must occur once; null: absent or repeated. */
function only(request: InboundRequest, name: string): string | null {
  const [value = null, ...more] = fieldValues(request, name)
  return more.length > 0 ? null : value
}

/** Decides by Fetch metadata (W3C), or for browsers without it by the Accept field. Only programs send credentials. */
export function readerOf(request: InboundRequest): Reader {
  if (request.authorization.length > 0 || isPrefetch(request)) return 'program'
  const isRead = READS.has(request.method)
  const mode = only(request, 'sec-fetch-mode')
  if (mode === null) {
    const asksForPage = acceptsHtml(only(request, 'accept')) && only(request, 'x-requested-with') === null
    return asksForPage && !request.names.includes('sec-fetch-mode') ? (isRead ? 'document' : 'page') : 'program'
  }
  if (mode !== 'navigate') return 'program'
  const dest = only(request, 'sec-fetch-dest')
  return isRead && (dest === 'document' || dest === null) ? 'document' : 'page'
}

/** The theme in the language for which the browser asks. */
export const frameFor = (request: InboundRequest, theme: Theme): Frame => ({
  ...theme,
  words: readerWords(only(request, 'accept-language')),
})

/** True for a page that the browser fetches ahead: no person has asked for it, and perhaps no person will. */
export const isPrefetch = (request: InboundRequest): boolean =>
  ['sec-purpose', 'purpose', 'x-purpose', 'x-moz'].some((name) => {
    const value = only(request, name)
    return value !== null && /\b(prefetch|prerender|preview)\b/i.test(value)
  })

function acceptsHtml(accept: string | null): boolean {
  const parts = (accept ?? '').split(',')
  return parts.some((part) => mediaTypeOf(part) === 'text/html' && !/;[ \t]*q=0(\.0*)?[ \t]*(;|$)/i.test(part))
}

/** True for a request by a page of `origin`: at least one field of the browser says so, and no other contradicts it. */
export function isOwnPage(request: InboundRequest, origin: string): boolean {
  if (request.names.filter((name) => name === 'origin' || name === 'sec-fetch-site').length > 2) return false
  const [site, from] = [only(request, 'sec-fetch-site'), only(request, 'origin')]
  if (from !== null && from !== origin) return false
  return site === null ? from === origin : site === 'same-origin'
}

/**
 * A browser sends the cookie even with requests by pages of others. So the cookie counts only for requests that change nothing, and for
 * those by our own pages. Throws RequestError.
 */
export function requireOwnPage(
  request: InboundRequest,
  { origin, upgrade }: { origin: string; upgrade: boolean },
): void {
  if (upgrade ? only(request, 'origin') === origin : SAFE.has(request.method) || isOwnPage(request, origin)) return
  const what = upgrade ? 'open a connection' : 'send this request'
  throw new RequestError('origin_refused', `Only pages of ${origin} may ${what} with the session of a browser`)
}
