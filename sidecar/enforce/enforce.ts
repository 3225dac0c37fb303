/** The path of a request, in order. Read this first: a request that is not permitted here does not reach the upstream. */
import { withTimeout } from '../../pdp/shared/base/with-timeout.ts'
import type { Span } from '../../pdp/shared/process/tracing/tracing.ts'
import { hideUnseen } from '../answers/asked-parts.ts'
import { ASSERTION_KEYS_PATH } from '../http/assertion.ts'
import type { ClientRequest } from '../http/client-request.ts'
import { isShared } from '../http/cors.ts'
import type { Identity } from '../http/fields.ts'
import type { McpPassage } from '../mcp/demands.ts'
import type { PdpClient } from '../pdp-client/client.ts'
import type { PdpAnswer, PdpQuestion } from '../pdp-client/question.ts'
import { takeBrowserToken } from '../request/browser-token.ts'
import { fromOrigin, type InboundRequest, readInbound } from '../request/inbound.ts'
import type { Origin } from '../request/origin.ts'
import type { ReadBody } from '../routes/json-body.ts'
import type { Route } from '../routes/route.ts'
import { routeRequest } from '../routes/route-request.ts'
import type { StepUp } from '../routes/step-up.ts'
import { type Admission, notePlaces } from './admission.ts'
import {
  type Asked,
  askedOf,
  type Denial,
  denialOfAnswer,
  denialOfError,
  denied,
  isShadowable,
  problemOf,
} from './denial.ts'
import type { DenialAnswer } from './denial-response.ts'
import type { PermissionBasis } from './permission-watch.ts'
import { answerUnrouted, judgePreflight, type PreflightDeps } from './preflight.ts'
import {
  type Allowed,
  ARRIVED,
  type Authenticated,
  type AuthenticationDeps,
  asksNothing,
  authenticate,
  decide,
  type EvaluationDeps,
  evaluate,
  type GuardedRequest,
  isGuest,
  judgeBody,
  NOTHING_ASKED,
  type Prepared,
  type PublicRequest,
  prepare,
  publicStage,
  routed,
  type Stage,
  verifyToken,
} from './stages.ts'
import { askTraced } from './trace.ts'
import { checkHandshake } from './websocket-handshake.ts'

declare const permitted: unique symbol
/** Proof that enforce() allowed this request. Only this file may create one; forward() demands it. */
export type Permit = {
  readonly [permitted]: true
  readonly kind: 'permit'
  readonly route: Route
  readonly request: InboundRequest
  /** The sender; null on a public route without identity, for a guest, and in shadow mode when the sender is not authenticated. */
  readonly identity: Identity | null
  /** The reason for which a sent token or session is not valid on a route that does not need one; null: none was sent, or it is valid. */
  readonly unidentified: string | null
  /** The body of the request; null: no check has read it. */
  readonly body: Buffer | null
  /** The questions to the PDP; null: the PDP was not asked. */
  readonly asked: Asked | null
  /** The facts that can end the permission while the exchange is open; null: nothing can end it. */
  readonly basis: PermissionBasis | null
  /** The denial that shadow mode has replaced; null: the request was allowed. */
  readonly shadowed: Denial | null
  /** The MCP part of the request; null: the route is not for MCP, or shadow mode has replaced a denial. */
  readonly mcp: McpPassage | null
  readonly filter: Allowed['filter']
}
/** An answer of the sidecar itself: the request needs no permission and is not forwarded. */
export type OwnAnswer =
  /** `fields`: names and values alternating. */
  | { readonly kind: 'options'; readonly allow: readonly string[]; readonly fields: readonly string[] }
  | { readonly kind: 'metadata' }
  /** The readiness of the sidecar, for load balancers that ask the data port. */
  | { readonly kind: 'probe' }
  /** The key set of assertions. */
  | { readonly kind: 'keys' }
  /** A page of the sign-in, which the Browser of the arrival answers. */
  | { readonly kind: 'sign_in'; readonly request: InboundRequest }
export type Outcome = Permit | Denial | OwnAnswer

export type EnforceDeps = PreflightDeps &
  AuthenticationDeps &
  EvaluationDeps & {
    readonly targetCharsMax: number
    /** The route for requests that match no route, if the whole file is in shadow mode; else null. */
    readonly shadowRoute: Route | null
    /** Paths that are answered under every host, and without a host. */
    readonly probePaths: ReadonlySet<string>
    /** True: the service verifies assertions, so their key set is answered under every host, too. */
    readonly servesKeys: boolean
    readonly pdp: Pick<PdpClient, 'ask' | 'watch'>
    /** A sentence when this server's clock differs from others; else null. */
    readonly clockHint: () => string | null
  }
