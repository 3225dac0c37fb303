/** Finds the candidates of a list of resources by following tuples up from the subject, instead of taking every resource. */
import type { ListResourcesRequest } from '../../../shared/domain/decision.ts'
import { subjectName } from '../../../shared/domain/subjects.ts'
import { Budget } from '../budget.ts'
import { ConditionalTuples } from '../conditional-tuples.ts'
import type { Model } from '../model.ts'
import type { Steps } from '../slices.ts'
import type { View } from '../view.ts'
import { SubjectSide } from '../wide/subject-side.ts'

/** How many tuples may be visited; beyond it, every resource is a candidate instead. */
const TUPLES_MAX = 20_000

/**
 * All resources to which tuples lead from the subject, with or without a condition. The list can contain no others; a check decides about
 * each. Null when this fails: roles answer, no model has the relation, or too many tuples are above the subject. Undefined while rows are
 * missing.
 */
export function* resourcesFromSubject(
  view: View,
  model: Model,
  { organization, subject, relation, type }: ListResourcesRequest,
): Steps<readonly string[] | null | undefined> {
  const holdsRoles = type === 'organization' || type === 'app'
  if (holdsRoles || model.get(type)?.has(relation) !== true) return null
  const side = new SubjectSide({
    view,
    log: organization,
    model,
    subject: subjectName(subject),
    conditions: new ConditionalTuples(view, organization, null),
    budget: new Budget(TUPLES_MAX),
  })
  const objects = yield* side.objects(type, relation)
  return objects?.whole === false ? null : objects?.found
}
