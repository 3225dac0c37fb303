/** One permission check: relationships and memberships, or a permission key of a role. Everything else is a denial. */
import type { PermissionCheck, Reason, UndecidedCode } from '../domain/decision.ts'
import { PdpError } from '../domain/errors.ts'
import type { LogId } from '../domain/log.ts'
import { MEMBERSHIP_RELATIONS } from '../domain/membership.ts'
import { isRelation as isRelationName, typeOf } from '../domain/names.ts'
import { REASONS, type ReasonCode } from '../domain/reasons.ts'
import type { ConditionRun } from './conditions/run.ts'
import { denialDetails, groupSteps } from './explanation.ts'
import type { Way } from './gates.ts'
import type { Model } from './model.ts'
import { RelationCheck } from './relations.ts'
import { type HeldGrant, heldPermissions } from './roles.ts'
import { FALSE, TRUE, type Truth, UNKNOWN, type View } from './view.ts'

export type Asked = {
  readonly organization: LogId
  /** `type:id`, `type:id#relation` or `type:*`. */
  readonly subject: string
  /** What relations are read from, where that is more than the view: tuples of the question beside those stored. */
  readonly relationView?: View | undefined
  /** The app whose roles answer permission keys on the organization itself. */
  readonly app: string | null
  readonly explain?: boolean
  /** Tuples that are visited at most; `TUPLES_PER_CHECK_MAX` by default. */
  readonly tuplesMax?: number | undefined
  /** Of all checks of one question. Default: a question without context. */
  readonly conditions?: ConditionRun | undefined
  /** Counts the tuples that are visited, whether they lead to an answer or to a bound. */
  readonly meter?: { tuplesCount: number }
}
export type Answer = {
  readonly allowed: boolean
  readonly code: ReasonCode
  /** What led to it; only when asked for. */
  readonly reason?: Reason
}

const NOTHING_HELD = denied('none')
const SUSPENDED = denied('membership_suspended')
const UNKNOWN_RELATION = denied('unknown_relation')
const ALLOWED: { readonly [W in Way]: Answer } = {
  tuple: { allowed: true, code: 'tuple' },
  membership: { allowed: true, code: 'membership' },
  group: { allowed: true, code: 'group' },
  model: { allowed: true, code: 'model' },
}

/** This question has no answer; the others of the request have theirs. */
export const isUndecided = (error: unknown): error is PdpError & { readonly code: UndecidedCode } =>
  error instanceof PdpError && (error.code === 'evaluation_limit' || error.code === 'condition_failed')

function denied(code: ReasonCode): Answer {
  return { allowed: false, code }
}

/** @returns undefined while rows are missing. Throws PdpError `evaluation_limit` and `condition_failed`. */
export function answerCheck(view: View, model: Model, asked: Asked, check: PermissionCheck): Answer | undefined {
  const answer = answerOf(view, model, asked, check)
  if (answer === undefined || asked.explain !== true || answer.reason !== undefined) return answer
  const reason = relationReason(view, model, { asked, check, answer })
  if (reason === undefined) return undefined
  const { organization: log, subject } = asked
  const { details: found = [], ...rest } = reason
  const details = answer.allowed ? [] : [...found, ...denialDetails(view, model, { log, subject, check })]
  return {
    ...answer,
    reason: { code: answer.code, message: REASONS[answer.code], ...rest, ...(details.length === 0 ? {} : { details }) },
  }
}

