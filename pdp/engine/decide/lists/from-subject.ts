/** Finds the resources of a list from the subject's side, when tuples name many resources and few of them are in the list. */
import type { ListResourcesRequest } from '../../../shared/domain/decision.ts'
import { subjectName } from '../../../shared/domain/subjects.ts'
import { Budget } from '../budget.ts'
import { ConditionalTuples } from '../conditional-tuples.ts'
import type { Model } from '../model.ts'
import type { Steps } from '../slices.ts'
import type { View } from '../view.ts'
import { SubjectSide } from '../wide/subject-side.ts'

/** Tuples visited at most before every resource is a candidate instead. */
const TUPLES_MAX = 20_000

/**
 * All resources that may be in the list, and perhaps others: a check decides about each. To the rest no tuples lead from the
 * subject, whatever a condition of theirs would say. Null where the subject's side does not tell: roles answer, no model knows
 * the relation, or too much is above the subject. Undefined while rows are missing.
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
