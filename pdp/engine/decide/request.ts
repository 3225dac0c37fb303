/** Validates the form of a decision request, and reports every issue with its JSON pointer. */
import type { AskedSubject, DecideRequest, PermissionCheck } from '../../shared/domain/decision.ts'
import { invalidRequest, type ValidationIssue } from '../../shared/domain/errors.ts'
import { isJsonObject, type JsonObject, jsonText } from '../../shared/domain/json.ts'
import {
  isEntitlementKey,
  isId,
  isObject,
  isObjectId,
  isRelation,
  isRelationOrKey,
  isType,
  quote,
} from '../../shared/domain/names.ts'
import { isAskedSubject } from '../../shared/domain/subjects.ts'
import { CONTEXT_BYTES_MAX } from '../../shared/domain/tuple.ts'
import { contextualIssues, withoutIssues } from './views/contextual-tuples.ts'

export const CHECKS_MAX = 256
export const ENTITLEMENTS_MAX = 256
const NO_ISSUES: readonly ValidationIssue[] = []

/** Issues in the form of a question's context, which do not depend on conditions. */
export function contextIssues(context: JsonObject | undefined): readonly ValidationIssue[] {
  if (context === undefined) return NO_ISSUES
  if (!isJsonObject(context)) return [{ place: '/context', message: 'is not an object' }]
  const text = jsonText(context)
  if (text === null) return [{ place: '/context', message: 'is not JSON' }]
  return Buffer.byteLength(text) <= CONTEXT_BYTES_MAX
    ? NO_ISSUES
    : [{ place: '/context', message: `has more than ${CONTEXT_BYTES_MAX} bytes` }]
}

/** Throws PdpError `request_invalid`. */
export function assertRequest(request: DecideRequest): void {
  const { organization, subject, permissions = [], entitlements = [], contextualTuples = [] } = request
  if (isRequest(request)) return
  const { withoutTuples = [], asOfMs } = request
  const issues: ValidationIssue[] = [...subjectIssues(organization, subject), ...contextualIssues(contextualTuples)]
  issues.push(...contextIssues(request.context), ...withoutIssues(withoutTuples), ...asOfIssues(asOfMs))
  if (!isActor(request.actor)) issues.push({ place: '/actor', message: 'is not a client: {type: service, id}' })
  if (permissions.length > CHECKS_MAX)
    issues.push({ place: '/permissions', message: `has more than ${CHECKS_MAX} items` })
  if (entitlements.length > ENTITLEMENTS_MAX) {
    issues.push({ place: '/entitlements', message: `has more than ${ENTITLEMENTS_MAX} items` })
  }
  permissions.slice(0, CHECKS_MAX).forEach((check, i) => {
    issues.push(...checkIssues(check, `/permissions/${i}`))
  })
  entitlements.slice(0, ENTITLEMENTS_MAX).forEach((key, i) => {
    if (!isEntitlementKey(key))
      issues.push({ place: `/entitlements/${i}`, message: `${quote(key)} is not an entitlement key` })
  })
  if (issues.length > 0) throw invalidRequest(issues)
}

export function asOfIssues(asOfMs: number | undefined): readonly ValidationIssue[] {
  const isInstant = asOfMs === undefined || Number.isFinite(asOfMs)
  return isInstant ? [] : [{ place: '/asOfMs', message: 'is not an instant' }]
}

const isActor = (actor: DecideRequest['actor']): boolean =>
  actor === undefined || (actor.type === 'service' && isId(actor.id))

/** True for a certainly valid request. Allocates nothing, since most requests are valid. */
function isRequest(request: DecideRequest): boolean {
  const { organization, subject, permissions = [], entitlements = [], contextualTuples = [] } = request
  if (permissions.length > CHECKS_MAX || entitlements.length > ENTITLEMENTS_MAX || contextualTuples.length > 0)
    return false
  if (request.withoutTuples !== undefined || request.asOfMs !== undefined || !isActor(request.actor)) return false
  if (contextIssues(request.context).length > 0) return false
  return isId(organization) && isAsked(subject) && permissions.every(isCheck) && entitlements.every(isEntitlementKey)
}

/** Does what assertRequest does, for one check. Allocates nothing for a valid one. */
export function assertCheck(
  organization: string,
  subject: AskedSubject,
  check: PermissionCheck,
  context: JsonObject | undefined,
): void {
  const issues = contextIssues(context)
  if (isId(organization) && isAsked(subject) && isCheck(check) && issues.length === 0) return
  throw invalidRequest([...subjectIssues(organization, subject), ...checkIssues(check, ''), ...issues])
}

/** The usual subject is a user or a service, of which only the id has to be checked. */
const isAsked = (subject: AskedSubject): boolean =>
  subject.relation === undefined && (subject.type === 'user' || subject.type === 'service')
    ? isObjectId(subject.id) || subject.id === '*'
    : isAskedSubject(subject)

const isCheck = ({ relation, resource, any }: PermissionCheck): boolean =>
  isRelationOrKey(relation) &&
  (any === undefined || any === false ? isObject(resource) : any === true && isType(resource))

function subjectIssues(organization: string, subject: AskedSubject): readonly ValidationIssue[] {
  const issues: ValidationIssue[] = []
  if (!isId(organization)) issues.push({ place: '/organization', message: 'is not an id' })
  return [...issues, ...askedSubjectIssues(subject)]
}

export function askedSubjectIssues({ type, id, relation }: AskedSubject): readonly ValidationIssue[] {
  const issues: ValidationIssue[] = []
  if (!isType(type)) issues.push({ place: '/subject/type', message: `${quote(type)} is not a type` })
  if (id === '*' && relation !== undefined)
    issues.push({ place: '/subject/relation', message: 'does not go with the id *' })
  else if (id !== '*' && !isObjectId(id)) issues.push({ place: '/subject/id', message: 'is not an id' })
  if (relation !== undefined && !isRelation(relation))
    issues.push({ place: '/subject/relation', message: `${quote(relation)} is not a relation` })
  return issues
}

function checkIssues({ relation, resource, any }: PermissionCheck, place: string): readonly ValidationIssue[] {
  const issues: ValidationIssue[] = []
  if (!isRelationOrKey(relation)) {
    issues.push({ place: `${place}/relation`, message: `${quote(relation)} is not a relation or permission key` })
  }
  if (any !== undefined && typeof any !== 'boolean')
    issues.push({ place: `${place}/any`, message: 'is neither true nor false' })
  else if (!(any === true ? isType(resource) : isObject(resource)))
    issues.push({
      place: `${place}/resource`,
      message: `${quote(resource)} is not ${any === true ? 'a type' : '<type>:<id>'}`,
    })
  return issues
}
