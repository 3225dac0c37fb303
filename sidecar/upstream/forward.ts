/** Sends a permitted request to the upstream and streams its response back, with back-pressure in both directions. */

import type { Readable } from 'node:stream'
import type { Dispatcher } from 'undici'
import type { ProblemCode } from '../../pdp/shared/base/problems.ts'
import type { Permit } from '../enforce/enforce.ts'
import type { ClientAnswer, ClientRequest } from '../http/client-request.ts'
import {
  downstreamFields,
  firstValue,
  type HeaderNames,
  type HeaderRules,
  pairsOf,
  upstreamFields,
} from '../http/fields.ts'
import { isGrpc } from '../http/grpc.ts'
import type { MovedPaths } from '../http/upstream-entry.ts'
import { SESSION } from '../mcp/fields.ts'
import type { Origin } from '../request/origin.ts'
import { wholeRequest } from '../request/whole-request.ts'
import { filtered, type HeldAnswers } from './answer-filter.ts'
import { clientFields, endingOf, inform, isEventStream } from './answer-head.ts'
import type { BodyMemory } from './body-memory.ts'
import { announcedTrailers, mayTrail, passingTrailers, streamBody } from './body-stream.ts'
import type { Cancellation } from './cancellation.ts'
import { failureOf, isRepeatable } from './failure.ts'
import { Pace, type PaceLimits } from './pace.ts'
import { hasOtherCoding, rawFields } from './response-fields.ts'
import { headersTimeout, type Upstream, type UpstreamRequest } from './upstream.ts'

export type Forwarding = {
  readonly client: ClientRequest
  readonly origin: Origin
  readonly res: ClientAnswer
  readonly requestId: string
  /** Replaces the client's field; null: the client's passes unchanged. */
  readonly traceparent: string | null
  /** Sends 100 (Continue) to a client that waits for it before it sends the body. */
  readonly sendContinue: () => void
  /** Fields to add to the response, names and values alternating. */
  readonly answerFields: readonly string[]
  /** True: the client came in by its session. */
  readonly ofSession: boolean
  /** CORS fields for an answer in which the service has none. Names and values alternate. */
  readonly cors: readonly string[]
  /** Counts the bytes of the answer's body. */
  readonly sent: { bytes: number }
  /** Ends the exchange early when its permission ends. */
  readonly cancellation: Cancellation
  /** Writes the last event of an event stream that is ended early; null: the client expects no such event. */
  readonly lastEvent: ((code: ProblemCode) => string) | null
  /** Makes the client's session id from that of an MCP server; null: the service's fields pass unchanged. */
  readonly seal: ((session: string) => string) | null
}
export type ForwardDeps = {
  readonly upstream: Upstream
  /** The Host field for the upstream; null: the client's. */
  readonly hostField: string | null
  readonly rules: HeaderRules
  /** The route file's names of header fields, from which `rules` was made. */
  readonly headers: HeaderNames
  /** Limits for a client that sends a body or reads a response. */
  readonly pace: PaceLimits
  readonly bodies: BodyMemory
  /** The public port, which a forwarded host may contain. */
  readonly publicPort: number
  /** True: the file has a sign-in, so the service must not set the cookies of the sidecar. */
  readonly keepsCookies: boolean
  /** The memory of answers that are held until they are edited. */
  readonly held: HeldAnswers
}
/** `answered`: the response has begun or is complete. Otherwise the client got no byte of a response. */
export type Forwarded =
  | { readonly kind: 'answered'; readonly status: number }
  | { readonly kind: 'failed'; readonly code: ProblemCode; readonly cause: Error }
  | { readonly kind: 'abandoned' }

/** Never throws. Resolves when the response has begun or has failed. */
export async function forward(permit: Permit, forwarding: Forwarding, deps: ForwardDeps): Promise<Forwarded> {
  const first = await dispatch(permit, forwarding, deps)
  const again = first.kind === 'failed' && forwarding.cancellation.code === null && isRepeatable(permit, first.cause)
  return again ? dispatch(permit, forwarding, deps) : first
}

