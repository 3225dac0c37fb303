/** The path of a request, in order. Read this first: what is not permitted here does not reach the upstream. */
import { type Credentials, parseAuthorization } from '../../pdp/token/authorization.ts'
import type { AccessClaims } from '../../pdp/token/claims.ts'
import type { ProofVerifier } from '../../pdp/token/dpop.ts'
import { TokenError } from '../../pdp/token/errors.ts'
import type { TokenVerifier } from '../../pdp/token/verify.ts'
import type { ClientRequest } from '../http/client.ts'
import type { Identity } from '../http/fields.ts'
import type { PdpClient } from '../pdp-client/client.ts'
import type { PdpAnswer, PdpQuestion } from '../pdp-client/question.ts'
import { malformed, RequestError } from '../request/errors.ts'
import { type InboundRequest, readInbound } from '../request/inbound.ts'
import type { Origin } from '../request/origin.ts'
import type { Authority } from '../request/target.ts'
import { buildQuestions, type Questions, usesBody } from '../routes/checks.ts'
import { matchRequest } from '../routes/match.ts'
import type { Match, Route, RouteTable } from '../routes/route.ts'
import { type StepUp, satisfies, signInOf } from '../routes/step-up.ts'
import { requestValues } from '../routes/values.ts'
import { type Admission, NO_ADMISSION } from './admission.ts'
import {
  type Denial,
  denialOf,
  denied,
  isShadowable,
  type Known,
  nothingKnown,
  problemOf,
  refused,
  type Verdict,
} from './denial.ts'
import type { JudgedAgain, PermissionBasis } from './permission-watch.ts'
import { checkHandshake } from './websocket-handshake.ts'

declare const permitted: unique symbol
/** Proof that enforce() allowed this request. Only this file may create one; forward() demands it. */
export type Permit = {
  readonly [permitted]: true
  readonly kind: 'permit'
  readonly route: Route
  readonly request: InboundRequest
  /** By a trusted proxy; null: none. */
  readonly namedHost: Authority | null
  /** Null on a public route. */
  readonly identity: Identity | null
  /** The body, when it was read for a check. */
  readonly body: Buffer | null
  /** What the permission rests on, for an exchange that lasts; null: on nothing that could change. */
  readonly standing: PermissionBasis | null
  /** The verdict that shadow mode has replaced; null: it was an allow. */
  readonly shadowed: Denial | null
}
/** What the sidecar answers by itself, without asking anybody. */
export type OwnAnswer = { readonly kind: 'options'; readonly allow: readonly string[] } | { readonly kind: 'metadata' }

export type EnforceDeps = {
  /** Lower case, without port. */
  readonly hosts: ReadonlySet<string>
  readonly routes: RouteTable
  readonly tokens: TokenVerifier
  readonly verifyProof: ProofVerifier
  /** What DPoP proofs name: origin and path prefix. */
  readonly publicUrl: string
  /** Path of the protected resource metadata (RFC 9728); null when it is not served. */
  readonly metadataPath: string | null
  readonly pdp: PdpClient
  /** Issuers whose tokens say themselves how their subject signed in. */
  readonly externalIssuers: ReadonlySet<string>
  /** Milliseconds since the epoch. */
  readonly clock: () => number
  /** A sentence about this clock, when it is not that of others; else null. */
  readonly clockHint: () => string | null
}
/** The request, and how to get its body when a check needs it. */
export type Arrival = {
  readonly client: ClientRequest
  readonly origin: Origin
  readonly admission: Admission
  readonly readBody: (request: InboundRequest) => Promise<Buffer>
  /** The client asks for a WebSocket connection. */
  readonly upgrade: boolean
}

/** Never throws: what goes wrong is a denial. */
export async function enforce(arrival: Arrival, deps: EnforceDeps): Promise<Permit | Denial | OwnAnswer> {
  const known = nothingKnown(arrival.origin.host)
  try {
    const judged = await judge(arrival, deps, known)
    return judged.kind === 'denial' ? orShadow(judged, known) : judged
  } catch (err) {
    return orShadow(denialOf(err, known, deps.clockHint), known)
  }
}

async function judge(arrival: Arrival, deps: EnforceDeps, known: Known): Promise<Permit | Denial | OwnAnswer> {
  const { origin, admission } = arrival
  const wait = admission.arrive() // RequestError
  if (wait !== null) await wait // RequestError
  if (origin.fault !== null) throw malformed(origin.fault)
  const request = readInbound(arrival.client) // RequestError
  const ground = await prepare(request, { ...arrival, namedHost: origin.host, former: null }, deps, known)
  if (ground === null) return permit(known, null)
  if (ground.kind !== 'ground') return ground
  const { route, claims, questions, question } = ground
  const answer = await deps.pdp.ask(question) // PdpUnavailable
  const refusal = evaluateAnswer(answer, { route, claims, questions, deps })
  if (refusal !== null) return refused(refusal, known)
  known.identity = identityOf(claims, answer.subjectType)
  // How fresh the sign-in is counts when a connection is opened.
  return permit(known, standingOf(ground, null, deps))
}