function answerOf(view: View, model: Model, asked: Asked, check: PermissionCheck): Answer | undefined {
  const node = view.organization(asked.organization)
  const membership = view.membership(asked.organization, asked.subject)
  const { resource } = check
  const app = resource.startsWith('app:')
  const own = resource.startsWith('organization:') && resource === `organization:${asked.organization}`
  const tier = own && MEMBERSHIP_RELATIONS.has(check.relation)
  const byRole = app || (own && isPermissionQuestion(model, check.relation))
  // An app's keys are held through roles only.
  const byTuple = !app && (tier || isRelation(model, check))
  // What is held without an active membership does not count, so that nothing about it has to be decided.
  const isHeld = node !== null && (membership == null || membership.status === 'active')
  // Everything is looked at before giving up for want of rows, so that one load brings it all.
  const relation =
    byTuple && isHeld
      ? new RelationCheck({
          view: asked.relationView ?? view,
          log: asked.organization,
          model,
          subject: asked.subject,
          tuplesMax: asked.tuplesMax,
          conditions: asked.conditions,
        })
      : null
  let related: Truth = FALSE
  try {
    if (relation !== null) related = visit(relation, asked, check)
  } catch (error) {
    if (node !== undefined && membership !== undefined) throw error
    if (!isUndecided(error)) throw error
    related = UNKNOWN
  }
  const role = byRole ? roleAnswer(view, asked, check) : NOTHING_HELD
  // Of an organization that does not exist no row can ever be had, so nothing more is waited for.
  if (node === null) return NOTHING_HELD
  if (node === undefined || membership === undefined) return undefined
  // What is held here does not count, but what an ancestor or the environment grants does.
  if (membership !== null && membership.status !== 'active') return role?.allowed === false ? SUSPENDED : role
  if (relation !== null && related === TRUE) return ALLOWED[relation.way]
  if (role?.allowed === true) return role
  if (related === UNKNOWN || role === undefined) return undefined
  if (relation !== null && isRelationName(check.relation)) return NOTHING_HELD
  return byRole && role.code !== 'unknown_relation' ? NOTHING_HELD : UNKNOWN_RELATION
}

function visit(walk: RelationCheck, { meter }: Asked, { resource, relation }: PermissionCheck): Truth {
  if (meter === undefined) return walk.holds(resource, relation)
  try {
    return walk.holds(resource, relation)
  } finally {
    meter.tuplesCount += walk.tuplesCount
  }
}

function isPermissionQuestion(model: Model, relation: string): boolean {
  return !MEMBERSHIP_RELATIONS.has(relation) && model.get('organization')?.has(relation) !== true
}

/** A modelled type has the relations of its model; any other type has whatever its tuples say. */
function isRelation(model: Model, { relation, resource }: PermissionCheck): boolean {
  if (model.size === 0) return true
  const relations = model.get(typeOf(resource))
  return relations === undefined || relations.has(relation)
}

function roleAnswer(view: View, asked: Asked, check: PermissionCheck): Answer | undefined {
  const app = typeOf(check.resource) === 'app' ? check.resource.slice('app:'.length) : asked.app
  const held = heldPermissions(view, { organization: asked.organization, subject: asked.subject, app })
  if (held === undefined) return undefined
  const found = held.permissions.find((p) => p.key === check.relation)
  if (found === undefined) return isDeclared(view, app, check.relation) ? NOTHING_HELD : UNKNOWN_RELATION
  const { held: by } = found
  const reason = asked.explain === true ? { reason: roleReason(view, asked.subject, by) } : {}
  return { allowed: true, code: by.origin, ...reason }
}

function isDeclared(view: View, app: string | null, key: string): boolean {
  const manifest = view.manifests()?.find((m) => m.app === app)
  return (
    (manifest !== undefined && Object.hasOwn(manifest.permissions, key)) ||
    view.roles()?.some((r) => r.permissions.includes(key)) === true
  )
}

function roleReason(view: View, subject: string, { grant, origin, log }: HeldGrant): Reason {
  const group = grant.subject.startsWith('group:') ? `${grant.subject}#member` : null
  const steps = group === null ? [] : groupSteps(view, log, { subject, group })
  return { code: origin, message: REASONS[origin], path: [{ role_grant: grant.id }, ...steps], missing: [] }
}

/** A second walk over the same moment, which notes what it passes: the decision itself never depends on it. Undefined while rows are missing. */
function relationReason(
  view: View,
  model: Model,
  of: { asked: Asked; check: PermissionCheck; answer: Answer },
): Omit<Reason, 'code' | 'message'> | undefined {
  const { asked, check, answer } = of
  const nothing = { path: [], missing: [] }
  if (answer.code === 'membership_suspended' || answer.code === 'unknown_relation') return nothing
  if (!isRelationName(check.relation) || typeOf(check.resource) === 'app') return nothing
  const { organization: log, subject, tuplesMax, conditions } = asked
  const relationView = asked.relationView ?? view
  const walk = new RelationCheck({ view: relationView, log, model, subject, explains: true, tuplesMax, conditions })
  try {
    walk.holds(check.resource, check.relation)
    return !answer.allowed && walk.lacksRows ? undefined : walk.explanation
  } catch (error) {
    // A denial is explained by more than it takes to decide it, which may be too much.
    if (isUndecided(error)) return nothing
    throw error
  }
}
