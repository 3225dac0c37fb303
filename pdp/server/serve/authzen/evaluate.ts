/** Answers evaluations with as few questions as possible: evaluations about one subject in one organization become one question. */
import type {
  AskedSubject,
  EntitlementResult,
  PermissionCheck,
  PermissionResult,
} from '../../../shared/domain/decision.ts'
import type { JsonObject } from '../../../shared/domain/json.ts'
import { isEntitlementKey } from '../../../shared/domain/names.ts'
import type { Answer, AnswerQuestion } from '../decisions/answer.ts'
import { RequestProblem, STATUS } from '../http/status.ts'
import { type Caller, type CallerDeps, isSame, organizationOf, setsContext, subjectOf } from './caller.ts'
import { type Evaluation, objectOf, relationOf, type Semantic } from './entities.ts'

export type EvaluateDeps = CallerDeps & { readonly answer: AnswerQuestion }
export type Decision = { readonly decision: boolean; readonly context: JsonObject }

/** A permission and its `index` in the group's question, or an entitlement and its key. */
type Placed = { readonly group: Group } & ({ readonly index: number } | { readonly key: string })
type Group = {
  readonly organization: string | null
  readonly subject: AskedSubject
  /** Parameters of conditions; null for a caller that may not set them. */
  readonly context: JsonObject | null
  readonly permissions: PermissionCheck[]
  readonly entitlements: string[]
  answer: Answer | null
}
/** Marks an item that is denied without a question to the PDP: its subject is unknown, or no grant can have its name. */
const UNKNOWN = 'unknown'
type Item = Placed | typeof UNKNOWN | RequestProblem

/** The answer to one evaluation. Throws RequestProblem and PdpError. */
export async function evaluateOne(deps: EvaluateDeps, caller: Caller, evaluation: Evaluation): Promise<Decision> {
  const groups = new Map<string, Group>()
  const item = await place(deps, caller, { evaluation, groups })
  await askAll(deps, caller, groups)
  return decisionOf(item)
}

/** One decision per item, in order. An incomplete item is denied alone. Throws RequestProblem and PdpError. */
export async function evaluateAll(
  deps: EvaluateDeps,
  caller: Caller,
  evaluations: readonly (Evaluation | RequestProblem)[],
): Promise<readonly Decision[]> {
  const groups = new Map<string, Group>()
  const items: Item[] = []
  for (const evaluation of evaluations) items.push(await placeOrRefuse(deps, caller, { evaluation, groups }))
  await askAll(deps, caller, groups)
  return items.map(decisionOf)
}

/** Asks all questions at once, so that one read of the store serves them. */
async function askAll(deps: EvaluateDeps, caller: Caller, groups: Map<string, Group>): Promise<void> {
  // Without items, one question is still asked: its answer tells whether the token is revoked.
  if (groups.size === 0) {
    const { organization, subject } = caller.token
    groupOf(groups, { organization, subject, context: null })
  }
  await Promise.all([...groups.values()].map((group) => ask(deps, caller, group)))
}

/** Section 7.1.2: the shorter answers end with the item that decided. An item that failed counts as denied. */
export function untilDecided(decisions: readonly Decision[], semantic: Semantic): readonly Decision[] {
  if (semantic === 'execute_all') return decisions
  const last = decisions.findIndex(({ decision }) => decision === (semantic === 'permit_on_first_permit'))
  return last < 0 ? decisions : decisions.slice(0, last + 1)
}

type Placing = { readonly evaluation: Evaluation; readonly groups: Map<string, Group> }

async function placeOrRefuse(
  deps: EvaluateDeps,
  caller: Caller,
  { evaluation, groups }: Omit<Placing, 'evaluation'> & { readonly evaluation: Evaluation | RequestProblem },
): Promise<Item> {
  if (evaluation instanceof RequestProblem) return evaluation
  try {
    return await place(deps, caller, { evaluation, groups })
  } catch (err) {
    if (err instanceof RequestProblem) return err
    throw err
  }
}

async function place(deps: EvaluateDeps, caller: Caller, { evaluation, groups }: Placing): Promise<Item> {
  const organization = await organizationOf(caller, evaluation.organization)
  const subject = await subjectOf(deps, caller.token, evaluation.subject)
  if (subject === null) return UNKNOWN
  const asked = questionOf(evaluation)
  if (asked === null) return UNKNOWN
  const context = setsContext(caller.token) ? evaluation.parameters : null
  const group = groupOf(groups, { organization, subject, context })
  if (typeof asked !== 'string') return { group, index: group.permissions.push(asked) - 1 }
  group.entitlements.push(asked)
  return { group, key: asked }
}

function groupOf(groups: Map<string, Group>, of: Pick<Group, 'organization' | 'subject' | 'context'>): Group {
  const key = JSON.stringify([of.organization, of.subject.type, of.subject.id, of.context])
  const group = groups.get(key) ?? { ...of, permissions: [], entitlements: [], answer: null }
  groups.set(key, group)
  return group
}

/** The question of an evaluation: a permission, or the key of an entitlement. */
function questionOf({ action, resource }: Evaluation): PermissionCheck | string | null {
  const { type, id } = resource
  if (type === 'entitlement') return action === 'use' && isEntitlementKey(id) ? id : null
  const relation = relationOf(action, type)
  const name = objectOf(resource)
  return name !== null && relation !== null ? { relation, resource: name } : null
}

async function ask({ answer }: EvaluateDeps, caller: Caller, group: Group): Promise<void> {
  const { token, provenKey, from } = caller
  const asked = await answer(
    { ...token, organization: group.organization },
    {
      permissions: group.permissions,
      entitlements: group.entitlements,
      subject: isSame(group.subject, token.subject) ? null : group.subject,
      explain: false,
      provenKey,
      ...from,
      ...(group.context === null || Object.keys(group.context).length === 0 ? {} : { context: group.context }),
    },
  )
  if (!asked.active) throw caller.inactive()
  group.answer = asked
}

function decisionOf(item: Item): Decision {
  if (item instanceof RequestProblem) return failed(STATUS[item.code].http, item.message)
  if (item === UNKNOWN) return { decision: false, context: { reason_code: 'none' } }
  const { answer } = item.group
  if (answer === null) throw new TypeError('a question was not asked')
  const revision = answer.revision === null ? {} : { revision: answer.revision }
  if ('key' in item) return entitlementDecision(answer.entitlements.get(item.key) ?? null, revision)
  return permissionDecision(answer.permissions[item.index], revision)
}

function permissionDecision(result: PermissionResult | undefined, revision: JsonObject): Decision {
  if (result === undefined) throw new TypeError('a question has no answer')
  const { error, missingContext = [] } = result
  if (error === 'evaluation_limit')
    return failed(STATUS.store_unavailable.http, 'the question needs more work than one check may take')
  if (error === 'condition_failed')
    return { decision: false, context: { reason_code: error, missing_context: [...missingContext], ...revision } }
  return { decision: result.allowed, context: { reason_code: result.reasonCode, ...revision } }
}

function entitlementDecision(result: EntitlementResult | null, revision: JsonObject): Decision {
  if (result === null) return { decision: false, context: { reason_code: 'none', ...revision } }
  const { value, version } = result
  return { decision: result.boolean(), context: { entitlement: { value, version }, ...revision } }
}

const failed = (status: number, message: string): Decision => ({
  decision: false,
  context: { error: { status, message } },
})
