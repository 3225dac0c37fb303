/** One request from its arrival to its end: judged, recorded, then forwarded or refused, and cut when its permission ends. */
import { randomUUID } from 'node:crypto'
import type { ProblemCode } from '../../pdp/process/problems.ts'
import { type Admitted, admit } from '../enforce/admission.ts'
import { decisionLine, type Outcome } from '../enforce/decision-log.ts'
import {
  type DenialMembers,
  describeDenial,
  describeGrpcDenial,
  OWN_STATUS,
  sendDenial,
} from '../enforce/denial-response.ts'
import { type EnforceDeps, enforce, type OwnAnswer, type Permit } from '../enforce/enforce.ts'
import type { JudgedAgain, PermissionWatch } from '../enforce/permission-watch.ts'
import type { Places } from '../enforce/places.ts'
import type { ResourceMetadata } from '../enforce/resource-metadata.ts'
import type { ClientAnswer, ClientRequest, Upgrade } from '../http/client.ts'
import { firstValue } from '../http/fields.ts'
import { isGrpc } from '../http/grpc.ts'
import type { Networks } from '../request/addresses.ts'
import type { InboundRequest } from '../request/inbound.ts'
import { type Origin, originOf } from '../request/origin.ts'
import type { SidecarLimits } from '../route-file/default-limits.ts'
import type { SubjectsInLog } from '../route-file/route-file.ts'
import { readBody } from '../routes/json-body.ts'
import { Cancellation } from '../upstream/cancellation.ts'
import { type ForwardDeps, type Forwarded, type Forwarding, forward } from '../upstream/forward.ts'
import { openTunnel, type Tunneled } from '../upstream/websocket-tunnel.ts'
import type { SidecarLog } from './log.ts'
import type { Metrics } from './metrics.ts'

export type ExchangeDeps = {
  readonly enforcing: EnforceDeps
  readonly forwarding: ForwardDeps
  readonly lifetimes: PermissionWatch
  readonly metadata: ResourceMetadata | null
  readonly limits: SidecarLimits
  readonly places: Places
  /** Requests that may be under way to the upstream. */
  readonly requestsMax: number
  /** Null when none are. */
  readonly trustedProxies: Networks | null
  /** Of a body that a check reads. */
  readonly bodyBytesMax: number
  readonly subjectsInLog: SubjectsInLog
  /** For the next proof; null when proofs need none. */
  readonly proofNonce: () => string | null
  readonly metrics: Metrics
  /** Never throws. */
  readonly log: SidecarLog
  readonly draining: () => boolean
  /** False once other rules than these are in force. */
  readonly isCurrent: () => boolean
  /** By the rules that are in force at that moment. */
  readonly judgeAgain: (permit: Permit, options: { readonly upgrade: boolean }) => Promise<JudgedAgain>
}
type Serving = {
  readonly client: ClientRequest
  readonly origin: Origin
  readonly res: ClientAnswer
  readonly upgrade: Upgrade | null
  readonly requestId: string
  /** The client waits for 100 (Continue), and was not told yet. */
  awaitsContinue: boolean
}

/** Never rejects. */
export async function serve(
  client: ClientRequest,
  res: ClientAnswer,
  options: { readonly expectsContinue: boolean; readonly upgrade: Upgrade | null; readonly deps: ExchangeDeps },
): Promise<void> {
  const { deps, expectsContinue, upgrade } = options
  const startedMs = performance.now()
  const origin = originOf(client, deps.trustedProxies)
  const requestId = requestIdOf(client)
  const serving: Serving = { client, origin, res, upgrade, requestId, awaitsContinue: expectsContinue }
  try {
    const readJson = (request: InboundRequest): Promise<Buffer> => {
      sendContinue(serving)
      return readBody(client, request, { bytesMax: deps.bodyBytesMax, timeoutMs: deps.limits.bodyReadMs })
    }
    const admission = beginAdmission(serving, deps)
    const arrival = { client, origin, admission, readBody: readJson, upgrade: upgrade !== null }
    const judged = await enforce(arrival, deps.enforcing)
    record(serving, judged, { deps, durationMs: performance.now() - startedMs })
    // The parser may have refused the rest of the message meanwhile, or the client may be gone.
    if (client.gone()) return
    await act(serving, judged, deps)
  } catch (err) {
    deps.log.error({ event: 'request_failed', request_id: serving.requestId, err })
    res.destroy()
  }
}

/** The places are given back when the answer is over, or the connection that a WebSocket is. */
function beginAdmission({ origin, res, upgrade }: Serving, { places, limits, requestsMax }: ExchangeDeps): Admitted {
  const about = { address: origin.address, upgrade: upgrade !== null, limits, requestsMax }
  const admission = admit(places, about)
  const leave = (): void => admission.leave()
  if (upgrade === null) res.once('close', leave)
  else upgrade.socket.once('close', leave)
  return admission
}

