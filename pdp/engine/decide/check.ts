/** One permission check. Only relationships, memberships, and permission keys of roles allow; all else is a denial. */

import type { PermissionCheck, Reason, UndecidedCode } from '../../shared/domain/decision.ts'
import { PdpError } from '../../shared/domain/errors.ts'
import type { JournalId } from '../../shared/domain/journal.ts'
import { MEMBERSHIP_RELATIONS } from '../../shared/domain/membership.ts'
import { isRelation as isRelationName, typeOf } from '../../shared/domain/names.ts'
import { REASONS, type ReasonCode } from '../../shared/domain/reasons.ts'
import type { ConditionRun } from './conditions/run.ts'
import { denialDetails, groupSteps } from './explanation.ts'
import type { Model } from './model.ts'
import { NEAR_LEVELS, Near } from './near.ts'
import { ANY_APP, type HeldGrant, heldPermissions } from './roles.ts'
import { PAUSED, Search, TUPLES_PER_CHECK_MAX } from './search/search.ts'
import { after, Paused, Slice, type Sliced } from './slices.ts'
import type { Way } from './subgoals.ts'
import { FALSE, TRUE, type Truth, UNKNOWN, type View } from './view.ts'

export type CheckInput = {
  readonly organization: JournalId
  /** `type:id`, `type:id#relation` or `type:*`. */
  readonly subject: string
  /** The view from which relations are read; absent: the stored one. It differs by the tuples that the question adds or removes. */
  readonly relationView?: View | undefined
  /** The app whose roles answer permission keys on the organization; null: no app is named. */
  readonly app: string | null
  readonly explain?: boolean
  /** The most tuples that may be visited. Default `TUPLES_PER_CHECK_MAX`. */
  readonly tuplesMax?: number | undefined
  /** Shared by all checks of one question. Default: a question without context. */
  readonly conditions?: ConditionRun | undefined
  /** Adds up the tuples that were visited, also when there was no answer. */
  readonly meter?: { tuplesCount: number }
}
export type Answer = {
  readonly allowed: boolean
  readonly code: ReasonCode
  /** The explanation of the answer; only with `explain`. */
  readonly reason?: Reason
}

const LETTER_A = 'a'.charCodeAt(0)
/** A slice of time without an end. */
const ENDLESS = new Slice(Number.POSITIVE_INFINITY)
const NOTHING_HELD = denied('none')
const SUSPENDED = denied('membership_suspended')
const UNKNOWN_RELATION = denied('unknown_relation')
const ALLOWED: { readonly [W in Way]: Answer } = {
  tuple: { allowed: true, code: 'tuple' },
  membership: { allowed: true, code: 'membership' },
  group: { allowed: true, code: 'group' },
  model: { allowed: true, code: 'model' },
}

/** True for an error that concerns only one check: the request's other checks still get answers. */
export const isUndecided = (error: unknown): error is PdpError & { readonly code: UndecidedCode } =>
  error instanceof PdpError && (error.code === 'evaluation_limit' || error.code === 'condition_failed')

function denied(code: ReasonCode): Answer {
  return { allowed: false, code }
}

/** @returns undefined while rows are missing. Throws PdpError `evaluation_limit` and `condition_failed`. */
export function answerCheck(view: View, model: Model, asked: CheckInput, check: PermissionCheck): Answer | undefined {
  const answer = answerWithin(ENDLESS, { view, model, asked, check })
  if (answer instanceof Paused) throw new TypeError('a slice without an end was used up')
  return answer
}

type Question = {
  readonly view: View
  readonly model: Model
  readonly asked: CheckInput
  readonly check: PermissionCheck
}

/** Does what answerCheck does, but pauses when the slice is used up. */
export function answerWithin(slice: Slice, question: Question): Sliced<Answer | undefined> {
  const answer = answerOf(slice, question, null)
  return question.asked.explain === true ? thenExplained(slice, question, answer) : answer
}

/** A function of its own, because a closure in answerWithin would cost every call, also one without explanation. */
function thenExplained(
  slice: Slice,
  question: Question,
  answer: Sliced<Answer | undefined>,
): Sliced<Answer | undefined> {
  return after(answer, (of) => explained(slice, question, of))
}

function explained(slice: Slice, question: Question, answer: Answer | undefined): Sliced<Answer | undefined> {
  if (answer === undefined || answer.reason !== undefined) return answer
  return after(relationReason(slice, question, answer), (reason) => {
    if (reason === undefined) return undefined
    const { view, model, asked, check } = question
    const { organization: log, subject } = asked
    const { details: found = [], ...rest } = reason
    const other = answer.code === 'unknown_relation' ? ofAnotherApp(question) : []
    const details = answer.allowed ? [] : [...found, ...other, ...denialDetails(view, model, { log, subject, check })]
    const { code } = answer
    const withDetails = details.length === 0 ? {} : { details }
    return { ...answer, reason: { code, message: REASONS[code], ...rest, ...withDetails } }
  })
}

