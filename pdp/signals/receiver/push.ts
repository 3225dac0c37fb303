/** The endpoint to which transmitters push SETs (RFC 8935): one path for each stream, with an Authorization field of its own. */

import { hash, timingSafeEqual } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Queries } from '../../engine/store/directory.ts'
import type { MasterKeys } from '../../shared/base/encryption.ts'
import { readAtMost } from '../../shared/base/http-json.ts'
import { mediaTypeOf } from '../../shared/base/media-type.ts'
import type { Log } from '../../shared/process/log.ts'
import { SetError } from '../set/errors.ts'
import { SET_CHARS_MAX, SET_MEDIA_TYPE } from '../set/set.ts'
import type { Intake } from './intake.ts'
import { pushAuthorization, pushedStream, type ReceivedStream } from './streams.ts'

/** The path of the endpoint, up to the id of the receiver. */
export const RECEIVER_PATH = '/signals/received/'
const RECEIVER_ID = /^[A-Za-z0-9_-]{1,64}$/
/** The most requests of one stream under way in this process; further ones are answered with 429. */
const AT_ONCE_MAX = 16

/** Answers the request. The body must be unread. */
export type PushHandler = (req: IncomingMessage, res: ServerResponse, receiverId: string) => Promise<void>

export function createPushHandler(deps: {
  readonly sql: Queries
  readonly masterKeys: MasterKeys
  readonly intake: Intake
  readonly log: Log
}): PushHandler {
  const underWay = new Map<string, number>()

  async function authenticated(req: IncomingMessage, receiverId: string): Promise<ReceivedStream | null> {
    if (!RECEIVER_ID.test(receiverId)) return null
    const stream = await pushedStream(deps.sql, receiverId)
    if (stream === null) return null
    // Repeated fields are refused: Node takes the first one, and a proxy before us perhaps another.
    const [given = '', ...more] = req.headersDistinct.authorization ?? []
    return more.length === 0 && isSame(given, pushAuthorization(deps.masterKeys, stream)) ? stream : null
  }

  async function take(req: IncomingMessage, res: ServerResponse, stream: ReceivedStream): Promise<void> {
    const type = mediaTypeOf(req.headers['content-type'])
    if (type !== SET_MEDIA_TYPE) throw new SetError('invalid_request', `the body is not ${SET_MEDIA_TYPE}`)
    // The iterator must not destroy the request, which could then not be answered.
    const bytes = await readAtMost(req.iterator({ destroyOnReturn: false }), SET_CHARS_MAX)
    if (bytes === null) throw new SetError('invalid_request', `the SET has more than ${SET_CHARS_MAX} bytes`)
    await deps.intake.take(stream, bytes.toString('latin1'))
    res.writeHead(202).end()
  }

  return async (req, res, receiverId) => {
    res.setHeader('cache-control', 'no-store')
    let stream: ReceivedStream | null = null
    try {
      stream = await authenticated(req, receiverId)
      // After 400 the transmitter would drop the event, although its settings may soon be corrected; 404 would reveal more.
      if (stream === null)
        return refuse(res, 401, { code: 'authentication_failed', message: 'wrong Authorization field' })
      const count = underWay.get(receiverId) ?? 0
      if (count >= AT_ONCE_MAX) return void res.writeHead(429, { 'retry-after': '1' }).end()
      underWay.set(receiverId, count + 1)
      try {
        await take(req, res, stream)
      } finally {
        const left = (underWay.get(receiverId) ?? 1) - 1
        if (left === 0) underWay.delete(receiverId)
        else underWay.set(receiverId, left)
      }
    } catch (err) {
      if (err instanceof SetError) return refuse(res, 400, err)
      // The SET could not be judged, so the transmitter has to keep it and send it again.
      deps.log.warn({ event: 'signal_deferred', issuer: stream?.issuer ?? null, err })
      res.writeHead(503, { 'retry-after': '5' }).end()
    }
  }
}

/** Answers with an error (RFC 8935 section 2.3). */
function refuse(res: ServerResponse, status: number, { code, message }: { code: string; message: string }): void {
  const authenticate = status === 401 ? { 'www-authenticate': 'Bearer' } : {}
  res
    .writeHead(status, { 'content-type': 'application/json', 'content-language': 'en', ...authenticate })
    .end(JSON.stringify({ err: code, description: message }))
}

/** Compares in constant time, also texts of different lengths. */
const isSame = (given: string, expected: string): boolean =>
  timingSafeEqual(Buffer.from(hash('sha256', given)), Buffer.from(hash('sha256', expected)))
