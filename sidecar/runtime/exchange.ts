/** Serves one request: decides it, then forwards or answers, and cancels when the permission ends. */
import type { Networks } from '../../pdp/shared/base/addresses.ts'
import {
  type Arrived,
  type Closing,
  type Decided,
  decideExchange,
  type ExchangeRules,
} from '../enforce/decide-exchange.ts'
import { type DenialAnswer, denialStatus, rpcDenial, sendDenial } from '../enforce/denial-response.ts'
import type { Permit } from '../enforce/enforce.ts'
import { answerAlone, nextNonce, sharedFields } from '../enforce/own-answer.ts'
import type { PermissionWatch, Reevaluation } from '../enforce/permission-watch.ts'
import type { ClientAnswer, ClientRequest, Upgrade } from '../http/client-request.ts'
import { originOf } from '../request/origin.ts'
import { readBody } from '../routes/json-body.ts'
import { Cancellation } from '../upstream/cancellation.ts'
import { type ForwardDeps, type Forwarded, type Forwarding, forward } from '../upstream/forward.ts'
import { openTunnel, type Tunneled } from '../upstream/websocket-tunnel.ts'
import type { SidecarLog } from './log.ts'
import type { Metrics } from './metrics.ts'

export type ExchangeDeps = ExchangeRules & {
  readonly forwarding: ForwardDeps
  /** How requests of a route are forwarded, to the service that the route names. */
  readonly forwardingTo: (route: Permit['route']) => ForwardDeps
  readonly permissionWatch: PermissionWatch
  /** The networks of trusted proxies; null: no proxy is trusted. */
  readonly trustedProxies: Networks | null
  readonly metrics: Metrics
  /** Never throws. */
  readonly log: SidecarLog
  readonly draining: () => boolean
  /** The rules and parts in force now; they stay usable until `closing` closes. */
  readonly enter: (closing: Closing) => ExchangeDeps
  /** Evaluates an open exchange by the rules now in force. */
  readonly reevaluate: (
    permit: Permit,
    exchange: { readonly client: ClientRequest; readonly upgrade: boolean },
  ) => Promise<Reevaluation>
}
type Serving = {
  readonly res: ClientAnswer
  readonly upgrade: Upgrade | null
  /** True: the client waits for 100 (Continue), which was not sent yet. */
  awaitsContinue: boolean
}
type DecidedHere = Decided<ExchangeDeps>

/** Never rejects. */
export function serve(
  client: ClientRequest,
  res: ClientAnswer,
  options: { readonly expectsContinue: boolean; readonly upgrade: Upgrade | null; readonly deps: ExchangeDeps },
): Promise<void> {
  const { deps, expectsContinue, upgrade } = options
  const serving: Serving = { res, upgrade, awaitsContinue: expectsContinue }
  // A WebSocket exchange ends with its connection, not with its response.
  const closing = upgrade?.socket ?? res
  const arrived: Arrived<ExchangeDeps> = {
    client,
    door: null,
    upgrade: upgrade !== null,
    closing,
    originBy: ({ trustedProxies }, seen) => originOf(seen, trustedProxies),
    async readBody(seen, request, limited) {
      if (request.bodyBytes === 0) return NO_BODY
      sendContinue(serving)
      return readBody(seen, request, limited)
    },
    latest: () => deps.enter(closing),
    withinMs: null,
    objection: () => null,
  }
  return decideExchange(arrived, deps, {
    answer: (decided) => act(serving, decided),
    fail: () => void res.destroy(),
  })
}

const NO_BODY = Buffer.alloc(0)

async function act(serving: Serving, decided: DecidedHere): Promise<void> {
  const { outcome, client, write } = decided
  // While the request was decided, the parser may have rejected the rest of the message, or the client may have left.
  if (client.gone()) {
    write({})
    return
  }
  if (outcome.kind === 'permit') return pass(outcome, serving, decided)
  if (outcome.kind === 'sign_in') sendContinue(serving)
  const answer = await answerAlone(outcome, decided, null)
  if (!client.gone()) send(serving, answer, decided)
}

