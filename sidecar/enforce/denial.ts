/** Why a request is not forwarded, as a value: what the client is told, and what only the log is told. */
import type { ProblemCode } from '../../pdp/process/problems.ts'
import type { ChallengeScheme } from '../../pdp/token/challenge.ts'
import type { AccessClaims } from '../../pdp/token/claims.ts'
import { TokenError, type TokenErrorCode } from '../../pdp/token/errors.ts'
import type { Identity } from '../http/fields.ts'
import { PdpUnavailable, RequestError } from '../request/errors.ts'
import type { InboundRequest } from '../request/inbound.ts'
import type { Authority } from '../request/target.ts'
import type { Refusal } from '../routes/checks.ts'
import type { Route } from '../routes/route.ts'
import type { StepUp } from '../routes/step-up.ts'
import { type DenialMembers, denialStatus, SHADOWED_STATUSES } from './denial-response.ts'

export type Denial = {
  readonly kind: 'denial'
  readonly code: ProblemCode
  readonly members: DenialMembers
  /** For the log only. */
  readonly reason: string
  readonly route: Route | null
  readonly subject: string | null
}
/** What is known of the request so far, for the denial that an error becomes. */
export type Known = {
  route: Route | null
  request: InboundRequest | null
  /** By a trusted proxy; null: none. */
  readonly namedHost: Authority | null
  claims: AccessClaims | null
  /** Of a token that is verified, with its proof, and that nobody has called inactive. */
  identity: Identity | null
  body: Buffer | null
  scheme: ChallengeScheme | undefined
}
export const nothingKnown = (namedHost: Authority | null): Known => ({
  route: null,
  request: null,
  namedHost,
  claims: null,
  identity: null,
  body: null,
  scheme: undefined,
})

/** What an answer of the PDP leads to, when it is not an allow. */
export type Verdict =
  | Refusal
  | { readonly code: 'token_invalid' | 'organization_missing' }
  | { readonly code: 'step_up_required'; readonly stepUp: StepUp }

/** Shadow mode replaces these verdicts on a matched route; everything else stays. A full house is no verdict. */
export const isShadowable = ({ code, route }: Denial): boolean =>
  route?.shadow === true && code !== 'busy' && SHADOWED_STATUSES.includes(denialStatus(code))

export const problemOf = (verdict: Verdict | null): ProblemCode | null =>
  verdict?.code === 'organization_missing' ? 'permission_denied' : (verdict?.code ?? null)

export function refused(verdict: Verdict, known: Known): Denial {
  const { scheme } = known
  switch (verdict.code) {
    case 'organization_missing':
      return denied('permission_denied', known, { reason: 'the token has no organization' })
    case 'token_invalid':
      known.identity = null
      return denied('token_invalid', known, { reason: 'the PDP says that the token is not active', scheme })
    case 'step_up_required':
      return denied(verdict.code, known, { reason: 'the sign-in is too weak or too old', scheme, ...verdict })
    case 'scope_insufficient':
      return denied(verdict.code, known, { reason: verdict.scope, scope: verdict.scope, scheme })
    case 'entitlement_required':
      return denied(verdict.code, known, { reason: verdict.entitlement, entitlement: verdict.entitlement })
    default:
      return denied(verdict.code, known, { reason: verdict.check })
  }
}

export function denied(
  code: ProblemCode,
  known: Known,
  { reason, ...members }: DenialMembers & { reason: string },
): Denial {
  return { kind: 'denial', code, members, reason, route: known.route, subject: known.claims?.subject ?? null }
}

const TOKEN_PROBLEMS: { readonly [code in TokenErrorCode]: ProblemCode } = {
  token_missing: 'token_missing',
  authorization_invalid: 'request_invalid',
  token_invalid: 'token_invalid',
  token_expired: 'token_expired',
  proof_missing: 'proof_missing',
  proof_invalid: 'proof_invalid',
  proof_replayed: 'proof_replayed',
  proof_nonce_required: 'proof_nonce_required',
  proof_unverifiable: 'replay_memory_unavailable',
  keys_unavailable: 'keys_unavailable',
}

/** Where the time is judged: a good token is refused by a clock that is wrong. */
const TIMED: ReadonlySet<TokenErrorCode> = new Set(['token_invalid', 'token_expired', 'proof_invalid'])

/** `clockHint`: a sentence about this server's clock, when it is not that of others. */
export function denialOf(err: unknown, known: Known, clockHint: () => string | null): Denial {
  if (err instanceof RequestError) return denied(err.code, known, { reason: err.reason, detail: err.message })
  if (err instanceof PdpUnavailable) return denied(err.code, known, { reason: err.message })
  if (!(err instanceof TokenError))
    return denied('internal', known, { reason: err instanceof Error ? (err.stack ?? err.message) : 'unknown' })
  const hint = TIMED.has(err.code) ? clockHint() : null
  const malformedCredentials = err.code === 'authorization_invalid'
  return denied(TOKEN_PROBLEMS[err.code], known, {
    reason: hint === null ? err.message : `${err.message}; ${hint}`,
    scheme: known.scheme,
    malformedCredentials,
    ...(hint !== null && { detail: hint }),
  })
}