async function act(serving: Serving, judged: Outcome, deps: ExchangeDeps): Promise<void> {
  if (judged.kind === 'denial') return refuse(serving, judged, deps)
  if (judged.kind !== 'permit') return answerAlone(serving, judged, deps)
  const { client, origin, res, requestId, upgrade } = serving
  const forwarding: Forwarding = {
    client,
    origin,
    res,
    requestId,
    sendContinue: () => sendContinue(serving),
    answerFields: ['x-request-id', requestId, ...closing(client, deps), ...nonceFor(judged, deps)],
    cancellation: new Cancellation(),
  }
  const over = beginLifetime(judged, { forwarding, upgrade: upgrade !== null }, deps)
  const result = await (upgrade === null
    ? forwardOnce(judged, { forwarding, over }, deps)
    : tunnel(judged, { forwarding, over, upgrade }, deps))
  if (result.kind === 'answered') deps.metrics.forwarded(judged.route.id, result.status)
  if (result.kind !== 'failed') return
  const reason = result.cause.message
  if (forwarding.cancellation.code === null)
    deps.log.warn({ event: 'upstream_failed', request_id: requestId, route: judged.route.id, reason })
  refuse(serving, { code: result.code, members: {} }, deps)
}

/** HTTP/2 says it for the whole connection, by GOAWAY. */
const closing = ({ version }: ClientRequest, deps: ExchangeDeps): string[] =>
  version !== '2' && deps.draining() ? ['connection', 'close'] : []

/** RFC 9449 section 8.2: a nonce that ages is replaced with the answer to a request that was good. */
function nonceFor({ request, identity }: Permit, deps: ExchangeDeps): string[] {
  const nonce = identity !== null && request.proofs.length > 0 ? deps.proofNonce() : null
  return nonce === null ? [] : ['dpop-nonce', nonce]
}

/** Returns what to call when the exchange has ended. */
function beginLifetime(
  permit: Permit,
  { forwarding, upgrade }: { readonly forwarding: Forwarding; readonly upgrade: boolean },
  { lifetimes, log, metrics, isCurrent, judgeAgain }: ExchangeDeps,
): () => void {
  const { cancellation: cut, requestId } = forwarding
  const { standing, route } = permit
  const open = {
    standing,
    stale: !isCurrent(),
    judgeAgain: () => judgeAgain(permit, { upgrade }),
    isEndless: () => cut.endless,
  }
  return lifetimes.begin(open, (code) => {
    log.info({ event: 'cut', request_id: requestId, route: route.id, reason: code })
    metrics.cancelled(route.id, code)
    cut.cancel(code)
  })
}

type Lived = { readonly forwarding: Forwarding; readonly over: () => void }

function forwardOnce(permit: Permit, { forwarding, over }: Lived, deps: ExchangeDeps): Promise<Forwarded> {
  forwarding.res.once('close', over)
  return forward(permit, forwarding, deps.forwarding)
}

async function tunnel(
  permit: Permit,
  { forwarding, over, upgrade }: Lived & { readonly upgrade: Upgrade },
  deps: ExchangeDeps,
): Promise<Tunneled> {
  forwarding.cancellation.endless = true
  const result = await openTunnel(permit, { ...forwarding, upgrade, onEnd: over }, deps.forwarding)
  if (result.kind !== 'opened') over()
  return result
}

/** Only once the request was judged as far as it can be without its body. */
function sendContinue(serving: Serving): void {
  if (!serving.awaitsContinue || serving.res.headersSent) return
  serving.awaitsContinue = false
  serving.res.writeContinue()
}

function refuse(
  { client, res, requestId, upgrade }: Serving,
  { code, members }: { readonly code: ProblemCode; readonly members: DenialMembers },
  deps: ExchangeDeps,
): void {
  const context = { requestId, metadataUrl: deps.metadata?.url ?? null, nonce: deps.proofNonce() }
  // What is left of the body is not read, so nothing can follow it on this connection.
  const close = client.version !== '2' && (deps.draining() || !client.complete() || upgrade !== null)
  const describe = client.version === '2' && isGrpc(client.raw) ? describeGrpcDenial : describeDenial
  sendDenial(res, describe(code, members, context), { close })
}

function answerAlone({ res, requestId }: Serving, own: OwnAnswer, { metadata }: ExchangeDeps): void {
  const id = ['x-request-id', requestId]
  if (own.kind === 'options') res.writeHead(OWN_STATUS.options, ['allow', own.allow.join(', '), ...id])
  else res.writeHead(OWN_STATUS.metadata, ['content-type', 'application/json', ...id])
  res.end(own.kind === 'options' ? undefined : metadata?.body)
}

const REQUEST_ID = /^[A-Za-z0-9._-]{1,128}$/
// W3C Trace Context section 3.2.
const TRACEPARENT = /^[0-9a-f]{2}-([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}(?:-.*)?$/

/** The client's own, when it can be told apart from text that would break a log; it reaches the upstream and the client. */
function requestIdOf(client: ClientRequest): string {
  const value = firstValue(client.raw, 'x-request-id')
  return value !== null && REQUEST_ID.test(value) ? value : randomUUID()
}

function record(
  { client, origin, requestId }: Serving,
  judged: Outcome,
  { deps, durationMs }: { readonly deps: ExchangeDeps; readonly durationMs: number },
): void {
  const traceId = TRACEPARENT.exec(firstValue(client.raw, 'traceparent') ?? '')?.[1] ?? null
  const { method, version } = client
  const { address } = origin
  const about = { requestId, method, version, address, traceId, durationMs, subjects: deps.subjectsInLog }
  const line = decisionLine(judged, about)
  deps.metrics.decided(line.route ?? '', line)
  deps.log[line.reason === 'internal' ? 'error' : 'info'](line)
}
