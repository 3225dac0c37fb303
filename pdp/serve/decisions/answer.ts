/** Answers one question about a bearer. HTTP and gRPC share this, so that both give the same answer for the same reason. */
import type {
  AskedSubject,
  ContextualTuple,
  EntitlementResult,
  Pdp,
  PermissionCheck,
  PermissionResult,
  Reason,
} from '../../domain/decision.ts'
import type { JsonObject } from '../../domain/json.ts'
import { REASONS } from '../../domain/reasons.ts'
import { isBearer, subjectName } from '../../domain/subjects.ts'
import type { TokenState } from '../../identity/tokens/token-state.ts'
import { parseAddress } from '../../process/addresses.ts'
import type { Log } from '../../process/log.ts'
import type { Directory } from '../../store/directory.ts'
import type { Admission } from '../authentication/admission.ts'
import { requireReader } from '../authentication/authenticate.ts'
import type { ActiveToken } from '../authentication/credentials.ts'

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
  /** The id of the request that led to the question; absent or empty: the caller does not say it. */
  readonly requestId?: string
  /** Of the client whose request led to the question, as the caller says it. */
  readonly clientAddress?: string
  /** Of the request, as the sidecar's route file writes it; absent or empty: none. */
  readonly route?: string
  /** Of the request that led to the question (W3C Trace Context), if the caller says it. */
  readonly traceparent?: string
  /** The caller is authenticated by itself, and does not speak for the bearer: it may say what the context is. */
  readonly ownCaller?: boolean
  /** The caller proved that it holds the key that the token is bound to. */
  readonly provenKey?: boolean
}
export type Answer = {
  readonly active: boolean
  readonly subject: AskedSubject | null
  readonly organization: string | null
  readonly permissions: readonly PermissionResult[]
  readonly entitlements: ReadonlyMap<string, EntitlementResult | null>
  readonly decisionId: string
  /** Null if nothing was read. */
  readonly revision: string | null
  readonly validUntilMs: number | null
  readonly acr: string | null
  readonly authTime: number | null
}

export type QuestionDeps = {
  readonly pdp: Pdp
  readonly directory: Pick<Directory, 'exists'>
  readonly log: Log
  readonly clock: () => number
  readonly randomId: () => string
}
/** `token` is verified; its revocation is checked with the answer. Throws RequestProblem and PdpError. */
export type AnswerQuestion = (token: TokenState, question: Question) => Promise<Answer>

/** Like createAnswerQuestion, without a log line: for watched questions, whose first answer was logged. */
export function createAskAgain(deps: Omit<QuestionDeps, 'log'>): AnswerQuestion {
  return (token, question) => answerQuestion(deps, token, question)
}

/** Like `answer`, once it is the caller's turn. Also throws RequestProblem `overloaded`. */
export function admitted(answer: AnswerQuestion, admission: Admission): AnswerQuestion {
  return (token, question) =>
    token.active
      ? admission.run({ organization: token.organization, client: token.clientId }, () => answer(token, question))
      : answer(token, question)
}

/** `logsAllowed`: whether the line of a question that was allowed in all parts is written. Every denial is. */
export function createAnswerQuestion(deps: QuestionDeps, logsAllowed = (): boolean => true): AnswerQuestion {
  return async (token, question) => {
    const startedMs = deps.clock()
    const answer = await answerQuestion(deps, token, question)
    if (!deps.log.isLevelEnabled('info')) return answer // building the log entry costs more than deciding
    if (isAllowed(answer) && !logsAllowed()) return answer
    deps.log.info({
      event: 'decision',
      decision_id: answer.decisionId,
      request_id: question.requestId || null,
      client_address: parseAddress(question.clientAddress ?? ''),
      route: question.route || null,
      client_id: token.active ? token.clientId : null,
      subject: answer.subject === null ? null : subjectName(answer.subject),
      organization: answer.organization,
      permissions: answer.permissions.map(({ relation, resource, allowed, reasonCode }) => ({
        relation,
        resource,
        allowed,
        reason: reasonCode,
      })),
      entitlements: [...answer.entitlements].map(([key, value]) => ({ key, present: value !== null })),
      duration_ms: deps.clock() - startedMs,
    })
    return answer
  }
}