/** `begun`: the search that was paused, or null at the first call. */
function answerOf(slice: Slice, question: Question, begun: Search | null): Sliced<Answer | undefined> {
  const { view, model, asked, check } = question
  const node = view.organization(asked.organization)
  const membership = view.membership(asked.organization, asked.subject)
  const { resource } = check
  // The first letter excludes most resources, which saves the call of startsWith.
  const app = resource.charCodeAt(0) === LETTER_A && resource.startsWith('app:')
  const own = isOwn(asked.organization, resource)
  const tier = own && MEMBERSHIP_RELATIONS.has(check.relation)
  const byRole = app || (own && isPermissionQuestion(model, check.relation))
  // An app's keys are never in tuples, only in roles.
  const byTuple = !app && (tier || isRelation(model, check))
  // Tuples do not count while a membership is not active, so no relation has to be evaluated then.
  const isHeld = node !== null && (membership == null || membership.status === 'active')
  // No part is skipped when rows are missing, so that one load brings the rows of all parts.
  const isAsked = byTuple && isHeld
  const near = isAsked && begun === null ? nearOf(question) : null
  let related: Truth = near === null ? FALSE : answerNear(slice, near, question)
  let way: Way = near === null ? 'tuple' : near.way
  let undecided: unknown = null
  if (isAsked && (near === null || related === UNKNOWN)) {
    // A new object, although `question` is equal: a parameter that is passed on would be allocated for every check.
    const far = searched(slice, { view, model, asked, check }, begun)
    if (far instanceof Paused) return far
    related = far.related
    way = far.way
    undecided = far.undecided
  }
  const role = byRole ? roleAnswer(view, asked, check) : NOTHING_HELD
  // An organization that does not exist has no rows, so missing rows do not matter.
  if (node === null) return NOTHING_HELD
  if (node === undefined || membership === undefined) return undefined
  // Grants in this organization do not count; those in an ancestor or in the environment do.
  if (membership !== null && membership.status !== 'active') return role?.allowed === false ? SUSPENDED : role
  if (related === TRUE) return ALLOWED[way]
  if (role?.allowed === true) return role
  if (undecided !== null && role !== undefined) throw undecided
  if (related === UNKNOWN || role === undefined) return undefined
  if (isAsked && isRelationName(check.relation)) return NOTHING_HELD
  return byRole && role.code !== 'unknown_relation' ? role : UNKNOWN_RELATION
}

/** The result of a search. `undecided`: the error when it could not decide, else null. */
function searched(
  slice: Slice,
  question: Question,
  begun: Search | null,
): { readonly related: Truth; readonly way: Way; readonly undecided: unknown } | Paused<Answer | undefined> {
  const search = begun ?? searchFor(question, false)
  try {
    const related = visit(slice, search, question)
    if (related === PAUSED) return new Paused(() => answerOf(slice, question, search))
    return { related, way: search.way, undecided: null }
  } catch (err) {
    if (!isUndecided(err)) throw err
    return { related: UNKNOWN, way: search.way, undecided: err }
  }
}

function nearOf({ view, model, asked }: Question): Near {
  return new Near({ view: asked.relationView ?? view, log: asked.organization, model, subject: asked.subject })
}

/** Answers by recursion, which decides most checks; UNKNOWN when a search is needed. */
function answerNear(slice: Slice, near: Near, { asked, check }: Question): Truth {
  const truth = near.answer(check.resource, check.relation, NEAR_LEVELS)
  const { tuplesCount } = near
  slice.left -= tuplesCount
  if (truth === UNKNOWN || tuplesCount > (asked.tuplesMax ?? TUPLES_PER_CHECK_MAX)) return UNKNOWN
  if (asked.meter !== undefined) asked.meter.tuplesCount += tuplesCount
  return truth
}

function searchFor({ view, model, asked }: Question, explains: boolean): Search {
  const { organization: log, subject, relationView, tuplesMax, conditions } = asked
  return new Search({ view: relationView ?? view, log, model, subject, explains, tuplesMax, conditions })
}

function visit(slice: Slice, search: Search, { asked: { meter }, check }: Question): Truth | typeof PAUSED {
  const { resource, relation } = check
  if (meter === undefined) return search.holdsWithin(slice, resource, relation)
  const before = search.tuplesCount
  try {
    return search.holdsWithin(slice, resource, relation)
  } finally {
    meter.tuplesCount += search.tuplesCount - before
  }
}

/** True for the organization itself. Compares without making a new string. */
function isOwn(organization: string, resource: string): boolean {
  if (resource.length !== 'organization:'.length + organization.length) return false
  return resource.startsWith('organization:') && resource.endsWith(organization)
}

