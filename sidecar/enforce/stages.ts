/** The stages of a request: each is made from the one before it, and its type says what is known by then. */

import { isObjectId } from '../../pdp/shared/domain/names.ts'
import { type Credentials, parseAuthorization } from '../../pdp/shared/token/authorization.ts'
import type { AccessClaims } from '../../pdp/shared/token/claims.ts'
import type { ProofVerifier } from '../../pdp/shared/token/dpop.ts'
import { TokenError } from '../../pdp/shared/token/errors.ts'
import { EXTERNAL_MARK } from '../../pdp/shared/token/issuer-claims.ts'
import type { TokenVerifier } from '../../pdp/shared/token/verify.ts'
import { holding, keeping } from '../answers/asked-parts.ts'
import { itemFilter } from '../answers/item-filter.ts'
import type { AnswerFilter } from '../http/edited-answer.ts'
import type { Identity } from '../http/fields.ts'
import { demandsOfMcp, type McpJudged, type McpPassage } from '../mcp/demands.ts'
import { RPC, RpcError, type RpcReply } from '../mcp/rpc-error.ts'
import type { SessionSeal } from '../mcp/sessions.ts'
import type { PdpClient } from '../pdp-client/client.ts'
import type { PdpAnswer, PdpQuestion } from '../pdp-client/question.ts'
import { malformed, RequestError } from '../request/errors.ts'
import type { InboundRequest } from '../request/inbound.ts'
import {
  type Asking,
  buildQuestions,
  type Check,
  type CheckDenial,
  denialText,
  isUndecided,
  type Questions,
  usesBody,
} from '../routes/checks.ts'
import { type ReadBody, readJson } from '../routes/json-body.ts'
import type { McpRules } from '../routes/mcp-rules.ts'
import type { Route } from '../routes/route.ts'
import type { RequestMatch } from '../routes/route-request.ts'
import { type StepUp, satisfies, signInOf } from '../routes/step-up.ts'
import type { JudgeJson } from '../routes/value-readings.ts'
import { requestValues } from '../routes/values.ts'

type Matched = {
  readonly request: InboundRequest
  readonly route: Route
  readonly parameters: readonly string[]
  /** Judges the JSON body; null: the body need not be read. */
  readonly judgeJson: JudgeJson | null
}
type WithBody = {
  /** The body, if it was read; null: it was not. */
  readonly body: Buffer | null
}
/**
 * The route is known, and it is public: at most the body is still checked. `identity`: null if the sender is unknown. `unidentified`: the
 * reason for which its token or session is not valid; null: none was sent.
 */
export type PublicRequest = Matched &
  WithBody & { readonly stage: 'public'; readonly identity: Identity | null; readonly unidentified: string | null }
export type GuardedRequest = Matched & { readonly stage: 'guarded'; readonly check: Check }
export type Routed = PublicRequest | GuardedRequest
type WithClaims = Matched & {
  readonly check: Check
  readonly credentials: Credentials
  readonly claims: AccessClaims
}
/** The token is verified, but its sender has not proven the key that the token is bound to. */
export type Verified = WithClaims & { readonly stage: 'verified' }
/** The token and its proof are verified: `identity` is the sender. */
export type Authenticated = WithClaims & { readonly identity: Identity; readonly stage: 'authenticated' }
type WithQuestions = Matched &
  WithBody & {
    /** The token's claims; null for a guest, whose `identity` is null, too. */
    readonly claims: AccessClaims | null
    readonly identity: Identity | null
    readonly questions: Questions
    readonly question: PdpQuestion
    /** The MCP part of the request; null: the route is not for MCP. */
    readonly mcp: McpJudged | null
  }
/** The question to the PDP is complete. */
export type Prepared = WithQuestions & { readonly stage: 'prepared' }
/** `filter`: null where the answer passes as it is. */
type Passing = { readonly passage: McpPassage | null; readonly filter: AnswerFilter | null }
export type Allowed = WithQuestions & Passing & { readonly stage: 'allowed' }
export type Refused = Omit<WithQuestions, 'identity'> &
  Passing & {
    readonly stage: 'refused'
    readonly reason: DenialReason
    /** The sender, for identity headers. Null: the token is revoked. */
    readonly identity: Identity | null
    /** The form of the denial for an MCP client; null: the route is not for MCP. */
    readonly rpc: RpcReply | null
  }
export type Decided = Allowed | Refused
export type Stage = typeof ARRIVED | Routed | Verified | Authenticated | Prepared | Decided

/** The reason for which an answer of the PDP does not allow a request. */
export type DenialReason =
  | CheckDenial
  | { readonly code: 'token_invalid' | 'organization_missing' }
  /** The request has no token, and guests are not allowed to do this. */
  | { readonly code: 'token_missing'; readonly why: string }
  | { readonly code: 'step_up_required'; readonly stepUp: StepUp }

