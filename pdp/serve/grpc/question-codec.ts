/** Converts questions of the protocol to our type. */
import type { ContextualTuple, DecideRequest, Subject } from '../../../proto/gen/portcullis/v1/decision_pb.ts'
import type { AskedSubject } from '../../domain/decision.ts'
import type { Question } from '../decisions/answer.ts'

/** A question of the stream is always about the token's bearer. The message is used as it is, because nothing changes it. */
export function readStreamQuestion({
  permissions,
  entitlements,
}: Pick<Question, 'permissions' | 'entitlements'>): Question {
  return { permissions, entitlements, subject: null, explain: false }
}

export function readRequest(request: DecideRequest): Question {
  const subject = request.subject === undefined ? null : readSubject(request.subject)
  const { explain, contextualTuples } = request
  return { ...readStreamQuestion(request), subject, explain, contextualTuples: contextualTuples.map(readTuple) }
}

/** An empty relation is not there. */
const readSubject = ({ type, id, relation }: Subject): AskedSubject =>
  relation === '' ? { type, id } : { type, id, relation }

const readTuple = ({ object, relation, subject }: ContextualTuple) => ({ object, relation, subject })