/** Handles one request that may come from a browser: it adds the session's token, and makes pages in place of problem documents. */
export type Browser = {
  /** The request without the sidecar's cookies, which neither log nor service may see. */
  readonly client: ClientRequest
  /** Remembers the request for the methods below. True: it is part of a sign-in, and belongs to no route. */
  takes(request: InboundRequest): boolean
  /** The request with the token of its session; unchanged without a session. `renews`: it may be renewed. Rejects with RequestError. */
  authorize(
    request: InboundRequest,
    how: { readonly upgrade: boolean; readonly renews: boolean },
  ): Promise<InboundRequest>
  /** True when the request came in by a session. */
  hasSession(): boolean
  /** True when that session has been ended since. Rejects with RequestError when this cannot be known. */
  isEnded(): Promise<boolean>
  /** Fields to add to every answer, names and values alternating. */
  fields(): readonly string[]
  /** The page for a person in place of a problem document; null: the client is a program. Never rejects. */
  answer(
    denial: Pick<Denial, 'code' | 'members' | 'subject' | 'route'>,
    requestId: string,
  ): Promise<DenialAnswer | null>
  /** The answer to a request for which `takes` was true. Never rejects. */
  page(request: InboundRequest, requestId: string): Promise<DenialAnswer>
}
/** A request that has arrived, and the parts of it that later steps need. */
export type Arrival = {
  readonly client: ClientRequest
  readonly requestId: string
  readonly origin: Origin
  readonly admission: Admission
  readonly readBody: ReadBody
  /** The body, when it was read; null: the service can still get it from the client. Never rejects. */
  readonly keptBody: () => Promise<Buffer | null>
  /** True: the client asks for a WebSocket connection. */
  readonly upgrade: boolean
  /** The browser that may have sent the request; null: the file has no sign-in. */
  readonly browser: Browser | null
  /** The permit by rules that are no longer in force; null: the request is decided for the first time. */
  readonly former: Permit | null
  /** The request's trace span; null: no spans are collected. */
  readonly span: Span | null
  /** The time in milliseconds after which shadow mode of the file lets the request pass undecided; null: no gateway waits. */
  readonly lateMs: number | null
}

/** How far the request has come. `request`: null as long as it could not be read. */
type Progress = { stage: Stage; request: InboundRequest | null }

/** Never throws: an error becomes a Denial, described by the stage that the request had reached. */
export function enforce(arrival: Arrival, deps: EnforceDeps): Promise<Outcome> {
  const progress: Progress = { stage: ARRIVED, request: arrival.former?.request ?? null }
  const { shadowRoute } = deps
  return shadowRoute === null
    ? takeSteps(arrival, progress, deps)
    : enforceInShadow(arrival, progress, { deps, shadowRoute })
}

async function takeSteps(arrival: Arrival, progress: Progress, deps: EnforceDeps): Promise<Outcome> {
  const { client, requestId, origin, admission, readBody, upgrade, browser, former } = arrival
  const { shadowRoute, targetCharsMax } = deps
  try {
    const arriving = admission.arrive() // RequestError
    if (arriving !== null) await arriving // RequestError
    if (former === null && isProbe(client, deps.probePaths)) return { kind: 'probe' }
    if (former === null && deps.servesKeys && isProbe(client, KEYS_PATHS)) return { kind: 'keys' }
    const request =
      former === null
        ? readInbound(client, { origin, targetCharsMax, isShadowed: shadowRoute !== null })
        : fromOrigin(former.request, origin) // RequestError
    progress.request = request
    if (request.refusal !== null) throw request.refusal // RequestError
    if (former === null && browser?.takes(request) === true) return { kind: 'sign_in', request }
    const preflight = judgePreflight(request, deps) // RequestError
    if (preflight?.kind === 'answer' && (shadowRoute === null || isShared(preflight.fields)))
      return { ...preflight, kind: 'options' }
    if (preflight?.kind === 'pass') {
      const entering = admission.enter(preflight.route, null) // RequestError
      if (entering !== null) await entering // RequestError
      return permit(publicStage(preflight), null, former)
    }
    const match = routeRequest(deps, request) // RequestError
    if (match.kind !== 'route') return answerUnrouted(match, request, deps) // RequestError
    const taken = takeBrowserToken(request, match.route, upgrade) // RequestError
    const routing = routed(match, taken.request) // RequestError
    progress.stage = routing
    if (taken.refusal !== null) throw taken.refusal // RequestError
    if (upgrade) checkHandshake(request, routing.route) // RequestError
    if (routing.stage === 'public') {
      const known = routing.route.withIdentity ? await identify(routing, arrival, deps) : routing // RequestError
      const entering = known === routing ? admission.enter(routing.route, null) : null // RequestError
      if (entering !== null) await entering // RequestError
      return permit(known.judgeJson === null ? known : await judgeBody(known, readBody), null, former) // RequestError
    }
    const guarded =
      browser === null
        ? routing
        : { ...routing, request: await browser.authorize(routing.request, { upgrade, renews: true }) } // RequestError
    let sender: GuardedRequest | Authenticated = guarded
    if (!isGuest(guarded)) {
      const verifying = verifyToken(guarded, deps) // TokenError
      const verified = verifying instanceof Promise ? await verifying : verifying // TokenError
      progress.stage = verified
      const authenticating = authenticate(verified, { proven: isProven(former) }, deps) // TokenError
      sender = authenticating instanceof Promise ? await authenticating : authenticating // TokenError
    }
    progress.stage = sender
    const preparing = prepare(sender, { requestId, readBody }, deps) // RequestError
    const prepared = preparing instanceof Promise ? await preparing : preparing // RequestError
    progress.stage = prepared
    const entering = admission.enter(prepared.route, prepared.claims) // RequestError
    if (entering !== null) await entering // RequestError
    const answer = asksNothing(prepared) ? NOTHING_ASKED : await askInTurn(prepared.question, arrival, deps) // RequestError, PdpUnavailable
    const made = decide(prepared, answer, deps)
    const decided = made.stage === 'refused' ? await hideUnseen(made, answer, deps) : made // PdpUnavailable
    progress.stage = decided
    if (decided.stage === 'refused') return permitIfShadowed(denialOfAnswer(decided), decided, { former, shadowRoute })
    // A later answer about this exchange is not checked for the age of the sign-in: this age matters only at the beginning.
    return permit(decided, basisOf(decided, null, deps), former)
  } catch (err) {
    const { stage } = progress
    return permitIfShadowed(denialOfError(err, stage, deps.clockHint), stage, { former, shadowRoute })
  }
}

