/** Converts a PDP decision to an answer, and rejects it unless it echoes exactly the question. */
import type { Decision } from './codec.ts'
import type { PdpAnswer, PdpQuestion, SignIn } from './question.ts'

const UNKNOWN: SignIn = { acr: null, authTime: null }
const INACTIVE: PdpAnswer = {
  active: false,
  subjectType: 'user',
  permissions: [],
  entitlements: new Map(),
  signIn: UNKNOWN,
}

/** Null unless subject, organization, permissions and entitlement keys match the question. */
export function readAnswer(decision: Decision, question: PdpQuestion): PdpAnswer | null {
  if (!decision.active) return INACTIVE
  const { subjectType, organization, permissions, acr, authTime } = decision
  if (subjectType !== 'user' && subjectType !== 'service') return null
  if (decision.subjectId !== question.subject || organization !== question.organization) return null
  if (permissions.length !== question.permissions.length) return null
  const echoed = question.permissions.every(
    ({ relation, resource }, at) => permissions[at]?.relation === relation && permissions[at]?.resource === resource,
  )
  if (!echoed || !question.entitlements.every((key) => decision.entitlements.has(key))) return null
  return {
    active: true,
    subjectType,
    permissions: permissions.map(({ allowed, error }) => {
      if (error !== '') return 'undecided'
      return allowed ? 'allowed' : 'denied'
    }),
    entitlements: decision.entitlements,
    signIn: { acr: acr === '' ? null : acr, authTime: authTime === 0 ? null : authTime },
  }
}
