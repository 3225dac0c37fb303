/** What a decision request must look like, with every issue and its JSON pointer. */
import type { DecideRequest, PermissionCheck, Subject } from '../domain/decision.ts'
import { PdpError, type ValidationIssue } from '../domain/errors.ts'
import { isEntitlementKey, isId, isObject, isPermissionKey, quote } from '../domain/names.ts'

export const CHECKS_MAX = 256
export const ENTITLEMENTS_MAX = 256

/** @throws PdpError `request_invalid`. */
export function assertRequest(request: DecideRequest): void {
  const { organization, subject, permissions = [], entitlements = [] } = request
  if (isRequest(request)) return
  const issues: ValidationIssue[] = [...bearerIssues(organization, subject)]
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
  if (issues.length > 0) throw invalid(issues)
}

/** Builds nothing: most requests are right. */
function isRequest({ organization, subject, permissions = [], entitlements = [] }: DecideRequest): boolean {
  if (permissions.length > CHECKS_MAX || entitlements.length > ENTITLEMENTS_MAX) return false
  return isBearer(organization, subject) && permissions.every(isCheck) && entitlements.every(isEntitlementKey)
}

/** As assertRequest, for one check, without building anything when it is right. */
export function assertCheck(organization: string, subject: Subject, check: PermissionCheck): void {
  if (isBearer(organization, subject) && isCheck(check)) return
  throw invalid([...bearerIssues(organization, subject), ...checkIssues(check, '')])
}

const isBearer = (organization: string, subject: Subject): boolean =>
  isId(organization) && (subject.type === 'user' || subject.type === 'service') && isId(subject.id)

const isCheck = ({ relation, resource }: PermissionCheck): boolean => isPermissionKey(relation) && isObject(resource)

function bearerIssues(organization: string, subject: Subject): readonly ValidationIssue[] {
  const issues: ValidationIssue[] = []
  if (!isId(organization)) issues.push({ place: '/organization', message: 'is not an id' })
  if (subject.type !== 'user' && subject.type !== 'service') {
    issues.push({ place: '/subject/type', message: 'is neither user nor service' })
  }
  if (!isId(subject.id)) issues.push({ place: '/subject/id', message: 'is not an id' })
  return issues
}

function checkIssues({ relation, resource }: PermissionCheck, place: string): readonly ValidationIssue[] {
  const issues: ValidationIssue[] = []
  if (!isPermissionKey(relation)) {
    issues.push({ place: `${place}/relation`, message: `${quote(relation)} is not a relation or permission key` })
  }
  if (!isObject(resource)) issues.push({ place: `${place}/resource`, message: `${quote(resource)} is not <type>:<id>` })
  return issues
}

function invalid(issues: readonly ValidationIssue[]): PdpError {
  return new PdpError('request_invalid', issues.map((m) => `${m.place} ${m.message}`).join('; '), { issues })
}
