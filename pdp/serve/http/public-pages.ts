/** A browser that asks for an address without a route gets a page; everybody else gets problem details. */
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { PublicPages } from '../../identity/html/public-pages.ts'

/** Null: it is no browser. */
export function answerBrowser(pages: PublicPages, request: FastifyRequest, reply: FastifyReply): FastifyReply | null {
  const { method, headers, id } = request
  const isBrowser = (method === 'GET' || method === 'HEAD') && headers.accept?.includes('text/html') === true
  if (!isBrowser) return null
  const { status, page } = pages({ url: request.url, headers: { ...headers, 'x-request-id': id } })
  return reply
    .code(status)
    .headers({ ...page.headers, vary: 'Accept, Accept-Language' })
    .send(page.html)
}
