/** Reads the PDP's answer to one question, and believes it only when it is about exactly that question. */
import type { DecideResponse } from '../proto/gen/portcullis/v1/decision_pb.ts'
import type { PdpAnswer, PdpQuestion } from './pdp-question.ts'
import type { SignIn } from './step-up.ts'

const UNKNOWN: SignIn = { acr: null, authTime: null }
const DEAD: PdpAnswer = {
  active: false,
  subjectType: 'user',
  permissions: [],
  entitlements: new Map(),
  signIn: UNKNOWN,
}

/** Null unless subject, organization, permissions and keys are those that were asked about. */
export function readAnswer(response: DecideResponse, question: PdpQuestion): PdpAnswer | null {
  if (response.active !== true) return DEAD
  const { subject, organization, permissions } = response
  if (subject === undefined || subject.id !== question.subject) return null
  if (subject.type !== 'user' && subject.type !== 'service') return null
  if (organization !== question.organization) return null
  if (permissions.length !== question.permissions.length) return null
  const echoed = question.permissions.every(
    ({ relation, resource }, at) => permissions[at]?.relation === relation && permissions[at]?.resource === resource,
  )
  const entitlements = echoed ? readEntitlements(response, question.entitlements) : null
  if (entitlements === null) return null
  return {
    active: true,
    subjectType: subject.type,
    permissions: permissions.map(({ allowed, error }) => {
      if (error !== '') return 'undecided'
      return allowed === true ? 'allowed' : 'denied'
    }),
    entitlements,
    signIn: { acr: response.acr === '' ? null : response.acr, authTime: response.authTime || null },
  }
}

function readEntitlements(response: DecideResponse, keys: readonly string[]): Map<string, boolean> | null {
  const entitlements = new Map<string, boolean>()
  for (const key of keys) {
    const result = Object.hasOwn(response.entitlements, key) ? response.entitlements[key] : undefined
    if (result === undefined) return null
    entitlements.set(key, result.value?.enabled === true)
  }
  return entitlements
}