/** On what a permitted exchange may go on by the rules of `deps`; null: on nothing that could change. Never throws. */
export async function judgeAgain(
  former: Permit,
  { upgrade }: { readonly upgrade: boolean },
  deps: EnforceDeps,
): Promise<JudgedAgain> {
  const known = nothingKnown(former.namedHost)
  const readFormer = async (): Promise<Buffer> => {
    if (former.body === null) throw malformed('The body is not there any more')
    return former.body
  }
  // It has its places.
  const places = { namedHost: former.namedHost, admission: NO_ADMISSION }
  try {
    const ground = await prepare(former.request, { ...places, upgrade, readBody: readFormer, former }, deps, known)
    if (ground === null || known.route?.shadow === true) return { kind: 'permitted', standing: null }
    if (ground.kind === 'ground') {
      const isSame = JSON.stringify(ground.route.stepUp) === JSON.stringify(former.route.stepUp)
      return { kind: 'permitted', standing: standingOf(ground, isSame ? null : ground.route.stepUp, deps) }
    }
    return { kind: 'denied', code: ground.kind === 'denial' ? ground.code : 'route_unknown' }
  } catch (err) {
    const denial = denialOf(err, known, deps.clockHint)
    return isShadowable(denial) ? { kind: 'permitted', standing: null } : { kind: 'denied', code: denial.code }
  }
}

/** What a decision about a guarded route rests on. */
type Ground = {
  readonly kind: 'ground'
  readonly route: Route
  readonly claims: AccessClaims
  readonly questions: Questions
  readonly question: PdpQuestion
}
/** `former`: it was permitted before, and its proof was verified then: none is good twice. */
type Preparing = Omit<Arrival, 'client' | 'origin'> & {
  readonly namedHost: Authority | null
  readonly former: Permit | null
}

/** All that comes before the question to the PDP; null: the route is public. */
async function prepare(
  request: InboundRequest,
  { upgrade, readBody, admission, namedHost, former }: Preparing,
  deps: EnforceDeps,
  known: Known,
): Promise<Ground | Denial | OwnAnswer | null> {
  if (!deps.hosts.has(request.host.hostname)) throw new RequestError('host_unknown', 'No route is for this host')
  const match = matchRequest(deps.routes, request) // RequestError
  if (namedHost !== null) checkNamedHost(namedHost, { request, match, deps }) // RequestError
  if (match.kind !== 'route')
    return match.kind === 'method' ? unmatchedMethod(request, match.allow, known) : unmatched(request, deps)
  const { route, parameters } = match
  Object.assign(known, { route, request })
  // The rules may have changed since the listener looked.
  if (upgrade && !route.websocket) throw new RequestError('route_unknown', 'No route here takes WebSocket connections')
  if (upgrade) checkHandshake(request, route) // RequestError
  if (route.check === null) {
    const turn = admission.enter(route.id, null) // RequestError
    if (turn !== null) await turn // RequestError
    return null
  }
  known.scheme = /^dpop /i.test(request.authorization[0] ?? '') ? 'DPoP' : 'Bearer'
  const credentials = parseAuthorization(request.authorization) // TokenError
  const claims = deps.tokens.cached(credentials.token) ?? (await deps.tokens.verify(credentials.token)) // TokenError
  known.claims = claims
  const isProven = former !== null && former.identity !== null
  if (!isProven && (claims.jkt !== null || credentials.scheme === 'dpop'))
    await verifyBinding(request, { credentials, claims, known }, deps) // TokenError
  known.identity = identityOf(claims, claims.subject === claims.clientId ? 'service' : 'user')
  known.body = usesBody(route.check) ? await readBody(request) : null // RequestError
  const values = requestValues({ request, parameters, claims, body: known.body })
  const questions = buildQuestions(route.check, values) // RequestError
  const turn = admission.enter(route.id, claims) // RequestError
  if (turn !== null) await turn // RequestError
  return { kind: 'ground', route, claims, questions, question: questionOf(credentials, claims, questions) }
}

