/** Converts questions of the protocol to our type. */
import type { ContextualTuple, DecideRequest, Subject } from '../../../../proto/gen/portcullis/v1/decision_pb.ts'
import type { AskedSubject } from '../../../shared/domain/decision.ts'
import { isJsonObject, type JsonObject } from '../../../shared/domain/json.ts'
import { isRequestId, isRouteId } from '../../../shared/domain/names.ts'
import type { Question } from '../decisions/answer.ts'
import { parseJson } from '../http/json.ts'
import { RequestProblem } from '../http/status.ts'

/** Reads a question about the token's bearer. The message's own parts are used, so it must not be changed. */
export function readStreamQuestion(
  asked: Pick<Question, 'permissions' | 'entitlements'> & {
    readonly context: string
    readonly requestId: string
    readonly traceparent?: string
    readonly clientAddress: string
    readonly route?: string
  },
): Question {
  const { permissions, entitlements, context, traceparent = '', clientAddress, route: way = '' } = asked
  const requestId = isRequestId(asked.requestId) ? asked.requestId : ''
  const route = isRouteId(way) ? way : ''
  if (context === '')
    return { permissions, entitlements, subject: null, explain: false, requestId, traceparent, clientAddress, route }
  return {
    permissions,
    entitlements,
    subject: null,
    explain: false,
    requestId,
    traceparent,
    clientAddress,
    route,
    context: readContext(context, 'context'),
    ownCaller: true,
  }
}

/** Reads the context. Throws RequestProblem `request_invalid`. */
function readContext(text: string, name: string): JsonObject {
  const value = parseJson(text)
  if (isJsonObject(value)) return value
  throw new RequestProblem('request_invalid', `${name} is not a JSON object`)
}

export function readRequest(request: DecideRequest): Question {
  const subject = request.subject === undefined ? null : readSubject(request.subject)
  const { explain, contextualTuples } = request
  return { ...readStreamQuestion(request), subject, explain, contextualTuples: contextualTuples.map(readTuple) }
}

/** An empty relation means a subject without relation. */
const readSubject = ({ type, id, relation }: Subject): AskedSubject =>
  relation === '' ? { type, id } : { type, id, relation }

function readTuple({ object, relation, subject, condition: name, conditionContext }: ContextualTuple) {
  const tuple = { object, relation, subject }
  if (name === '' && conditionContext === '') return tuple
  const context = conditionContext === '' ? {} : readContext(conditionContext, 'condition_context')
  return { ...tuple, condition: { name, context } }
}