/**
 * Shadow mode of the file: a request that HTTP allows goes on to the service, and its denial is only recorded. Limits stay, and a
 * message that two servers could split differently is still refused.
 */
async function enforceInShadow(
  arrival: Arrival,
  progress: Progress,
  { deps, shadowRoute }: { readonly deps: EnforceDeps; readonly shadowRoute: Route },
): Promise<Outcome> {
  const { former, upgrade, lateMs } = arrival
  const admission = notePlaces(arrival.admission)
  const steps = takeSteps({ ...arrival, admission }, progress, deps)
  const outcome = await (lateMs === null ? steps : withTimeout(steps, lateMs, () => new Error(LATE)).catch(tooLate))
  if (outcome.kind !== 'denial' && outcome.kind !== 'options') return outcome
  const denial =
    outcome.kind === 'denial' ? outcome : denied('method_unsupported', ARRIVED, { ...OPTIONS, allow: outcome.allow })
  const { stage, request } = progress
  // Some servers would read the body of a handshake as the first WebSocket frames.
  if (request === null || admission.isFull() || (upgrade && request.bodyBytes !== 0)) return denial
  const passing = stage.stage === 'arrived' ? publicStage({ route: shadowRoute, request }) : stage
  try {
    await admission.enterOnce(passing.route, 'claims' in stage ? stage.claims : null) // RequestError
  } catch (err) {
    return denialOfError(err, stage, deps.clockHint)
  }
  const body = await arrival.keptBody()
  return makePermit(passing, { basis: null, shadowed: denial, former, body })
}

export const LATE = 'no decision before the deadline of the gateway'
const tooLate = (): Denial => denied('overloaded', ARRIVED, { reason: LATE })

/** Shadow mode of the file: a request whose fields or answer a gateway would have to edit passes unedited. */
export function permitUnedited(permit: Permit, denial: Denial): Permit {
  return { ...permit, mcp: null, filter: null, shadowed: permit.shadowed ?? denial }
}

const OPTIONS = { reason: 'the sidecar would answer OPTIONS by itself' }

async function askInTurn(
  question: PdpQuestion,
  { admission, span }: Pick<Arrival, 'admission' | 'span'>,
  { pdp }: Pick<EnforceDeps, 'pdp'>,
): Promise<PdpAnswer> {
  const turn = admission.turn() // RequestError
  if (turn !== null) await turn // RequestError
  try {
    return await (span === null ? pdp.ask(question) : askTraced(pdp, question, span)) // PdpUnavailable
  } finally {
    admission.answered()
  }
}