const WHOLE_BYTES_MAX = 16 * 1024
/** The fields for the upstream, names and values alternating, without framing. */
function fieldsFor(permit: Permit, forwarding: Forwarding, { rules, publicPort, hostField }: ForwardDeps): string[] {
  const { route, identity, mcp, filter } = permit
  const plain = mcp?.request ?? permit.request
  const request = filter === null || mcp !== null ? plain : wholeRequest(plain, filter.shadow)
  const { client, origin, requestId, traceparent } = forwarding
  const { version } = request
  const { hostname, port } = origin.host ?? request.host
  // Upstreams use the port in links, so one that the sidecar does not serve is left out.
  const isServed = port !== null && (Number(port) === publicPort || Number(port) === client.localPort())
  const forwarded = { for: origin.address, host: isServed ? `${hostname}:${port}` : hostname, proto: origin.scheme }
  const audience = route.upstream?.assertionAudience ?? null
  const own = { version, host: hostField ?? request.hostField, forwarded, requestId, traceparent, identity, audience }
  const { raw, names, connectionListed } = request
  return upstreamFields({ raw, names, connectionListed, rules, forwardToken: route.forwardToken, own })
}

function dispatch(permit: Permit, forwarding: Forwarding, deps: ForwardDeps): Promise<Forwarded> {
  const { promise, resolve } = Promise.withResolvers<Forwarded>()
  const mayEndLate = deps.upstream.version === '2'
  const relay = new AnswerRelay(forwarding, deps, { resolve, mayEndLate, headersTimeoutMs: timeoutOf(permit, deps) })
  const { filter } = permit
  const whenDone = (callback: () => void): void => {
    if (forwarding.res.destroyed) callback()
    else forwarding.res.once('close', callback)
  }
  const handler = filter === null ? relay : filtered(relay, { filter, held: deps.held, whenDone })
  try {
    deps.upstream.send(requestTo(permit, forwarding, deps), handler)
  } catch (err) {
    const cause = err instanceof Error ? err : new Error(String(err))
    resolve({ kind: 'failed', code: 'upstream_unavailable', cause })
  }
  return promise
}

/** The longest silence before the header section of the response, in milliseconds. */
export const timeoutOf = ({ route }: Permit, { upstream }: ForwardDeps): number =>
  route.upstreamHeadersMs ?? upstream.headersTimeoutMs

export function requestTo(permit: Permit, forwarding: Forwarding, deps: ForwardDeps): UpstreamRequest {
  const { request, identity } = permit
  const { rules } = deps
  const { client, origin } = forwarding
  const headers = fieldsFor(permit, forwarding, deps)
  if (request.bodyBytes !== null && request.bodyBytes > 0) headers.push('content-length', String(request.bodyBytes))
  const announced = announcedTrailers({ request, rules })
  return {
    method: request.method,
    path: sentTarget(request.target.raw, permit.route),
    headers,
    body: bodyOf(permit, forwarding, deps),
    announced,
    trailers: () => passingTrailers(client.trailers(), { request, rules, announced }),
    patient: isGrpcCall(permit, deps),
    headersTimeoutMs: permit.route.upstreamHeadersMs,
    sender: { connection: client.connection(), name: `${origin.address} ${identity?.subject ?? ''}` },
  }
}

/** The target for the service. After `strip_path` the rest begins with one slash: the parser refuses empty names and needless encodings. */
export function sentTarget(
  raw: string,
  { stripPath, addPath, shadow, id }: Pick<Permit['route'], keyof MovedPaths | 'shadow' | 'id'>,
): string {
  if (stripPath === null && addPath === null) return raw
  const rest = raw.slice(stripPath?.length ?? 0)
  if (!raw.startsWith(stripPath ?? '/') || !/^(?:[/?]|$)/.test(rest)) {
    // In shadow mode the request passes even if its path does not begin with the route's prefix.
    if (shadow) return raw
    throw new TypeError(`${id} does not have this path`)
  }
  const sent = `${addPath ?? ''}${rest}`
  return sent.startsWith('/') ? sent : `/${sent}`
}

/** The largest number that can be a status (RFC 9110 section 15). */
const STATUS_MAX = 599
/** How many informational responses are forwarded: they are sent even if the client does not read. */
const INFORMED_MAX = 16

type Handling = {
  readonly resolve: (forwarded: Forwarded) => void
  /** True if the end of the response may arrive after its last byte, as in HTTP/2. */
  readonly mayEndLate: boolean
  readonly headersTimeoutMs: number
}

type Relaying = Omit<Forwarding, 'origin' | 'requestId' | 'traceparent' | 'sendContinue'>

