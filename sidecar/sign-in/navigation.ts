/** A browser's words about a request of its own: whether a person will see the answer, and whose page sent it. */
import { mediaTypeOf } from '../../pdp/shared/base/media-type.ts'
import { RequestError } from '../request/errors.ts'
import type { InboundRequest } from '../request/inbound.ts'
import type { Frame, Theme } from './pages.ts'
import { readerWords } from './words/words.ts'

/** `document`: a person waits for a page, and may be sent elsewhere. `page`: only a page makes sense. `program`: neither. */
export type Reader = 'document' | 'page' | 'program'

const SAFE = new Set(['GET', 'HEAD', 'OPTIONS'])
const READS = new Set(['GET', 'HEAD'])

/** The value of a field that must come once; null: absent, or more than once. */
function only({ raw, names }: InboundRequest, name: string): string | null {
  let found: string | null = null
  for (const [at, folded] of names.entries()) {
    if (folded !== name) continue
    if (found !== null) return null
    found = raw[2 * at + 1] ?? ''
  }
  return found
}

/** By Fetch metadata (W3C), or by the Accept field of browsers without it. Credentials are what programs send. */
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

/** In the language that the browser asks for. */
export const frameFor = (request: InboundRequest, theme: Theme): Frame => ({
  ...theme,
  words: readerWords(only(request, 'accept-language')),
})

/** Nobody has asked for the page yet, and nobody may ever. */
export const isPrefetch = (request: InboundRequest): boolean =>
  ['sec-purpose', 'purpose', 'x-purpose', 'x-moz'].some((name) => {
    const value = only(request, name)
    return value !== null && /\b(prefetch|prerender|preview)\b/i.test(value)
  })

function acceptsHtml(accept: string | null): boolean {
  const parts = (accept ?? '').split(',')
  return parts.some((part) => mediaTypeOf(part) === 'text/html' && !/;[ \t]*q=0(\.0*)?[ \t]*(;|$)/i.test(part))
}

/** True for a request of a page of `origin`: the browser says so, and nothing that it says is against it. */
export function isOwnPage(request: InboundRequest, origin: string): boolean {
  if (request.names.filter((name) => name === 'origin' || name === 'sec-fetch-site').length > 2) return false
  const [site, from] = [only(request, 'sec-fetch-site'), only(request, 'origin')]
  if (from !== null && from !== origin) return false
  return site === null ? from === origin : site === 'same-origin'
}

/**
 * A browser sends the cookie with requests that pages of others make, too. So it counts for requests that change nothing, and
 * for those of our own pages. Throws RequestError.
 */
export function requireOwnPage(
  request: InboundRequest,
  { origin, upgrade }: { origin: string; upgrade: boolean },
): void {
  if (upgrade ? only(request, 'origin') === origin : SAFE.has(request.method) || isOwnPage(request, origin)) return
  const what = upgrade ? 'open a connection' : 'send this request'
  throw new RequestError('origin_refused', `Only pages of ${origin} may ${what} with the session of a browser`)
}