/** The public request with its sender, if the token or session is valid. Rejects with RequestError. */
async function identify(routing: PublicRequest, arrival: Arrival, deps: EnforceDeps): Promise<PublicRequest> {
  const sender = await bearerOf(routing, arrival, deps)
  await arrival.admission.enter(routing.route, sender.claims) // RequestError
  if (sender.stage === 'public') return { ...sender }
  try {
    const prepared = await prepare(sender, { requestId: arrival.requestId, readBody: arrival.readBody }, deps)
    const decided = decide(prepared, await askInTurn(prepared.question, arrival, deps), deps) // PdpUnavailable
    if (decided.stage === 'refused') return { ...routing, unidentified: denialOfAnswer(decided).reason }
    return { ...routing, request: decided.request, identity: decided.identity }
  } catch (err) {
    return { ...routing, unidentified: reasonOf(err, sender, deps) }
  }
}

async function bearerOf(
  routing: PublicRequest,
  { browser, former, upgrade }: Arrival,
  deps: EnforceDeps,
): Promise<Authenticated | (PublicRequest & { readonly claims: null })> {
  const unknown = { ...routing, claims: null }
  try {
    const request =
      browser === null ? routing.request : await browser.authorize(routing.request, { upgrade, renews: false }) // RequestError
    if (request.authorization.length === 0) return unknown
    const asked = { ...routing, request, judgeJson: null, check: { kind: 'signed_in' }, stage: 'guarded' } as const
    return await authenticate(await verifyToken(asked, deps), { proven: isProven(former) }, deps) // TokenError
  } catch (err) {
    return { ...unknown, unidentified: reasonOf(err, routing, deps) }
  }
}

/** The reason for the log. Rethrows an error of our own. */
function reasonOf(err: unknown, stage: Stage, { clockHint }: Pick<EnforceDeps, 'clockHint'>): string {
  const { code, reason } = denialOfError(err, stage, clockHint)
  if (code === 'internal') throw err
  return reason
}

/** Compares byte for byte. No service gets the path, so other readings of it do not matter. */
const isProbe = ({ method, target }: ClientRequest, paths: ReadonlySet<string>): boolean =>
  paths.has(target) && (method === 'GET' || method === 'HEAD')

const KEYS_PATHS: ReadonlySet<string> = new Set([ASSERTION_KEYS_PATH])

/** True if the former permit has authenticated the sender. Its proof must not be verified again: a proof is valid only once. */
export const isProven = (former: Permit | null): boolean => former !== null && former.identity !== null

/** `stepUp`: a requirement for the next answer of the PDP alone. */
export function basisOf(
  prepared: Prepared | Allowed,
  stepUp: StepUp | null,
  deps: EnforceDeps,
): PermissionBasis | null {
  if (asksNothing(prepared)) return null
  const { route, claims, questions, question } = prepared
  let next = stepUp
  return {
    question,
    expiresAtMs: claims?.expiresAtMs ?? Number.POSITIVE_INFINITY,
    evaluate(answer) {
      const reason = evaluate({ route: { ...route, stepUp: next }, claims, questions }, answer, deps)
      if (reason !== null) return problemOf(reason)
      next = null
      return null
    },
    watch: (onAnswer) => deps.pdp.watch(question, onAnswer),
  }
}

/** The only way to permit a request that was not denied. */
function permit(stage: PublicRequest | Allowed, basis: PermissionBasis | null, former: Permit | null): Permit {
  // An exchange on a route in shadow mode has no basis, so no later change ends it.
  return makePermit(stage, { basis: stage.route.shadow ? null : basis, shadowed: null, former })
}

/** Turns a denial into a permit if the route is in shadow mode. Identity headers are set only if the sender is authenticated. */
function permitIfShadowed(
  denial: Denial,
  stage: Stage,
  { former, shadowRoute }: { readonly former: Permit | null; readonly shadowRoute: Route | null },
): Permit | Denial {
  if (shadowRoute !== null || stage.stage === 'arrived' || !isShadowable(denial)) return denial
  return makePermit(stage, { basis: null, shadowed: denial, former })
}

/** The only place where a Permit is made. */
function makePermit(
  stage: Exclude<Stage, { readonly stage: 'arrived' }>,
  {
    basis,
    shadowed,
    former,
    body: read = null,
  }: Pick<Permit, 'basis' | 'shadowed'> & { readonly former: Permit | null; readonly body?: Buffer | null },
): Permit {
  const { route, request } = stage
  const identity = 'identity' in stage ? stage.identity : null
  // A body that was read for a check is no longer in the stream.
  const body = ('body' in stage ? stage.body : null) ?? read ?? former?.body ?? null
  const unidentified = stage.stage === 'public' ? stage.unidentified : null
  return {
    kind: 'permit',
    route,
    request,
    identity,
    unidentified,
    body,
    asked: askedOf(stage),
    basis,
    shadowed,
    mcp: 'passage' in stage ? stage.passage : null,
    filter: 'filter' in stage ? stage.filter : null,
  } as Permit
}