export type AuthenticationDeps = {
  readonly tokens: TokenVerifier
  readonly verifyProof: ProofVerifier
  /** The origin and path prefix that DPoP proofs name. */
  readonly publicUrl: string
}
export type EvaluationDeps = {
  /** Issuers whose own tokens, not the PDP, tell how the subject signed in. */
  readonly externalIssuers: ReadonlySet<string>
  /** Milliseconds since the epoch. */
  readonly clock: () => number
  readonly pdp: Pick<PdpClient, 'ask'>
  /** The bound of a filtered answer in bytes. */
  readonly answerBytesMax: number
  /** Binds the sessions of MCP servers to their subjects. */
  readonly mcpSessions: SessionSeal
}
type PrepareDeps = Pick<EvaluationDeps, 'mcpSessions'>

/** The route is not known. */
export const ARRIVED = { stage: 'arrived' } as const

/** The first stage of a matched request. Throws RequestError. */
export function routed(match: Extract<RequestMatch, { kind: 'route' }>, request: InboundRequest): Routed {
  const { route, parameters, judgeJson } = match
  // The length of the unfiltered list would tell its reader how many items are hidden.
  if (request.method === 'HEAD' && route.answer !== null && !route.shadow)
    throw new RequestError('method_unsupported', 'This route filters its answers, so that it has no HEAD')
  const { check } = route
  const matched = { request, route, parameters, judgeJson }
  return check === null
    ? { ...matched, ...UNKNOWN, stage: 'public', body: null }
    : { ...matched, stage: 'guarded', check }
}

const UNKNOWN = { identity: null, unidentified: null }

/** True if the request is decided as a guest's: the route lets guests ask, and no token was sent. */
export const isGuest = ({ route, request }: GuardedRequest): boolean =>
  route.guests !== null && request.authorization.length === 0

export const publicStage = ({ route, request }: Pick<Matched, 'route' | 'request'>): PublicRequest => ({
  stage: 'public',
  request,
  route,
  parameters: [],
  judgeJson: null,
  body: null,
  ...UNKNOWN,
})

/** Rejects with RequestError when a service could find other values in the body than were checked. */
export async function judgeBody(routed: PublicRequest, readBody: ReadBody): Promise<PublicRequest> {
  if (routed.judgeJson === null) return routed
  const { body } = await readText(routed, { isRead: false, readBody })
  return { ...routed, body }
}

type Text = WithBody & {
  /** The text of the JSON body; null: the request has no body, or no check reads it. */
  readonly text: string | null
}

/** `isRead`: a check takes a value from the body; else it is read only for `judgeJson`. Rejects with RequestError. */
async function readText(
  { request, route, judgeJson }: Matched,
  { isRead, readBody }: { readonly isRead: boolean; readonly readBody: ReadBody },
): Promise<Text> {
  const body = await readBody(request, isRead ? 'value' : 'absence', route.bodyBytesMax)
  if (body.length === 0) return UNREAD
  const text = readJson(body)
  judgeJson?.(text)
  return { body, text }
}

const UNREAD: Text = { body: null, text: null }

/** Synchronous for a token that was verified before. Throws TokenError, or rejects with it. */
export function verifyToken(guarded: GuardedRequest, { tokens }: AuthenticationDeps): Verified | Promise<Verified> {
  const credentials = parseAuthorization(guarded.request.authorization)
  const verifying = tokens.verify(credentials.token)
  const verified = (claims: AccessClaims): Verified => {
    requireTaken(claims, guarded.route)
    return { ...guarded, stage: 'verified', credentials, claims }
  }
  return verifying instanceof Promise ? verifying.then(verified) : verified(verifying)
}

/** Throws TokenError for a token that other routes of the file accept, but this one does not. */
function requireTaken({ issuer, audiences }: AccessClaims, { id, issuers, audience }: Route): void {
  if (issuers !== null && !issuers.includes(issuer))
    throw new TokenError('token_invalid', `${id} takes no tokens of ${issuer}`)
  if (audience !== null && !audience.some((name) => audiences.includes(name)))
    throw new TokenError('token_invalid', `aud does not name ${audience.join(' or ')}, as ${id} needs`)
}

/**
 * Authenticates the sender. Synchronous for a token without proof. Throws TokenError, or rejects with it. `proven`: this request's proof
 * was verified before; it is valid only once, so it is not verified again.
 */
