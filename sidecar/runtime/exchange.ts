/** Serves one request: enforces the rules, logs the outcome, then forwards or denies, and cancels when the permission ends. */
import type { Networks } from '../../pdp/shared/base/addresses.ts'
import type { ProblemCode } from '../../pdp/shared/base/problems.ts'
import type { Span, Tracing } from '../../pdp/shared/process/tracing/tracing.ts'
import { type Admitted, admit } from '../enforce/admission.ts'
import { enforceLatest } from '../enforce/current-rules.ts'
import type { Denial } from '../enforce/denial.ts'
import {
  type DenialAnswer,
  type DenialMembers,
  describeDenial,
  describeGrpcDenial,
  OWN_STATUS,
  sendDenial,
} from '../enforce/denial-response.ts'
import type { EnforceDeps, Outcome, OwnAnswer, Permit } from '../enforce/enforce.ts'
import type { PermissionWatch, Reevaluation } from '../enforce/permission-watch.ts'
import type { Places } from '../enforce/places.ts'
import { record, requestIdOf } from '../enforce/record.ts'
import type { ResourceMetadata } from '../enforce/resource-metadata.ts'
import { beginSpan } from '../enforce/trace.ts'
import type { Turns } from '../enforce/turns.ts'
import type { ClientAnswer, ClientRequest, Upgrade } from '../http/client-request.ts'
import { isGrpc } from '../http/grpc.ts'
import type { InboundRequest } from '../request/inbound.ts'
import { type Origin, originOf } from '../request/origin.ts'
import type { SidecarLimits } from '../route-file/default-limits.ts'
import type { SubjectsInLog } from '../route-file/route-file.ts'
import { type ReadBody, readBody } from '../routes/json-body.ts'
import type { SignIn } from '../sign-in/sign-in.ts'
import type { Visit } from '../sign-in/visit.ts'
import { Cancellation } from '../upstream/cancellation.ts'
import { type ForwardDeps, type Forwarded, type Forwarding, forward } from '../upstream/forward.ts'
import { openTunnel, type Tunneled } from '../upstream/websocket-tunnel.ts'
import type { SidecarLog } from './log.ts'
import type { Metrics } from './metrics.ts'

export type ExchangeDeps = {
  readonly enforcing: EnforceDeps
  /** Null: nobody collects spans. */
  readonly tracing: Tracing | null
  readonly forwarding: ForwardDeps
  readonly permissionWatch: PermissionWatch
  readonly metadata: ResourceMetadata | null
  /** Null: nobody signs in here. */
  readonly signIn: SignIn | null
  readonly limits: SidecarLimits
  readonly places: Places
  readonly turns: Turns
  /** How many requests to the upstream may be open at once. */
  readonly requestsMax: number
  /** Null: no proxy is trusted. */
  readonly trustedProxies: Networks | null
  /** The size limit of a body that a check reads. */
  readonly bodyBytesMax: number
  readonly subjectsInLog: SubjectsInLog
  /** Whether the line of an allowed request is written. */
  readonly logsAllowed: () => boolean
  /** The nonce for the next proof; null if proofs need none. */
  readonly proofNonce: () => string | null
  readonly metrics: Metrics
  /** Never throws. */
  readonly log: SidecarLog
  readonly draining: () => boolean
  /** False once a reload has replaced these rules. */
  readonly isCurrent: () => boolean
  /** What is in force now; it stays usable until `closing` closes. */
  readonly latest: (closing: Closing | null) => ExchangeDeps
  /** Evaluates an open exchange by the current rules. */
  readonly reevaluate: (
    permit: Permit,
    exchange: { readonly client: ClientRequest; readonly upgrade: boolean },
  ) => Promise<Reevaluation>
}
/** The answer to a request, or the connection of a WebSocket. */
export type Closing = { readonly destroyed: boolean; once(event: 'close', listener: () => void): unknown }
type Serving = {
  readonly client: ClientRequest
  origin: Origin
  readonly res: ClientAnswer
  readonly upgrade: Upgrade | null
  readonly requestId: string
  /** Null: nobody signs in here. */
  readonly visit: Visit | null
  readonly span: Span | null
  /** The client waits for 100 (Continue), which was not sent yet. */
  awaitsContinue: boolean
}

