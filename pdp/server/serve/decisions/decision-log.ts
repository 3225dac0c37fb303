/** The line that the log has for each answered question (`decision-log.schema.json`). */

import type { TokenState } from '../../../identity/issuer/tokens/token-state.ts'
import { parseAddress } from '../../../shared/base/addresses.ts'
import { subjectName } from '../../../shared/domain/subjects.ts'
import type { Log } from '../../../shared/process/log.ts'
import type { Answer, Question } from './answer.ts'
import type { AnswerObserver } from './observed-answers.ts'

/** Logs a line for each denial. `logsAllowed`: true if a question whose parts are all allowed gets a line, too. */
export function logDecisions(log: Log, logsAllowed = (): boolean => true): AnswerObserver {
  return {
    answered({ token, question, answer, durationMs }) {
      if (!log.isLevelEnabled('info')) return // building the log entry costs more than deciding
      if (isAllowed(answer) && !logsAllowed()) return
      log.info({
        event: 'decision',
        decision_id: answer.decisionId,
        request_id: question.requestId || null,
        client_address: parseAddress(question.clientAddress ?? ''),
        route: question.route || null,
        client_id: token.active && token.clientId !== '' ? token.clientId : null,
        subject: answer.subject === null ? null : subjectName(answer.subject),
        organization: answer.organization,
        app: answer.app,
        ...actingFor(token, question),
        permissions: answer.permissions.map(({ relation, resource, allowed, reasonCode, missingContext }) => ({
          relation,
          resource,
          allowed,
          reason: reasonCode,
          ...(missingContext !== undefined && { missing_context: missingContext }),
        })),
        entitlements: answer.entitlements.size === 0 ? [] : entitlementsOf(answer),
        duration_ms: Math.round(durationMs * 10) / 10,
      })
    },
  }
}

/** The clients that acted, the last one first, and the scopes that their delegations may depend on. */
export type ActingFor = { readonly actors?: readonly string[]; readonly scopes?: readonly string[] }
const NOBODY: ActingFor = {}
const NONE: readonly never[] = []

/** The clients of the token that act for its bearer, or those that the question names. */
export function actingFor(token: TokenState, { subject, actors: named, scopes = NONE }: Question): ActingFor {
  const own = subject === null && token.active && token.actors.length > 0 ? token : null
  const actors = own === null ? (named ?? NONE) : own.actors
  return actors.length === 0
    ? NOBODY
    : { actors: actors.map(({ id }) => id), scopes: own === null ? scopes : [...own.scopes] }
}

/** True if a log has all facts behind the answer: logs have no context, contextual tuples or groups of the token. */
export const isWhole = (token: TokenState, question: Question): boolean =>
  question.context === undefined &&
  (question.contextualTuples ?? NONE).length === 0 &&
  (question.withoutTuples ?? NONE).length === 0 &&
  question.asOfMs === undefined &&
  !(token.active && question.subject === null && token.memberships !== undefined)

/** Keys of entitlements and whether each is present, without the values. */
export const entitlementsOf = ({
  entitlements,
}: Answer): readonly { readonly key: string; readonly present: boolean }[] =>
  [...entitlements].map(([key, value]) => ({ key, present: value !== null }))

const isAllowed = ({ active, permissions }: Answer): boolean => active && permissions.every(({ allowed }) => allowed)
