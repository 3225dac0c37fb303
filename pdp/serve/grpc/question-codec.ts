/** Converts questions of the protocol to our type. */
import type { DecideRequest } from '../../../proto/gen/portcullis/v1/decision_pb.ts'
import type { Subject } from '../../domain/decision.ts'
import type { Question } from '../decisions/answer.ts'
import { RequestProblem } from '../problems/status.ts'

/** A question of the stream is always about the token's bearer. The message is used as it is, because nothing changes it. */
export function readStreamQuestion({
  permissions,
  entitlements,
}: Pick<Question, 'permissions' | 'entitlements'>): Question {
  return { permissions, entitlements, subject: null, explain: false }
}

/** Throws RequestProblem `request_invalid` for a subject that is neither a user nor a service. */
export function readRequest(request: DecideRequest): Question {
  const subject = request.subject === undefined ? null : readSubject(request.subject)
  return { ...readStreamQuestion(request), subject, explain: request.explain }
}

function readSubject({ type, id }: { type: string; id: string }): Subject {
  if (type === 'user' || type === 'service') return { type, id }
  throw new RequestProblem('request_invalid', 'subject.type must be user or service')
}