const isAllowed = ({ active, permissions }: Answer): boolean => active && permissions.every(({ allowed }) => allowed)

async function answerQuestion(deps: Omit<QuestionDeps, 'log'>, token: TokenState, question: Question): Promise<Answer> {
  const decisionId = deps.randomId()
  if (!token.active) return denied({ token: null, question, decisionId })
  const { subject: named, contextualTuples = [], withoutTuples, asOfMs, context } = question
  // A bearer that could set the context would state its own address or clearance.
  const setsContext = context !== undefined && question.ownCaller !== true
  const isSupposed = contextualTuples.length > 0 || withoutTuples !== undefined || asOfMs !== undefined
  if (named !== null || question.explain || isSupposed || setsContext) requireReader(token, question.provenKey === true)
  if (token.organization === null) {
    return denied({ token: (await isAlive(deps.pdp, token)) ? token : null, question, decisionId })
  }
  const subject = named ?? token.subject
  // A token's own subject exists, or the token is revoked.
  const existing = named === null || existsAsSubject(deps.directory, named)
  const deciding = deps.pdp.decide({
    organization: token.organization,
    subject,
    permissions: question.permissions,
    entitlements: question.entitlements,
    app: token.app,
    audiences: token.audiences,
    // They are the bearer's, and nobody else's.
    ...(named === null && token.memberships !== undefined && { memberships: token.memberships }),
    revocationKeys: token.revocationKeys,
    issuedAtMs: token.issuedAtMs,
    explain: question.explain,
    contextualTuples,
    ...(withoutTuples !== undefined && { withoutTuples }),
    ...(asOfMs !== undefined && { asOfMs }),
    ...(context !== undefined && { context }),
  })
  const [exists, decision] = await Promise.all([existing, deciding])
  if (decision.tokenRevoked) return denied({ token: null, question, decisionId })
  const permissions = exists
    ? decision.permissions
    : question.permissions.map((check) => refusedUnknown(check, subject, question.explain))
  const { entitlements, revision, validUntilMs } = decision
  const { organization, acr, authTime } = token
  // Not a spread, which takes as long as everything else here.
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
  }
}

/** Wildcard grants are for people and clients that exist. */
export async function existsAsSubject(directory: Pick<Directory, 'exists'>, subject: AskedSubject): Promise<boolean> {
  return !isBearer(subject) || directory.exists(subject)
}

export const refusedUnknown = (check: PermissionCheck, subject: AskedSubject, explain: boolean): PermissionResult =>
  refused(check, 'none', explain, unknownSubject(subject))

/** A token without an organization is denied everything; the answer still says whether the token is active. */
async function isAlive(pdp: Pick<Pdp, 'isRevoked'>, token: ActiveToken): Promise<boolean> {
  return !(await pdp.isRevoked(token))
}

function denied(input: { token: ActiveToken | null; question: Question; decisionId: string }): Answer {
  const { token, question, decisionId } = input
  const code = 'token_inactive'
  return {
    active: token !== null,
    ...(token === null ? { organization: null, acr: null, authTime: null } : context(token)),
    subject: token === null ? null : (question.subject ?? token.subject),
    permissions: question.permissions.map((check) => refused(check, code, question.explain)),
    entitlements: new Map(question.entitlements.map((key) => [key, null])),
    decisionId,
    revision: null,
    validUntilMs: null,
  }
}

function context(token: ActiveToken): Pick<Answer, 'organization' | 'acr' | 'authTime'> {
  return { organization: token.organization, acr: token.acr, authTime: token.authTime }
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
