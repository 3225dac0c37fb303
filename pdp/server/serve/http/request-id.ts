/** The id of a request in answers and in the log: the caller's if it is safe to log, else a new one. */
import { randomUUID } from 'node:crypto'
import type { IncomingMessage } from 'node:http'

const REQUEST_ID = /^[A-Za-z0-9._-]{8,128}$/
/** AuthZEN section 10.1.3 returns the caller's id. It is bounded, and holds no character that could break a line of the log. */
const AUTHZEN_REQUEST_ID = /^[\x21-\x7e]{1,128}$/

export function requestId(req: {
  readonly headers: IncomingMessage['headers']
  readonly url?: string | undefined
}): string {
  const given = req.headers['x-request-id']
  const form = req.url?.startsWith('/access/v1/') === true ? AUTHZEN_REQUEST_ID : REQUEST_ID
  return typeof given === 'string' && form.test(given) ? given : randomUUID()
}