/** `stepUp`: what the next answer must satisfy, and no later one. */
function standingOf(
  { route, claims, questions, question }: Ground,
  stepUp: StepUp | null,
  deps: EnforceDeps,
): PermissionBasis {
  let next = stepUp
  return {
    question,
    expiresAtMs: claims.expiresAtMs,
    judge(answer) {
      const code = problemOf(evaluateAnswer(answer, { route: { ...route, stepUp: next }, claims, questions, deps }))
      if (code === null) next = null
      return code
    },
    watch: (onAnswer) => deps.pdp.watch(question, onAnswer),
  }
}

/** The only place where a Permit is made. */
function permit(known: Known, standing: PermissionBasis | null, shadowed: Denial | null = null): Permit {
  const { route, request, namedHost, identity, body } = known
  if (route === null || request === null) throw new TypeError('only a matched request can be permitted')
  // A shadowed route cuts nothing short either.
  const kept = route.shadow ? null : standing
  return { kind: 'permit', route, request, namedHost, identity, body, standing: kept, shadowed } as Permit
}

/** Shadow mode (ARCHITECTURE.md section 7). Identity headers are set only if the token was verified. */
const orShadow = (denial: Denial, known: Known): Permit | Denial =>
  isShadowable(denial) ? permit(known, null, denial) : denial

type Matched = { readonly request: InboundRequest; readonly match: Match; readonly deps: EnforceDeps }

/** Services believe the host that a trusted proxy names, so it must lead to what the Host field leads to. */
function checkNamedHost(named: Authority, { request, match, deps }: Matched): void {
  if (named.hostname === request.host.hostname) return
  if (!deps.hosts.has(named.hostname)) throw new RequestError('host_unknown', 'No route is for the forwarded host')
  const other = matchRequest(deps.routes, { ...request, host: named })
  if (other.kind !== match.kind || (other.kind === 'route' && match.kind === 'route' && other.route !== match.route))
    throw malformed('The Host field and the forwarded host lead to different routes')
}

/** The metadata of the resource is for everybody; all else without a route is unknown. */
function unmatched({ method, target }: InboundRequest, { metadataPath }: EnforceDeps): OwnAnswer {
  const reading = method === 'GET' || method === 'HEAD'
  if (reading && metadataPath !== null && target.path === metadataPath) return { kind: 'metadata' }
  throw new RequestError('route_unknown', 'No route has this path')
}

/** OPTIONS is answered from the routes; a route of its own leaves it, with CORS preflights, to the service behind. */
function unmatchedMethod({ method }: InboundRequest, allow: readonly string[], known: Known): OwnAnswer | Denial {
  if (method === 'OPTIONS') return { kind: 'options', allow }
  return denied('method_unsupported', known, { reason: 'no route of this path has this method', allow })
}

type Evaluating = {
  readonly route: Route
  readonly claims: AccessClaims
  readonly questions: Questions
  readonly deps: EnforceDeps
}
/** Null allows, now and for as long as later answers are judged the same. */
function evaluateAnswer(answer: PdpAnswer, { route, claims, questions, deps }: Evaluating): Verdict | null {
  // One without an organization is valid, but no organization's resources are for it.
  if (!answer.active) return { code: claims.organization === null ? 'organization_missing' : 'token_invalid' }
  const refusal = questions.verdict(answer)
  if (refusal !== null || route.stepUp === null) return refusal
  const signIn = deps.externalIssuers.has(claims.issuer) ? signInOf(claims.all) : answer.signIn
  return satisfies(signIn, route.stepUp, deps.clock()) ? null : { code: 'step_up_required', stepUp: route.stepUp }
}

/** RFC 9449 section 7: a bound token needs its proof, and a proof makes nothing of an unbound token. */
async function verifyBinding(
  request: InboundRequest,
  { credentials, claims, known }: { credentials: Credentials; claims: AccessClaims; known: Known },
  deps: EnforceDeps,
): Promise<void> {
  const { jkt } = claims
  if (jkt === null) throw new TokenError('token_invalid', 'the token is not bound to a key')
  known.scheme = 'DPoP'
  // Section 7.2: else a stolen token would be good without its key.
  if (credentials.scheme !== 'dpop') throw new TokenError('token_invalid', 'a bound token was used as a bearer token')
  const url = `${deps.publicUrl}${request.target.path}`
  await deps.verifyProof({ proofs: request.proofs, method: request.method, url }, { ...claims, jkt })
}

function questionOf(credentials: Credentials, claims: AccessClaims, { permissions, entitlements }: Questions) {
  const { digest, subject, organization } = claims
  return { token: credentials.token, digest, subject, organization, permissions, entitlements }
}

const identityOf = (claims: AccessClaims, subjectType: Identity['subjectType']): Identity => ({
  subject: claims.subject,
  subjectType,
  organization: claims.organization,
  client: claims.clientId,
  scopes: claims.scopes,
})
