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

/** The value of a field that occurs exactly once; else null. */
function only(request: InboundRequest, name: string): string | null {
  const [value = null, ...more] = fieldValues(request, name)
  return more.length > 0 ? null : value
}

/** Tells people from programs by Fetch metadata (W3C), in old browsers by the Accept field. A request with credentials is of a program. */
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

/** The theme, in the browser's language. */
export const frameFor = (request: InboundRequest, theme: Theme): Frame => ({
  ...theme,
  words: readerWords(only(request, 'accept-language')),
})

/** True for a page that the browser fetches ahead: no person has asked for it yet. */
export const isPrefetch = (request: InboundRequest): boolean =>
  ['sec-purpose', 'purpose', 'x-purpose', 'x-moz'].some((name) => {
    const value = only(request, name)
    return value !== null && /\b(prefetch|prerender|preview)\b/i.test(value)
  })

function acceptsHtml(accept: string | null): boolean {
  const parts = (accept ?? '').split(',')
  return parts.some((part) => mediaTypeOf(part) === 'text/html' && !/;[ \t]*q=0(\.0*)?[ \t]*(;|$)/i.test(part))
}

/** True for a request by a page of `origin`: some field of the browser says so, and no field contradicts. */
export function isOwnPage(request: InboundRequest, origin: string): boolean {
  if (request.names.filter((name) => name === 'origin' || name === 'sec-fetch-site').length > 2) return false
  const [site, from] = [only(request, 'sec-fetch-site'), only(request, 'origin')]
  if (from !== null && from !== origin) return false
  return site === null ? from === origin : site === 'same-origin'
}

/** Refuses other pages' requests: browsers add the cookie to them, too. With the cookie they may only read. Throws RequestError. */
export function requireOwnPage(
  request: InboundRequest,
  { origin, upgrade }: { origin: string; upgrade: boolean },
): void {
  if (upgrade ? only(request, 'origin') === origin : SAFE.has(request.method) || isOwnPage(request, origin)) return
  const what = upgrade ? 'open a connection' : 'send this request'
  throw new RequestError('origin_refused', `Only pages of ${origin} may ${what} with the session of a browser`)
}