export function authenticate(
  verified: Verified,
  { proven }: { readonly proven: boolean },
  deps: AuthenticationDeps,
): Authenticated | Promise<Authenticated> {
  const { request, route, credentials, claims } = verified
  const { jkt } = claims
  // RFC 9449 section 7: a bound token needs its proof. A proof does not improve an unbound token.
  if (proven || (jkt === null && credentials.scheme !== 'dpop')) return withIdentity(verified)
  if (jkt === null) throw new TokenError('token_invalid', 'the token is not bound to a key')
  // Section 7.2: otherwise a stolen token could be used without its key.
  if (credentials.scheme !== 'dpop') throw new TokenError('token_invalid', 'a bound token was used as a bearer token')
  const host = route.host?.startsWith('*') === true ? request.host.hostname : route.host
  const url = `${publicUrlAt(host, deps.publicUrl)}${request.target.path}`
  const proof = { proofs: request.proofs, method: request.method, url }
  return deps.verifyProof(proof, { ...claims, jkt }).then(() => withIdentity(verified))
}

const HOST_OF_URL = /^(https?:\/\/)(?:\[[^\]]*\]|[^/:]+)/i

/** The public URL for this host. Where a host has routes of its own, a proof for another host must not count (RFC 9449 section 4.3). */
const publicUrlAt = (host: string | null, publicUrl: string): string =>
  host === null ? publicUrl : publicUrl.replace(HOST_OF_URL, (_, scheme: string) => `${scheme}${host}`)

function withIdentity(verified: Verified): Authenticated {
  const { claims } = verified
  // For the PDP, all subjects of external issuers are users.
  const isService = claims.subject === claims.clientId && !claims.subject.startsWith(EXTERNAL_MARK)
  return { ...verified, stage: 'authenticated', identity: identityOf(claims, isService ? 'service' : 'user') }
}

/** Synchronous where no body is read. Throws RequestError, or rejects with it, when the request lacks a value that a check needs. */
export function prepare(
  authenticated: Authenticated | GuardedRequest,
  { requestId, readBody }: { requestId: string; readBody: ReadBody },
  { mcpSessions }: PrepareDeps,
): Prepared | Promise<Prepared> {
  const { mcp } = authenticated.route
  if (mcp !== null) return prepareMcp(authenticated, mcp, { requestId, readBody, mcpSessions })
  const asking = { check: authenticated.check, context: authenticated.route.context }
  const isRead = usesBody(asking)
  if (!isRead && authenticated.judgeJson === null) return withQuestions(authenticated, { asking, requestId, ...UNREAD })
  const reading = readText(authenticated, { isRead, readBody })
  return reading.then((read) => withQuestions(authenticated, { asking, requestId, ...read }))
}

/** Reads the message that a POST of MCP always has. Rejects with RequestError. */
async function prepareMcp(
  authenticated: Authenticated | GuardedRequest,
  rules: McpRules,
  { requestId, readBody, mcpSessions }: { requestId: string; readBody: ReadBody } & PrepareDeps,
): Promise<Prepared> {
  if (authenticated.stage !== 'authenticated') throw new TokenError('token_missing', 'MCP has no guests')
  const { request, route, check: base, claims, judgeJson } = authenticated
  const isPost = request.method === 'POST'
  if (!isPost && request.bodyBytes !== 0) throw malformed('This method of MCP has no body')
  const body = isPost ? await readBody(request, 'value', route.bodyBytesMax) : null
  const sessions = route.shadow ? null : mcpSessions
  const mcp = demandsOfMcp({ request, rules, base, owner: claims, sessions, body })
  const text = body === null ? null : readJson(body)
  if (text !== null) judgeJson?.(text)
  const demanding = mcp.stepUp === null ? authenticated : { ...authenticated, route: { ...route, stepUp: mcp.stepUp } }
  try {
    const asking = { check: mcp.check, context: route.context }
    return withQuestions(demanding, { asking, requestId, body, text, mcp })
  } catch (err) {
    if (!(err instanceof RequestError)) throw err
    // The caller forgot an argument: an MCP client must learn it as an error of its call.
    throw new RpcError(err.code, err.message, { id: mcp.id, code: RPC.params, status: mcp.id === null ? 400 : 200 })
  }
}

function withQuestions(
  sender: Authenticated | GuardedRequest,
  {
    asking,
    requestId,
    body,
    text,
    mcp = null,
  }: Text & { readonly asking: Asking; readonly requestId: string; readonly mcp?: McpJudged | null },
): Prepared {
  const { request, route, parameters } = sender
  const { claims, identity } = sender.stage === 'authenticated' ? sender : GUEST
  const questions = buildQuestions(
    asking,
    requestValues({ request, parameters, keepQuery: route.query, claims, body: text }),
    mcp?.parts,
  )
  const { permissions, entitlements, context } = questions
  const bearer = sender.stage === 'authenticated' ? bearerOf(sender) : guestOf(route)
  const asked = { ...bearer, permissions, entitlements, context }
  const question = { ...asked, requestId, clientAddress: request.clientAddress, route: route.id }
  return { ...sender, stage: 'prepared', claims, identity, body, questions, question, mcp }
}