/** Never rejects. */
export async function serve(
  arrived: ClientRequest,
  res: ClientAnswer,
  options: { readonly expectsContinue: boolean; readonly upgrade: Upgrade | null; readonly deps: ExchangeDeps },
): Promise<void> {
  const { deps, expectsContinue, upgrade } = options
  const startedMs = performance.now()
  const visit = deps.signIn === null ? null : deps.signIn.visit(arrived)
  const client = visit === null ? arrived : visit.client
  const origin = originOf(client, deps.trustedProxies)
  const requestId = requestIdOf(client)
  const span = beginSpan(deps.tracing, client)
  const serving: Serving = { client, origin, res, upgrade, requestId, visit, span, awaitsContinue: expectsContinue }
  // Of a WebSocket, when the connection ends.
  if (span !== null) (upgrade?.socket ?? res).once('close', () => span.end())
  try {
    const read: ReadBody = async (request, need) => {
      if (need === 'absence' && request.bodyBytes === 0) return NO_BODY
      sendContinue(serving)
      return readBody(client, request, { need, bytesMax: deps.bodyBytesMax, timeoutMs: deps.limits.bodyReadMs })
    }
    const admission = beginAdmission(serving, deps)
    const browser = visit
    const arrival = { client, requestId, origin, admission, readBody: read, upgrade: upgrade !== null, browser }
    const latest = await enforceLatest(arrival, deps, {
      latest: () => deps.latest(upgrade?.socket ?? res),
      originBy: ({ trustedProxies }) => originOf(client, trustedProxies),
      span,
    })
    const { outcome, rules } = latest
    const durationMs = performance.now() - startedMs
    record(outcome, { client, address: latest.origin.address, requestId, durationMs, door: null, span }, rules)
    // Meanwhile the parser may have rejected the rest of the message, or the client may have left.
    if (client.gone()) return
    serving.origin = latest.origin
    await act(serving, outcome, rules)
  } catch (err) {
    deps.log.error({ event: 'request_failed', request_id: serving.requestId, err })
    res.destroy()
  }
}

const NO_BODY = Buffer.alloc(0)

/** The places are released when the answer ends, or when the connection of a WebSocket ends. */
function beginAdmission({ origin, res, upgrade }: Serving, deps: ExchangeDeps): Admitted {
  const { limits, requestsMax } = deps
  const admission = admit(deps, { address: origin.address, upgrade: upgrade !== null, limits, requestsMax })
  const leave = (): void => admission.leave()
  if (upgrade === null) res.on('close', leave)
  else upgrade.socket.once('close', leave)
  return admission
}

async function act(serving: Serving, outcome: Outcome, deps: ExchangeDeps): Promise<void> {
  if (outcome.kind === 'denial') return refuse(serving, outcome, deps)
  if (outcome.kind === 'sign_in') return answerSignIn(serving, outcome.request)
  if (outcome.kind !== 'permit') return answerAlone(serving, outcome, deps)
  const { client, origin, res, requestId, upgrade, visit } = serving
  const cookies = visit === null ? NO_FIELDS : visit.fields()
  const sending = serving.span?.child(client.method, 'client') ?? null
  const forwarding: Forwarding = {
    client,
    origin,
    res,
    requestId,
    traceparent: sending?.traceparent ?? null,
    sendContinue: () => sendContinue(serving),
    answerFields: ['x-request-id', requestId, ...closing(client, deps), ...nonceFor(outcome, deps), ...cookies],
    // What writes cookies says `no-store` itself.
    ofSession: visit?.hasSession() === true && cookies.length === 0,
    cancellation: new Cancellation(),
  }
  const onEnd = watchPermission(outcome, { forwarding, upgrade: upgrade !== null, visit }, deps)
  const result = await (upgrade === null
    ? forwardOnce(outcome, { forwarding, onEnd }, deps)
    : tunnel(outcome, { forwarding, onEnd, upgrade }, deps))
  if (result.kind === 'answered') sending?.set({ 'http.response.status_code': result.status })
  sending?.end(result.kind === 'failed' ? result.code : null)
  if (result.kind === 'answered') deps.metrics.forwarded(outcome.route.id, result.status)
  if (result.kind !== 'failed') return
  const reason = result.cause.message
  if (forwarding.cancellation.code === null)
    deps.log.warn({ event: 'upstream_failed', request_id: requestId, route: outcome.route.id, reason })
  deny(serving, { code: result.code, members: {} }, deps)
}

const NO_FIELDS: readonly string[] = []

/** HTTP/2 ends a connection by GOAWAY instead. */
const closing = ({ version }: ClientRequest, deps: ExchangeDeps): readonly string[] =>
  version !== '2' && deps.draining() ? ['connection', 'close'] : NO_FIELDS

