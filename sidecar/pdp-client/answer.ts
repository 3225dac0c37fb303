/** Converts a PDP decision to an answer, and rejects it unless it echoes exactly the question. */
import { type Decision, echoes } from '../../pdp/shared/client/codec.ts'
import { reasonText } from '../../pdp/shared/domain/reasons.ts'
import { EXTERNAL_MARK } from '../../pdp/shared/token/issuer-claims.ts'
import { PdpUnavailable } from '../request/errors.ts'
import type { PdpAnswer, PdpQuestion, PermissionOutcome, SignIn } from './question.ts'

const UNKNOWN: SignIn = { acr: null, authTime: null }
const INACTIVE: PdpAnswer = {
  active: false,
  subjectType: 'user',
  permissions: [],
  reasons: [],
  entitlements: new Map(),
  revision: '',
  signIn: UNKNOWN,
}

/** The answer; null: subject, organization, permissions or entitlement keys differ from the question. */
export function readAnswer(decision: Decision, question: PdpQuestion): PdpAnswer | null {
  if (!decision.active) return INACTIVE
  const { subjectType, organization, permissions, revision, acr, authTime } = decision
  if (subjectType !== 'user' && subjectType !== 'service') return null
  if (decision.subjectId !== question.subject || organization !== (question.organization ?? '')) return null
  if (!echoes(decision, question)) return null
  return {
    active: true,
    subjectType,
    permissions: permissions.map(outcomeOf),
    reasons: permissions.map(describe),
    entitlements: enabledOf(decision),
    revision,
    signIn: { acr: acr === '' ? null : acr, authTime: authTime === 0 ? null : authTime },
  }
}

function outcomeOf({ allowed, error }: Decision['permissions'][number]): PermissionOutcome {
  if (error === 'condition_failed' || error === 'evaluation_limit') return error
  if (error !== '') return 'undecided'
  return allowed ? 'allowed' : 'denied'
}

const NO_ENTITLEMENTS: PdpAnswer['entitlements'] = new Map()
const enabledOf = ({ entitlements }: Decision): PdpAnswer['entitlements'] =>
  entitlements.size === 0
    ? NO_ENTITLEMENTS
    : new Map([...entitlements].map(([key, { value }]) => [key, value?.enabled === true]))

/** The reason in words for the log; empty for an allow. */
function describe({ allowed, error, reasonCode, missingContext }: Decision['permissions'][number]): string {
  if (allowed && error === '') return ''
  const reason = reasonText(reasonCode === '' ? error : reasonCode)
  return missingContext.length === 0 ? reason : `${reason}; the context lacks ${missingContext.join(', ')}`
}

/** Does what `readAnswer` does, but throws PdpUnavailable where that returns null. */
export function decidedAbout(decision: Decision, question: PdpQuestion): PdpAnswer {
  const answer = readAnswer(decision, question)
  if (answer !== null) return answer
  const mismatch = issuerMismatch(decision, question)
  if (mismatch === null) throw new PdpUnavailable('the answer of the PDP does not match the question')
  throw new PdpUnavailable(mismatch, 'issuer_mismatch')
}

/** A sentence if the PDP reads the token of an external issuer differently from the route file; null: it reads it alike. */
export function issuerMismatch(
  { active, subjectId, organization }: Decision,
  question: Pick<PdpQuestion, 'subject' | 'organization'>,
): string | null {
  const isExternal = subjectId.startsWith(EXTERNAL_MARK) || question.subject.startsWith(EXTERNAL_MARK)
  const isAlike = subjectId === question.subject && organization === (question.organization ?? '')
  if (!active || !isExternal || isAlike) return null
  const [here, there] = [described(question.subject, question.organization ?? ''), described(subjectId, organization)]
  return `the token is ${here} by the route file, but ${there} by the PDP: give the issuer the same subject_prefix, claims and organizations under external and at /v1/trusted-issuers`
}

const described = (subject: string, organization: string): string =>
  `${subject} in ${organization === '' ? 'no organization' : organization}`
