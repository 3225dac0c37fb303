/** Streams a request body with back-pressure, and filters its trailers. */
import { Readable } from 'node:stream'
import type { ClientRequest } from '../http/client-request.ts'
import { type HeaderRules, splitList } from '../http/fields.ts'
import { foldName } from '../http/folding.ts'
import { RequestError } from '../request/errors.ts'
import { fieldValues, type InboundRequest } from '../request/inbound.ts'
import type { BodyMemory } from './body-memory.ts'
import { Pace, type PaceLimits } from './pace.ts'

/** The first small pieces of a body are passed on as they come; later ones are joined. */
const SMALL_PIECES_MAX = 16
/** A piece of fewer bytes is small. */
const SMALL_BYTES = 4 * 1024

/** Destroying the returned stream does not destroy the client's connection. */
export function streamBody(options: {
  readonly client: ClientRequest
  /** Sends 100 (Continue) to a client that waits for it before it sends the body. */
  readonly sendContinue: () => void
  /** The limits of the transfer's pace; null: neither a minimum rate nor an idle timeout. */
  readonly pace: PaceLimits | null
  readonly bodies: BodyMemory
}): Readable {
  const { client, sendContinue, pace: limits, bodies } = options
  const source = client.body
  const slow = (): void =>
    void body.destroy(new RequestError('request_timeout', 'The request body stopped or is too slow'))
  let smallPieces = 0
  /** Small pieces, to be joined in one write, since each write is costly. None waits longer than one pass of the event loop. */
  let held: Buffer[] = []
  let heldBytes = 0
  const pace = limits === null ? null : new Pace(limits, slow)
  const body = new Readable({
    read() {
      sendContinue()
      pace?.wait()
      source.resume()
    },
    destroy(err, done) {
      pace?.rest()
      held = []
      source.off('data', onData).off('end', onEnd).off('close', onClose)
      done(err)
    },
  })
  const onData = (chunk: Buffer): void => {
    pace?.moved(chunk.length)
    bodies.passed(chunk.length)
    if (chunk.length < SMALL_BYTES) smallPieces += 1
    if (smallPieces <= SMALL_PIECES_MAX) {
      pass(chunk)
      return
    }
    held.push(chunk)
    heldBytes += chunk.length
    if (heldBytes >= SMALL_BYTES) release()
    else if (held.length === 1) setImmediate(release)
  }
  const release = (): void => {
    if (held.length === 0) return
    const pieces = held
    held = []
    heldBytes = 0
    pass(pieces.length === 1 && pieces[0] !== undefined ? pieces[0] : Buffer.concat(pieces))
  }
  const pass = (bytes: Buffer): void => {
    if (body.push(bytes)) return
    pace?.rest()
    source.pause()
  }
  const onEnd = (): void => {
    release()
    if (client.complete()) body.push(null)
  }
  const onClose = (): void => {
    if (!client.complete()) body.destroy(new Error('the client did not send the complete body'))
  }
  source.pause()
  source.on('data', onData).on('end', onEnd).on('close', onClose)
  // The HTTP/2 library ends an empty stream before it is read, so no `end` event will follow.
  if (source.readableEnded) onEnd()
  return body
}

const NEVER_IN_TRAILERS =
  /^(?:content-|if-|access-control-|proxy-|www-|set-cookie|cookie|cache-control|range|age|vary|origin)/

/** RFC 9110 section 6.5.1: fields for framing, routing, authentication and content are not allowed in trailers. */
export const mayTrail = (name: string): boolean => !NEVER_IN_TRAILERS.test(foldName(name))

type TrailerRules = { readonly request: InboundRequest; readonly rules: HeaderRules }

/** Announced trailer names that may be forwarded; others are dropped, as RFC 9110 section 6.5 allows. */
export function announcedTrailers({ request, rules }: TrailerRules): readonly string[] {
  if (request.bodyBytes !== null) return []
  const announced = fieldValues(request, 'trailer').flatMap(splitList)
  return [...new Set(announced)].filter((name) => passes(name, { request, rules }))
}

/** The trailers that may pass, as pairs. A trailer must not repeat a header field, because checks saw only the header section. */
export function passingTrailers(raw: readonly string[], options: TrailerRules & { announced: readonly string[] }) {
  const passing: [string, string][] = []
  for (let at = 0; at + 1 < raw.length; at += 2) {
    const name = (raw[at] ?? '').toLowerCase()
    if (options.announced.includes(name) && passes(name, options)) passing.push([name, raw[at + 1] ?? ''])
  }
  return passing
}

function passes(name: string, { request, rules }: TrailerRules): boolean {
  const folded = foldName(name)
  return rules.passes(name) && mayTrail(name) && !request.names.includes(folded)
}