function isPermissionQuestion(model: Model, relation: string): boolean {
  return !MEMBERSHIP_RELATIONS.has(relation) && model.get('organization')?.has(relation) !== true
}

/** A type in the model has the relations of the model; any other type has every relation. */
function isRelation(model: Model, { relation, resource }: PermissionCheck): boolean {
  if (model.size === 0) return true
  const relations = model.get(typeOf(resource))
  return relations === undefined || relations.has(relation)
}

function roleAnswer(view: View, asked: CheckInput, check: PermissionCheck): Answer | undefined {
  const app = typeOf(check.resource) === 'app' ? check.resource.slice('app:'.length) : asked.app
  const held = heldPermissions(view, { organization: asked.organization, subject: asked.subject, app })
  if (held === undefined) return undefined
  const found = held.permissions.find((p) => p.key === check.relation)
  if (found === undefined) {
    const declaring = declaringApps(view, app, check.relation)
    if (declaring === undefined) return undefined
    if (declaring === NOWHERE) return UNKNOWN_RELATION
    return app === ANY_APP && asked.explain === true ? heldOfNone(declaring, check.relation) : NOTHING_HELD
  }
  const { held: by } = found
  const { app: owner, role } = by.grant
  const named = app === ANY_APP && owner !== null ? [`by role ${role} of app ${owner}`] : []
  const reason = asked.explain === true ? { reason: roleReason(view, asked.subject, by, named) } : {}
  return { allowed: true, code: by.origin, ...reason }
}

const NOWHERE: readonly string[] = []

/** The apps, among those that the question is about, that declare the key. Undefined while rows are missing. */
function declaringApps(view: View, app: string | null, key: string): readonly string[] | undefined {
  const manifests = view.manifests()
  const roles = view.roles()
  if (manifests === undefined || roles === undefined) return undefined
  const isMeant = (id: string): boolean => app === ANY_APP || id === app
  const apps = manifests.filter((one) => isMeant(one.app) && Object.hasOwn(one.permissions, key)).map((one) => one.app)
  if (apps.length > 0) return apps
  return roles.some(({ permissions }) => permissions.includes(key)) ? [ANY_APP] : NOWHERE
}

/** Details of a denial whose key is declared by other apps, but not by the app whose roles count. */
function ofAnotherApp({ view, asked: { app }, check: { relation, resource } }: Question): readonly string[] {
  const apps = typeOf(resource) === 'app' ? NOWHERE : (declaringApps(view, ANY_APP, relation) ?? NOWHERE)
  if (apps === NOWHERE) return []
  const counted = app === null ? 'the question is about no app' : `the question is about app ${app}`
  return [`permission ${relation} belongs to app ${apps.join(', ')}; ${counted}`]
}

function heldOfNone(apps: readonly string[], key: string): Answer {
  const details = apps[0] === ANY_APP ? [] : [`permission ${key} belongs to app ${apps.join(', ')}`]
  return { ...NOTHING_HELD, reason: { code: 'none', message: REASONS.none, path: [], missing: [], details } }
}

function roleReason(
  view: View,
  subject: string,
  { grant, origin, log }: HeldGrant,
  details: readonly string[],
): Reason {
  const group = grant.subject.startsWith('group:') ? `${grant.subject}#member` : null
  const steps = group === null ? [] : groupSteps(view, log, { subject, group })
  const path = [{ role_grant: grant.id }, ...steps]
  return { code: origin, message: REASONS[origin], path, missing: [], ...(details.length === 0 ? {} : { details }) }
}

type RelationReason = Omit<Reason, 'code' | 'message'>

/** Searches again over the same view, with notes for the explanation; the decision stays. Undefined while rows are missing. */
function relationReason(slice: Slice, question: Question, answer: Answer): Sliced<RelationReason | undefined> {
  const { check } = question
  const isNamed = isRelationName(check.relation) && typeOf(check.resource) !== 'app'
  if (!isNamed || answer.code === 'membership_suspended' || answer.code === 'unknown_relation') return NO_REASON
  return readOff(slice, searchFor(question, true), { check, answer })
}

const NO_REASON: RelationReason = { path: [], missing: [] }

function readOff(
  slice: Slice,
  search: Search,
  of: { readonly check: PermissionCheck; readonly answer: Answer },
): Sliced<RelationReason | undefined> {
  const { resource, relation } = of.check
  try {
    if (search.holdsWithin(slice, resource, relation) === PAUSED) return new Paused(() => readOff(slice, search, of))
    return !of.answer.allowed && search.lacksRows ? undefined : search.explanation
  } catch (err) {
    // An explanation visits more than the decision did, and may reach a bound that the decision did not.
    if (isUndecided(err)) return NO_REASON
    throw err
  }
}
