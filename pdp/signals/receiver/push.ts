/** Where transmitters push SETs to (RFC 8935): one path for each stream, with an Authorization field that only it knows. */

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

/** Before the id of a receiver. */
export const RECEIVER_PATH = '/signals/received/'
const RECEIVER_ID = /^[A-Za-z0-9_-]{1,64}$/
/** Under way in this process at once, for one stream: a transmitter with more has to wait. */
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
    // Node takes the first of two fields, and somebody in front of us perhaps the other.
    const [given = '', ...more] = req.headersDistinct.authorization ?? []
    return more.length === 0 && isSame(given, pushAuthorization(deps.masterKeys, stream)) ? stream : null
  }

  async function take(req: IncomingMessage, res: ServerResponse, stream: ReceivedStream): Promise<void> {
    const type = mediaTypeOf(req.headers['content-type'])
    if (type !== SET_MEDIA_TYPE) throw new SetError('invalid_request', `the body is not ${SET_MEDIA_TYPE}`)
    // A destroyed request could not be answered any more.
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
      // Not 400, after which a transmitter drops the event: the transmitter may be set right. Nor 404, which tells more.
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
      // Nobody can say what it is worth: the transmitter keeps it and sends it again.
      deps.log.warn({ event: 'signal_deferred', issuer: stream?.issuer ?? null, err })
      res.writeHead(503, { 'retry-after': '5' }).end()
    }
  }
}

/** RFC 8935 section 2.3. */
function refuse(res: ServerResponse, status: number, { code, message }: { code: string; message: string }): void {
  const authenticate = status === 401 ? { 'www-authenticate': 'Bearer' } : {}
  res
    .writeHead(status, { 'content-type': 'application/json', 'content-language': 'en', ...authenticate })
    .end(JSON.stringify({ err: code, description: message }))
}

/** In constant time, whatever their lengths. */
const isSame = (given: string, expected: string): boolean =>
  timingSafeEqual(Buffer.from(hash('sha256', given)), Buffer.from(hash('sha256', expected)))
