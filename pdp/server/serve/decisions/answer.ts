/** Answers one question about a bearer. HTTP and gRPC share this, so that both give the same answer for the same reason. */

import { ANY_APP } from '../../../engine/decide/roles.ts'
import type { Directory } from '../../../engine/store/directory.ts'
import type { TokenState } from '../../../identity/issuer/tokens/token-state.ts'
import type {
  Actor,
  AskedSubject,
  ContextualTuple,
  DecideRequest,
  EntitlementResult,
  Pdp,
  PermissionCheck,
  PermissionResult,
  Reason,
} from '../../../shared/domain/decision.ts'
import type { JsonObject } from '../../../shared/domain/json.ts'
import { REASONS } from '../../../shared/domain/reasons.ts'
import { isBearer } from '../../../shared/domain/subjects.ts'
import type { Admission } from '../authentication/admission.ts'
import { requireReader } from '../authentication/authenticate.ts'
import { type ActiveToken, tokenOfSubject } from '../authentication/credentials.ts'

export type Question = {
  readonly permissions: readonly PermissionCheck[]
  readonly entitlements: readonly string[]
  /** A subject of the token's organization other than the bearer; null: the bearer. */
  readonly subject: AskedSubject | null
  readonly explain: boolean
  readonly contextualTuples?: readonly ContextualTuple[]
  readonly withoutTuples?: readonly ContextualTuple[]
  readonly asOfMs?: number
  readonly context?: JsonObject
  /** The app whose roles count; `*`: the token's app, or all apps if the token has none. Absent: the token's app. */
  readonly app?: string
  /** Clients that act for the subject, the last one first, and the scopes of their token. For the bearer, those of the token count. */
  readonly actors?: readonly Actor[]
  readonly scopes?: readonly string[]
  /** The id of the request that led to the question; absent or empty: the caller did not say it. */
  readonly requestId?: string
  /** The client's address in the request behind the question, as the caller reports it. */
  readonly clientAddress?: string
  /** The route of that request, as the sidecar's route file writes it; absent or empty: no route. */
  readonly route?: string
  /** The trace of that request (W3C Trace Context), as the caller reports it. */
  readonly traceparent?: string
  /** True: the caller has credentials of its own, besides the token in question, and so may set the context. */
  readonly ownCaller?: boolean
  /** True: the caller has proven the key to which the token is bound. */
  readonly provenKey?: boolean
}
export type Answer = {
  readonly active: boolean
  readonly subject: AskedSubject | null
  readonly organization: string | null
  readonly permissions: readonly PermissionResult[]
  readonly entitlements: ReadonlyMap<string, EntitlementResult | null>
  readonly decisionId: string
  /** The journal position of the answer; null: nothing was read. */
  readonly revision: string | null
  readonly validUntilMs: number | null
  readonly acr: string | null
  readonly authTime: number | null
  /** The app whose roles answered permission keys; null: no app, or no question. */
  readonly app: string | null
}

/** A caller without a token. A guest has only what tuples grant to `user:*`: no role, membership, group or entitlement. */
export const guestOf = (organization: string): ActiveToken => ({
  ...tokenOfSubject({ type: 'user', id: '*' }, { clientId: '', scopes: new Set() }),
  organization,
  expiresAtMs: Number.POSITIVE_INFINITY,
})

export type QuestionDeps = {
  readonly pdp: Pdp
  readonly directory: Pick<Directory, 'exists'>
  readonly randomId: () => string
}
/** `token` is verified; its revocation is checked with the answer. Throws RequestProblem and PdpError. */
export type AnswerQuestion = (token: TokenState, question: Question) => Promise<Answer>

export function createAnswerQuestion(deps: QuestionDeps): AnswerQuestion {
  return (token, question) => answerQuestion(deps, token, question)
}

/** Calls `answer` in the caller's turn. Throws also RequestProblem `overloaded`. */
export function admitted(answer: AnswerQuestion, admission: Admission): AnswerQuestion {
  return (token, question) =>
    token.active
      ? admission.run({ organization: token.organization, client: token.clientId }, () => answer(token, question))
      : answer(token, question)
}