/** RFC 9449 section 8.2: the response to a request with a valid proof carries the next nonce. */
function nonceFor({ request, identity }: Permit, deps: ExchangeDeps): readonly string[] {
  const nonce = identity !== null && request.proofs.length > 0 ? deps.proofNonce() : null
  return nonce === null ? NO_FIELDS : ['dpop-nonce', nonce]
}

/** Returns the function to call when the exchange has ended. */
function watchPermission(
  permit: Permit,
  {
    forwarding,
    upgrade,
    visit,
  }: Pick<Serving, 'visit'> & { readonly forwarding: Forwarding; readonly upgrade: boolean },
  { permissionWatch, log, metrics, isCurrent, reevaluate }: ExchangeDeps,
): () => void {
  const { cancellation, requestId } = forwarding
  const { basis, route } = permit
  const open = {
    basis,
    stale: !isCurrent(),
    reevaluate: () => reevaluate(permit, { client: forwarding.client, upgrade }),
    isEndless: () => cancellation.endless,
    isSignedOut: visit === null || basis === null ? null : () => visit.isEnded(),
  }
  return permissionWatch.begin(open, (code) => {
    log.info({ event: 'cut', request_id: requestId, route: route.id, reason: code })
    metrics.cancelled(route.id, code)
    cancellation.cancel(code)
  })
}

type Watched = { readonly forwarding: Forwarding; readonly onEnd: () => void }

function forwardOnce(permit: Permit, { forwarding, onEnd }: Watched, deps: ExchangeDeps): Promise<Forwarded> {
  forwarding.res.on('close', onEnd)
  return forward(permit, forwarding, deps.forwarding)
}

async function tunnel(
  permit: Permit,
  { forwarding, onEnd, upgrade }: Watched & { readonly upgrade: Upgrade },
  deps: ExchangeDeps,
): Promise<Tunneled> {
  forwarding.cancellation.endless = true
  const result = await openTunnel(permit, { ...forwarding, upgrade, onEnd }, deps.forwarding)
  if (result.kind !== 'opened') onEnd()
  return result
}

/** Called only after every check that needs no body, so that a denied client does not send one. */
function sendContinue(serving: Serving): void {
  if (!serving.awaitsContinue || serving.res.headersSent) return
  serving.awaitsContinue = false
  serving.res.writeContinue()
}

/** People get a page, or are sent to sign in. */
async function refuse(serving: Serving, denial: Denial, deps: ExchangeDeps): Promise<void> {
  const { client, requestId, visit } = serving
  const page = visit === null ? null : await visit.answer(denial, requestId)
  if (page === null || visit === null) return deny(serving, denial, deps)
  if (!client.gone()) sendOwn(serving, { ...page, fields: [...page.fields, ...visit.fields()] })
}

async function answerSignIn(serving: Serving, request: InboundRequest): Promise<void> {
  const { client, requestId, visit } = serving
  if (visit === null) throw new TypeError('a sign-in without its settings')
  sendContinue(serving)
  const answer = await visit.page(request, requestId)
  if (!client.gone()) sendOwn(serving, answer)
}

/** The rest of the request's body is not read. */
function sendOwn({ client, res, upgrade }: Serving, answer: DenialAnswer): void {
  const close = client.version !== '2' && (!client.complete() || upgrade !== null)
  sendDenial(res, answer, { close })
}

function deny(
  { client, res, requestId, upgrade, visit }: Serving,
  { code, members }: { readonly code: ProblemCode; readonly members: DenialMembers },
  deps: ExchangeDeps,
): void {
  const context = { requestId, metadataUrl: deps.metadata?.url ?? null, nonce: deps.proofNonce() }
  // The rest of the body is not read, so no other request can follow on this connection.
  const close = client.version !== '2' && (deps.draining() || !client.complete() || upgrade !== null)
  const describe = client.version === '2' && isGrpc(client.raw) ? describeGrpcDenial : describeDenial
  const answer = describe(code, members, context)
  sendDenial(res, visit === null ? answer : { ...answer, fields: [...answer.fields, ...visit.fields()] }, { close })
}

function answerAlone(
  { res, requestId }: Serving,
  own: Exclude<OwnAnswer, { kind: 'sign_in' }>,
  { metadata }: ExchangeDeps,
): void {
  const id = ['x-request-id', requestId]
  if (own.kind === 'options') res.writeHead(OWN_STATUS.options, ['allow', own.allow.join(', '), ...id])
  else res.writeHead(OWN_STATUS.metadata, ['content-type', 'application/json', ...id])
  res.end(own.kind === 'options' ? undefined : metadata?.body)
}