const GUEST = { claims: null, identity: null }
type About = Pick<PdpQuestion, 'token' | 'digest' | 'subject' | 'organization' | 'guest'>

const bearerOf = ({ credentials, claims: { digest, subject, organization } }: Authenticated): About => ({
  token: credentials.token,
  digest,
  subject,
  organization,
})

/** Asks about the subject `*`, which means everybody. A PDP that knows no guests answers about another subject, and is not believed. */
function guestOf({ guests }: Route): About {
  const organization = guests?.organization ?? ''
  return { token: '', digest: '', subject: '*', organization, guest: organization }
}

/** True for a guest whose route has no question: no token can be revoked, so the PDP need not be asked. */
export const asksNothing = ({ claims, questions }: Pick<Prepared, 'claims' | 'questions'>): boolean =>
  claims === null && questions.permissions.length === 0

export const NOTHING_ASKED: PdpAnswer = {
  active: true,
  subjectType: 'user',
  permissions: [],
  reasons: [],
  entitlements: new Map(),
  revision: '',
  signIn: { acr: null, authTime: null },
}

export function decide(prepared: Prepared, answer: PdpAnswer, deps: EvaluationDeps): Decided {
  const reason = evaluate(prepared, answer, deps)
  const { claims } = prepared
  const { mcp, questions } = prepared
  const passed = mcp?.passage(answer, questions.parts, (checks) => holding(prepared, checks, deps)) ?? null
  const { answer: rule, shadow } = prepared.route
  // Shadow mode removes no items from the answer.
  const passage = passed !== null && shadow ? { ...passed, filter: null } : passed
  const count = { kept: 0, removed: 0 }
  const filter =
    rule === null
      ? (passage?.filter ?? null)
      : itemFilter(rule, (items) => keeping(prepared, rule, items, deps), {
          bytesMax: deps.answerBytesMax,
          shadow,
          count,
        })
  const passing = { passage, filter }
  if (reason === null) {
    const identity = claims === null ? null : identityOf(claims, answer.subjectType)
    return { ...prepared, ...passing, stage: 'allowed', identity }
  }
  const identity = reason.code === 'token_invalid' ? null : prepared.identity
  const rpc = mcp?.reply(answer, questions.parts) ?? null
  return { ...prepared, ...passing, stage: 'refused', reason, identity, rpc }
}

/** The denial when the person has withdrawn the permission to act for them: then the token is worth nothing, whatever the checks say. */
function undelegated({ reasons }: PdpAnswer): CheckDenial | null {
  const why = reasons.find((reason) => reason.startsWith('delegation_missing: '))
  return why === undefined ? null : { code: 'permission_denied', check: 'delegation', why }
}

/** The reason for which the answer denies; null: it allows. */
export function evaluate(
  { route, claims, questions }: Pick<Prepared, 'route' | 'claims' | 'questions'>,
  answer: PdpAnswer,
  { externalIssuers, clock }: EvaluationDeps,
): DenialReason | null {
  if (!answer.active) return { code: 'token_invalid' }
  const reason = questions.evaluate(answer) ?? undelegated(answer)
  if (claims === null)
    return reason === null || isUndecided(reason) ? reason : { code: 'token_missing', why: denialText(reason) }
  // A token without an organization is valid, but it gives access to no organization's resources.
  if (reason?.code === 'permission_denied' && claims.organization === null) return { code: 'organization_missing' }
  if (reason !== null || route.stepUp === null) return reason
  const signIn = externalIssuers.has(claims.issuer) ? signInOf(claims.all) : answer.signIn
  return satisfies(signIn, route.stepUp, clock()) ? null : { code: 'step_up_required', stepUp: route.stepUp }
}

/** The client that acts for the subject (RFC 8693 section 4.1); null: none, or the token is of an external issuer. */
function actorOf({ all, issuerNames }: AccessClaims): string | null {
  const act: unknown = issuerNames === undefined ? all.act : null
  return typeof act === 'object' && act !== null && 'sub' in act && typeof act.sub === 'string' && isObjectId(act.sub)
    ? act.sub
    : null
}

const identityOf = (claims: AccessClaims, subjectType: Identity['subjectType']): Identity => ({
  subject: claims.subject,
  subjectType,
  organization: claims.organization,
  client: claims.clientId,
  actor: actorOf(claims),
  issuer: claims.issuer,
  scopes: claims.scopes,
  claims: claims.issuerNames?.claims ?? claims.all,
})