async function answerQuestion(deps: QuestionDeps, token: TokenState, question: Question): Promise<Answer> {
  const decisionId = deps.randomId()
  if (!token.active) return denied({ token: null, question, decisionId })
  const { subject: named, contextualTuples, withoutTuples, asOfMs, context } = question
  // A bearer that could set the context would state its own address or clearance.
  const setsContext = context !== undefined && question.ownCaller !== true
  const isSupposed =
    (contextualTuples !== undefined && contextualTuples.length > 0) ||
    withoutTuples !== undefined ||
    asOfMs !== undefined
  const setsApp = question.app !== undefined || question.actors !== undefined
  if (named !== null || question.explain || isSupposed || setsContext || setsApp)
    requireReader(token, question.provenKey === true)
  if (token.organization === null) {
    // Everything is denied for this subject, but the answer still tells whether the token is active.
    return denied({ token: (await deps.pdp.isRevoked(token)) ? null : token, question, decisionId })
  }
  const subject = named ?? token.subject
  // Both reads run together. The subject of a token that is not revoked exists.
  const exists = named === null || existsAsSubject(deps.directory, named, token.organization)
  const deciding = deps.pdp.decide(requestOf(token, { question, organization: token.organization, subject }))
  const [isKnown, decision] = exists === true ? [true, await deciding] : await Promise.all([exists, deciding])
  if (decision.tokenRevoked) return denied({ token: null, question, decisionId })
  const permissions = isKnown
    ? decision.permissions
    : question.permissions.map((check) => refusedUnknown(check, subject, question.explain))
  const { entitlements, revision, validUntilMs, app } = decision
  const { organization, acr, authTime } = token
  // The members are listed: a spread would take as long as the rest of this function.
  return {
    active: true,
    subject,
    organization,
    permissions,
    entitlements,
    decisionId,
    revision,
    validUntilMs,
    acr,
    authTime,
    app,
  }
}

/** Sets each member by itself: spreads of optional members would take as long as the decision. */
function requestOf(token: ActiveToken, of: { question: Question; organization: string; subject: AskedSubject }) {
  const { permissions, entitlements, explain, contextualTuples, withoutTuples, asOfMs, context } = of.question
  const { app: named, actors, scopes } = of.question
  const request: { -readonly [name in keyof DecideRequest]: DecideRequest[name] } = {
    organization: of.organization,
    subject: of.subject,
    permissions,
    entitlements,
    app: appOf(token, of.question),
    // The question names an app, so the token's audiences must not choose one.
    audiences: named === undefined || named === ANY_APP ? token.audiences : [],
    revocationKeys: token.revocationKeys,
    issuedAtMs: token.issuedAtMs,
    explain,
  }
  if (actors !== undefined) request.actors = actors
  if (scopes !== undefined) request.scopes = scopes
  // Acting clients of the token count only for its bearer.
  if (of.question.subject === null && token.actors.length > 0) {
    request.actors = token.actors
    request.scopes = [...token.scopes]
  }
  if (of.question.subject === null && token.memberships !== undefined) request.memberships = token.memberships
  if (contextualTuples !== undefined) request.contextualTuples = contextualTuples
  if (withoutTuples !== undefined) request.withoutTuples = withoutTuples
  if (asOfMs !== undefined) request.asOfMs = asOfMs
  if (context !== undefined) request.context = context
  return request
}

/** True if the organization's directory has the user or client. A grant to everybody (`user:*`) is not for others. */
export async function existsAsSubject(
  directory: Pick<Directory, 'exists'>,
  subject: AskedSubject,
  organization: string,
): Promise<boolean> {
  return !isBearer(subject) || directory.exists(subject, organization)
}

export const refusedUnknown = (check: PermissionCheck, subject: AskedSubject, explain: boolean): PermissionResult =>
  refused(check, 'none', explain, unknownSubject(subject))

const appOf = ({ app: own }: ActiveToken, { app }: Question): string | null =>
  app === undefined || (app === ANY_APP && own !== null) ? own : app

function denied(input: { token: ActiveToken | null; question: Question; decisionId: string }): Answer {
  const { token, question, decisionId } = input
  const code = 'token_inactive'
  return {
    active: token !== null,
    organization: token?.organization ?? null,
    acr: token?.acr ?? null,
    authTime: token?.authTime ?? null,
    subject: token === null ? null : (question.subject ?? token.subject),
    permissions: question.permissions.map((check) => refused(check, code, question.explain)),
    entitlements: new Map(question.entitlements.map((key) => [key, null])),
    decisionId,
    revision: null,
    validUntilMs: null,
    app: null,
  }
}

const unknownSubject = (subject: AskedSubject): string =>
  `there is no ${subject.type === 'user' ? 'user' : 'client'} "${subject.id}", whatever tuples say`

function refused(
  { relation, resource }: PermissionCheck,
  code: Reason['code'],
  explain: boolean,
  detail: string = 'the token is not active, or is bound to no organization',
): PermissionResult {
  const result: Omit<PermissionResult, 'reason'> = { relation, resource, allowed: false, reasonCode: code }
  return explain
    ? { ...result, reason: { code, message: REASONS[code], path: [], missing: [], details: [detail] } }
    : result
}
