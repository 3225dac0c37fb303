/** The body of a request as a stream of its own, with back-pressure, and what of its trailers may follow it. */
import { Readable } from 'node:stream'
import type { ClientRequest } from '../http/client.ts'
import { type HeaderRules, splitList } from '../http/fields.ts'
import { foldName } from '../http/folding.ts'
import { RequestError } from '../request/errors.ts'
import type { InboundRequest } from '../request/inbound.ts'
import { Pace, type PaceLimits } from './pace.ts'

/** Whoever destroys it does not destroy the client's connection. */
export function streamBody({
  client,
  sendContinue,
  pace: limits,
}: {
  readonly client: ClientRequest
  /** Tells a client that waits for it to send its body. */
  readonly sendContinue: () => void
  /** Null: it may be as slow as it likes, for as long as there is somebody at the other end. */
  readonly pace: PaceLimits | null
}): Readable {
  const source = client.body
  const slow = (): void => void body.destroy(new RequestError('request_timeout', 'the body stopped or is too slow'))
  const pace = limits === null ? null : new Pace(limits, slow)
  const body = new Readable({
    read() {
      sendContinue()
      pace?.wait()
      source.resume()
    },
    destroy(err, done) {
      pace?.rest()
      source.off('data', onData).off('end', onEnd).off('close', onClose)
      done(err)
    },
  })
  const onData = (chunk: Buffer): void => {
    pace?.moved(chunk.length)
    if (body.push(chunk)) return
    pace?.rest()
    source.pause()
  }
  const onEnd = (): void => {
    if (client.complete()) body.push(null)
  }
  const onClose = (): void => {
    if (!client.complete()) body.destroy(new Error('the client did not send its whole body'))
  }
  source.pause()
  source.on('data', onData).on('end', onEnd).on('close', onClose)
  // The HTTP/2 library ends an empty stream although nobody reads it yet.
  if (source.readableEnded) onEnd()
  return body
}

/** RFC 9110 section 6.5.1: what frames, routes, authenticates or describes the content has no place in a trailer. */
const NEVER_IN_TRAILERS =
  /^(?:content-|if-|access-control-|proxy-|www-|set-cookie|cookie|cache-control|range|age|vary|origin)/

type TrailerRules = { readonly request: InboundRequest; readonly rules: HeaderRules }

/** Names that the client announced and that may pass; others are dropped, as RFC 9110 section 6.5 lets us. */
export function announcedTrailers({ request, rules }: TrailerRules): readonly string[] {
  if (request.bodyBytes !== null) return []
  const announced = request.names.flatMap((name, at) => (name === 'trailer' ? splitList(request.raw[2 * at + 1]) : []))
  return [...new Set(announced)].filter((name) => passes(name, { request, rules }))
}

/** Names and values in turn. Nothing that stands in the header section may come again where no check saw it. */
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
  return rules.passes(name) && !NEVER_IN_TRAILERS.test(folded) && !request.names.includes(folded)
}
