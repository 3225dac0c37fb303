/** `forward()` with a fake client and a scripted upstream, for requests that `enforce()` permits. */
import { EventEmitter } from 'node:events'
import { Readable } from 'node:stream'
import type { Dispatcher } from 'undici'
import type { Permit } from '../../../sidecar/enforce/enforce.ts'
import { type ClientAnswer, type ClientRequest, syntheticRequest } from '../../../sidecar/http/client-request.ts'
import { createHeaderRules } from '../../../sidecar/http/fields.ts'
import { HeldAnswers } from '../../../sidecar/upstream/answer-filter.ts'
import { BodyMemory } from '../../../sidecar/upstream/body-memory.ts'
import { Cancellation } from '../../../sidecar/upstream/cancellation.ts'
import { type ForwardDeps, type Forwarded, type Forwarding, forward } from '../../../sidecar/upstream/forward.ts'
import { Controller, type UpstreamRequest } from '../../../sidecar/upstream/upstream.ts'
import { type Case, run } from './enforcing.ts'

/** A client's response that is written down instead of sent. */
class WrittenAnswer extends EventEmitter implements ClientAnswer {
  status: number | null = null
  fields: string[] = []
  trailers: [string, string][] = []
  readonly informed: (string | number)[][] = []
  readonly chunks: Buffer[] = []
  headersSent = false
  flushed = false
  destroyed = false
  writableFinished = false
  readonly writableLength = 0
  /** What `write` says: false is a client that reads too slowly. */
  takes = true

  writeContinue(): void {
    throw new Error('forward() leaves 100 (Continue) to its caller')
  }

  writeInformation(status: number, fields: string[]): void {
    this.informed.push([status, ...fields])
  }

  writeHead(status: number, fields: string[]): void {
    if (fields.some((field) => field.includes('\n'))) throw new TypeError('Invalid character in header content')
    this.status = status
    this.fields = fields
    this.headersSent = true
  }

  flushHeaders(): void {
    this.flushed = true
  }

  write(chunk: Buffer): boolean {
    this.chunks.push(chunk)
    return this.takes
  }

  addTrailers(trailers: [string, string][]): void {
    this.trailers = trailers
  }

  end(body = ''): void {
    this.chunks.push(Buffer.from(body, 'latin1'))
    this.writableFinished = true
    this.emit('close')
  }

  destroy(): void {
    this.destroyed = true
    this.emit('close')
  }

  get body(): string {
    return Buffer.concat(this.chunks).toString('latin1')
  }
}

/** What an upstream does with one request; a thrown error means that nothing was sent. */
export type Script = (upstream: {
  readonly head: (status: number, ...fields: string[]) => void
  readonly data: (text: string) => void
  readonly end: (...trailers: string[]) => void
  readonly fail: (err: Error) => void
  readonly answer: WrittenAnswer
  readonly cancellation: Cancellation
  readonly controller: Controller
}) => void

/** A request as `enforce()` gets it, and how it is forwarded. */
export type Exchange = {
  readonly request?: Case
  readonly client?: Partial<ClientRequest>
  readonly forwarding?: Partial<Forwarding>
  readonly deps?: Partial<ForwardDeps>
  /** HTTP version on both sides. */
  readonly version?: '2'
  /** One for each attempt; the last one also answers later attempts. */
  readonly scripts?: readonly Script[]
}
export type Sent = {
  readonly forwarded: Forwarded
  /** What the upstream got, an entry for each attempt. */
  readonly requests: readonly UpstreamRequest[]
  /** Why each attempt was aborted; null: it was not. */
  readonly aborted: readonly (string | null)[]
  readonly answer: WrittenAnswer
  readonly cancellation: Cancellation
}

export const answerOk: Script = ({ head, end }) => {
  head(200)
  end()
}

export async function send(one: Exchange): Promise<Sent> {
  const permit = await permitOf(one)
  const answer = new WrittenAnswer()
  const cancellation = new Cancellation()
  const requests: UpstreamRequest[] = []
  const controllers: Controller[] = []
  const scripts = one.scripts ?? [answerOk]
  const { method, target, raw } = { method: permit.request.method, target: permit.request.target.raw, raw: [] }
  const version: '1.1' | '2' = one.version ?? '1.1'
  const client = { ...syntheticRequest({ method, target, raw }), body: Readable.from([]), version, ...one.client }
  const forwarded = await forward(
    permit,
    {
      client,
      origin: { address: '192.0.2.1', scheme: 'https', host: null, fault: null },
      res: answer,
      requestId: 'request-1',
      traceparent: null,
      sendContinue: () => undefined,
      answerFields: [],
      cors: [],
      sent: { bytes: 0 },
      ofSession: false,
      lastEvent: null,
      seal: null,
      cancellation,
      ...one.forwarding,
    },
    {
      upstream: {
        version,
        headersTimeoutMs: 60_000,
        send(request, handler) {
          const script = scripts[requests.length] ?? scripts.at(-1)
          requests.push(request)
          const controller = new Controller(() => undefined)
          controllers.push(controller)
          script?.({ ...scripted(handler, controller), answer, cancellation })
        },
        upgrade: null,
        close: () => undefined,
      },
      hostField: null,
      rules: createHeaderRules({ strip: [], pass: [] }),
      headers: { strip: [], pass: [] },
      pace: { idleMs: 60_000, graceMs: 60_000, bytesPerSecondMin: 0 },
      bodies: new BodyMemory(() => undefined),
      publicPort: 443,
      keepsCookies: false,
      held: new HeldAnswers(),
      ...one.deps,
    },
  )
  // A small body over HTTP/2 waits for the end of the response for one turn of the event loop.
  await new Promise(setImmediate)
  return {
    forwarded,
    requests,
    aborted: controllers.map(({ reason }) => reason?.message ?? null),
    answer,
    cancellation,
  }
}

async function permitOf({ request = {}, version }: Exchange): Promise<Permit> {
  const { outcome } = await run(request)
  if (outcome.kind !== 'permit') throw new Error(`enforce() did not permit the request: ${JSON.stringify(outcome)}`)
  return version === undefined ? outcome : { ...outcome, request: { ...outcome.request, version } }
}

function scripted(handler: Dispatcher.DispatchHandler, controller: Controller) {
  handler.onRequestStart?.(controller, {})
  return {
    controller,
    head(status: number, ...fields: string[]) {
      controller.rawHeaders = fields
      handler.onResponseStart?.(controller, status, {})
    },
    data: (text: string) => handler.onResponseData?.(controller, Buffer.from(text, 'latin1')),
    end(...trailers: string[]) {
      controller.rawTrailers = trailers
      handler.onResponseEnd?.(controller, {})
    },
    fail: (err: Error) => handler.onResponseError?.(controller, err),
  }
}
