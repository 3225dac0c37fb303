/** Turns the engine's answer to a check into the result of a decision. */

import type { PermissionCheck, PermissionResult, UndecidedCode } from '../../shared/domain/decision.ts'
import type { PdpError } from '../../shared/domain/errors.ts'
import type { Answer, CheckInput } from '../decide/check.ts'
import { undecidedReason } from '../decide/explanation.ts'

export type CheckOutcome = Answer | { readonly undecided: PdpError & { readonly code: UndecidedCode } }

export function resultOf(
  check: PermissionCheck,
  outcome: CheckOutcome | undefined,
  { explain }: CheckInput,
): PermissionResult {
  const { relation, resource } = check
  if (outcome === undefined)
    return { relation, resource, allowed: false, reasonCode: 'evaluation_limit', error: 'evaluation_limit' }
  if ('undecided' in outcome) {
    const { code, missingContext } = outcome.undecided
    const missing = code === 'condition_failed' ? { missingContext } : {}
    const reason = explain === true ? { reason: undecidedReason(outcome.undecided) } : {}
    return { relation, resource, allowed: false, reasonCode: code, error: code, ...missing, ...reason }
  }
  const { allowed, code, reason } = outcome
  if (reason === undefined) return { relation, resource, allowed, reasonCode: code }
  return { relation, resource, allowed, reasonCode: code, reason }
}
