/** Gives browsers a page, and other clients a problem document, for requests without a route. */
import { STATUS_CODES } from 'node:http'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { PublicPages } from '../../../identity/html/public-pages.ts'

/** Sends a page if the caller is a browser; null: it is not. */
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

/** The answer, in HTTP bytes, to a browser's request with unreadable fields; null: the client is no browser. */
export function browserAnswer(pages: PublicPages, packet: string): string | null {
  const field = (name: string): string | undefined => new RegExp(`\\r\\n${name}: *([^\\r]*)`, 'i').exec(packet)?.[1]
  if (field('accept')?.includes('text/html') !== true) return null
  const { status, page } = pages({ headers: { 'accept-language': field('accept-language') } }, 'oversized')
  const headers = { ...page.headers, 'content-length': Buffer.byteLength(page.html), connection: 'close' }
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
  return `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${lines.join('')}\r\n${page.html}`
}