async function pass(permit: Permit, serving: Serving, decided: DecidedHere): Promise<void> {
  const { res, upgrade } = serving
  const { client, origin, requestId, browser, rules: deps } = decided
  const cookies = browser === null ? NO_FIELDS : browser.fields()
  const sending = decided.span?.child(client.method, 'client') ?? null
  const rpc = permit.mcp === null ? undefined : { id: permit.mcp.id, code: null, status: null }
  const forwarding: Forwarding = {
    client,
    origin,
    res,
    requestId,
    traceparent: sending?.traceparent ?? null,
    sendContinue: () => sendContinue(serving),
    answerFields: ['x-request-id', requestId, ...ending(client, deps), ...nextNonce(permit, deps), ...cookies],
    // Answers that set cookies have `no-store` already.
    ofSession: browser?.hasSession() === true && cookies.length === 0,
    cors: sharedFields(permit.route, client),
    sent: { bytes: 0 },
    cancellation: new Cancellation(),
    seal: permit.mcp?.seal ?? null,
    lastEvent: rpc?.id == null ? null : (code) => rpcDenial(code, rpc, { requestId }),
  }
  const onEnd = watchPermission(permit, { forwarding, upgrade: upgrade !== null }, decided)
  const result = await (upgrade === null
    ? forwardOnce(permit, { forwarding, onEnd }, deps)
    : tunnel(permit, { forwarding, onEnd, upgrade }, deps))
  writeAtEnd(result, forwarding, (end) => {
    const { count, counted } = permit.filter ?? {}
    if (count === undefined || counted === undefined) return void decided.write(end)
    void counted().then(() => {
      deps.metrics.filtered(permit.route.id, count, permit.route.shadow)
      decided.write({ ...end, removed: count.removed })
    })
  })
  if (result.kind === 'answered') sending?.set({ 'http.response.status_code': result.status })
  sending?.end(result.kind === 'failed' ? result.code : null)
  if (result.kind === 'answered') deps.metrics.forwarded(permit.route.id, result.status)
  if (result.kind !== 'failed') return
  const reason = result.cause.message
  if (forwarding.cancellation.code === null)
    deps.log.warn({ event: 'upstream_failed', request_id: requestId, route: permit.route.id, reason })
  const members = rpc === undefined ? {} : { rpc }
  const about = { route: permit.route, subject: permit.identity?.subject ?? null, asked: null }
  const answer = await answerAlone({ kind: 'denial', code: result.code, members, reason, ...about }, decided, null)
  if (!client.gone()) send(serving, answer, decided)
}

const NO_FIELDS: readonly string[] = []

/** Writes the log line at the end of the answer; for an endless answer at its beginning. */
function writeAtEnd(
  result: Forwarded | Tunneled,
  { res, sent, cancellation }: Forwarding,
  write: DecidedHere['write'],
): void {
  const status = statusOf(result)
  if (result.kind !== 'answered' || cancellation.endless) {
    write(status === null ? {} : { status })
    return
  }
  const atEnd = (): void => write({ status: result.status, bytes: sent.bytes })
  if (res.writableFinished || res.destroyed) atEnd()
  else res.on('close', atEnd)
}

function statusOf(result: Forwarded | Tunneled): number | null {
  if (result.kind === 'opened') return SWITCHING
  if (result.kind === 'abandoned') return null
  return result.kind === 'failed' ? denialStatus(result.code) : result.status
}

const SWITCHING = 101

/** The fields that end a connection while draining. HTTP/2 ends it by GOAWAY instead. */
const ending = ({ version }: ClientRequest, deps: ExchangeDeps): readonly string[] =>
  version !== '2' && deps.draining() ? ['connection', 'close'] : NO_FIELDS

/** Returns the function to call when the exchange has ended. */
function watchPermission(
  permit: Permit,
  { forwarding, upgrade }: { readonly forwarding: Forwarding; readonly upgrade: boolean },
  { client, browser, rules }: DecidedHere,
): () => void {
  const { permissionWatch, log, metrics, isCurrent, reevaluate } = rules
  const { cancellation, requestId } = forwarding
  const { basis, route } = permit
  const open = {
    basis,
    stale: !isCurrent(),
    reevaluate: () => reevaluate(permit, { client, upgrade }),
    isEndless: () => cancellation.endless,
    isSignedOut: browser === null || basis === null ? null : () => browser.isEnded(),
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
  return forward(permit, forwarding, deps.forwardingTo(permit.route))
}

async function tunnel(
  permit: Permit,
  { forwarding, onEnd, upgrade }: Watched & { readonly upgrade: Upgrade },
  deps: ExchangeDeps,
): Promise<Tunneled> {
  forwarding.cancellation.endless = true
  const result = await openTunnel(permit, { ...forwarding, upgrade, onEnd }, deps.forwardingTo(permit.route))
  if (result.kind !== 'opened') onEnd()
  return result
}

/** Asks the client for the body only after all checks that need none, so that a denied client does not send it. */
function sendContinue(serving: Serving): void {
  if (!serving.awaitsContinue || serving.res.headersSent) return
  serving.awaitsContinue = false
  serving.res.writeContinue()
}

/** Sends the denial. If the rest of the request's body is not read, no other request can follow on this connection. */
function send({ res, upgrade }: Serving, answer: DenialAnswer, { client, rules }: DecidedHere): void {
  const close = client.version !== '2' && (rules.draining() || !client.complete() || upgrade !== null)
  sendDenial(res, answer, { close })
}