/** Sends the response of the upstream to the client while it arrives. */
export class AnswerRelay implements Dispatcher.DispatchHandler {
  /** Present only for a WebSocket handshake. */
  onRequestUpgrade?: NonNullable<Dispatcher.DispatchHandler['onRequestUpgrade']>
  readonly #relaying: Relaying
  readonly #deps: ForwardDeps
  readonly #handling: Handling
  readonly #pace: Pace
  #abort: ((reason: Error) => void) | undefined
  #over = false
  /** Builds the trailers that end the response early in an orderly way; null: they cannot. */
  #ending: ((code: ProblemCode) => [string, string][]) | null = null
  #bodyBytes = -1
  /** The time of the first informational response, or of the last piece of the request's body sent after it. */
  #informedAtMs: number | null = null
  #informedCount = 0
  /** The head of the answer until Node sends it with the first piece of the body; before that the answer can still become an error. */
  #head: { readonly status: number; readonly fields: string[] } | null = null
  /** The complete body, sent in one write with the header section: two writes cost three times as much. */
  #whole: Buffer | null = null
  #streamed = false
  readonly #gone = (): void => {
    const { res } = this.#relaying
    this.#pace.rest()
    if (res.writableFinished) return
    this.#abort?.(new Error('the client closed the connection'))
    this.#handling.resolve({ kind: 'abandoned' })
  }

  constructor(relaying: Relaying, deps: ForwardDeps, handling: Handling) {
    this.#relaying = relaying
    this.#deps = deps
    this.#handling = handling
    const { res, cancellation } = relaying
    // A client that reads too slowly must not hold the upstream's connection.
    this.#pace = new Pace(deps.pace, () => res.destroy())
    res.on('close', this.#gone)
    cancellation.listen((code) => this.#cancel(code))
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#abort = (reason) => controller.abort(reason)
    if (this.#relaying.res.destroyed || this.#over) this.#abort(new Error('the exchange ended before it was sent'))
  }

  onResponseStart(controller: Dispatcher.DispatchController, status: number): void {
    if (this.#over) return
    const { client, res, answerFields, ofSession, cors, cancellation } = this.#relaying
    const { keepsCookies } = this.#deps
    if (status < 200) return void this.#inform(status, controller.rawHeaders)
    // Such a status is an error: an HTTP/2 client would get a reset stream.
    if (status > STATUS_MAX) return void this.#fail(new Error(`the upstream answered with the status ${status}`))
    if (hasOtherCoding(controller.rawHeaders))
      return void this.#fail(new Error('the upstream used an unknown transfer coding'))
    const given = clientFields(status, controller.rawHeaders, { client, keepsCookies, ofSession, cors })
    const { seal } = this.#relaying
    const fields = seal === null ? given : withSealed(given, seal)
    this.#ending = endingOf(fields, client.version)
    cancellation.endless = isEventStream(fields)
    this.#bodyBytes = Number(firstValue(fields, 'content-length') ?? -1)
    this.#head = { status, fields: fields.concat(answerFields) }
    if (this.#ending !== null) {
      // Clients of event streams need the header section before the first event.
      this.#begin()
      if (!this.#over) res.flushHeaders()
    } else if (client.version === '2') {
      // The head is sent at once, but first a connection that broke with it gets one pass of the event loop to report its error.
      setImmediate(setImmediate, () => this.#begin())
    }
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.#over) return
    this.#relaying.sent.bytes += chunk.length
    if (chunk.length !== this.#bodyBytes || this.#bodyBytes > WHOLE_BYTES_MAX || this.#ending !== null) {
      this.#streamed = true
      this.#begin()
      if (this.#over) return
      this.#pace.moved(chunk.length)
      this.#deps.bodies.passed(chunk.length)
      if (!this.#relaying.res.write(chunk)) this.#hold(controller)
      return
    }
    this.#whole = chunk
    if (this.#handling.mayEndLate) setImmediate(() => this.#sendWhole())
  }

  onResponseEnd(controller: Dispatcher.DispatchController): void {
    if (this.#over) return
    this.#begin()
    if (this.#over) return
    const { client, res } = this.#relaying
    // The library would else make up a final response.
    if (!res.headersSent) return void this.#fail(new Error('the upstream sent no final response'))
    const trailers = pairsOf(downstreamFields(rawFields(controller.rawTrailers))).filter(([name]) => mayTrail(name))
    if (trailers.length > 0) res.addTrailers(trailers)
    const body = this.#whole
    this.#whole = null
    if (body === null) res.end()
    else res.end(body.toString('latin1'), 'latin1')
    // An HTTP/2 client can hold back even a small body, by its flow-control window.
    if (body !== null) this.#pace.moved(body.length)
    if ((this.#streamed || client.version === '2') && res.writableLength > 0) this.#pace.wait()
  }

  onResponseError(_controller: Dispatcher.DispatchController, err: Error): void {
    const { res } = this.#relaying
    res.off('close', this.#gone)
    if (this.#over) return
    this.#over = true
    if (res.headersSent) return void res.destroy()
    // A request that the service has begun to answer is not sent again.
    const cause = this.#head === null ? err : new Error(err.message)
    this.#handling.resolve({ kind: 'failed', code: failureOf(err), cause })
  }

  #fail(cause: Error): void {
    this.#relaying.res.off('close', this.#gone)
    this.#over = true
    this.#abort?.(cause)
    this.#handling.resolve({ kind: 'failed', code: failureOf(cause), cause })
  }

  #cancel(code: ProblemCode): void {
    const { res } = this.#relaying
    this.#over = true
    res.off('close', this.#gone)
    const cause = new Error(`cancelled: ${code}`)
    this.#abort?.(cause)
    if (!res.headersSent) this.#handling.resolve({ kind: 'failed', code, cause })
    else if (this.#ending === null) res.destroy()
    else {
      const { lastEvent } = this.#relaying
      // A blank line first: the client drops an event that was cut short.
      if (lastEvent !== null) res.write(Buffer.from(`\n\nevent: message\ndata: ${lastEvent(code)}\n\n`))
      res.addTrailers(this.#ending(code))
      res.end()
    }
  }

  /** Forwards an informational response. Each one restarts the library's timeout, so together they could hold the request for ever. */
  #inform(status: number, raw: Dispatcher.DispatchController['rawHeaders']): void {
    const { client, res } = this.#relaying
    const { keepsCookies } = this.#deps
    const nowMs = performance.now()
    if (this.#informedAtMs === null && !client.complete()) {
      client.body.on('data', () => {
        this.#informedAtMs = performance.now()
      })
    }
    this.#informedAtMs ??= nowMs
    if (nowMs - this.#informedAtMs > this.#handling.headersTimeoutMs) return void this.#fail(headersTimeout())
    this.#informedCount += 1
    if (this.#informedCount <= INFORMED_MAX) inform(res, status, raw, { client, keepsCookies })
  }

  #begin(): void {
    if (this.#over || this.#head === null) return
    const { status, fields } = this.#head
    this.#head = null
    try {
      this.#relaying.res.writeHead(status, fields)
    } catch (err) {
      // The upstream's header fields are not valid.
      return void this.#fail(err instanceof Error ? err : new Error(String(err)))
    }
    this.#handling.resolve({ kind: 'answered', status })
  }

  /** Pauses the upstream until the client has read the sent bytes. */
  #hold(controller: Dispatcher.DispatchController): void {
    controller.pause()
    this.#pace.wait()
    this.#relaying.res.once('drain', () => {
      this.#pace.rest()
      controller.resume()
    })
  }

  #sendWhole(): void {
    this.#begin()
    if (this.#over || this.#whole === null) return
    this.#relaying.res.write(this.#whole)
    this.#pace.moved(this.#whole.length)
    this.#whole = null
  }
}

const withSealed = (fields: readonly string[], seal: (session: string) => string): string[] =>
  fields.map((value, at) => (at % 2 === 1 && fields[at - 1]?.toLowerCase() === SESSION ? seal(value) : value))

function bodyOf(permit: Permit, { client, sendContinue }: Forwarding, deps: ForwardDeps): Buffer | Readable | null {
  if (permit.body !== null) return permit.body
  if (permit.request.bodyBytes === 0) return null
  return streamBody({ client, sendContinue, pace: isGrpcCall(permit, deps) ? null : deps.pace, bodies: deps.bodies })
}

/** True for a gRPC call: either side may be silent for long. Requires HTTP/2 on both sides, not just the content type. */
const isGrpcCall = ({ request }: Permit, { upstream }: ForwardDeps): boolean =>
  request.version === '2' && upstream.version === '2' && isGrpc(request.raw)
