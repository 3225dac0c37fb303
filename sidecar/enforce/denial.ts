/** The reason for which a request is not forwarded, as a value: one part for the client, one for the log alone. */
import type { ProblemCode } from '../../pdp/shared/base/problems.ts'
import type { ChallengeScheme } from '../../pdp/shared/token/challenge.ts'
import { TOKEN_PROBLEMS, TokenError, type TokenErrorCode } from '../../pdp/shared/token/errors.ts'
import { EXTERNAL_MARK } from '../../pdp/shared/token/issuer-claims.ts'
import { RpcError, type RpcReply } from '../mcp/rpc-error.ts'
import { PdpUnavailable, RequestError } from '../request/errors.ts'
import { denialText, type Questions, requiredScopes } from '../routes/checks.ts'
import type { Route } from '../routes/route.ts'
import { type DenialMembers, isShadowed } from './denial-response.ts'
import { ARRIVED, type DenialReason, type Refused, type Stage } from './stages.ts'

export type Denial = {
  readonly kind: 'denial'
  readonly code: ProblemCode
  readonly members: DenialMembers
  /** The reason for the log; the client does not see it. */
  readonly reason: string
  /** The request's route; null: the denial came before the route was known. */
  readonly route: Route | null
  /** The token's subject; null: the denial came before the token was verified. */
  readonly subject: string | null
  /** The questions to the PDP; null: it was not asked. */
  readonly asked: Asked | null
}
export type Asked = Pick<Questions, 'permissions' | 'entitlements'>

/** True when the route is in shadow mode, and shadow mode replaces this denial by a permit. */
export const isShadowable = ({ code, route }: Denial): boolean => route?.shadow === true && isShadowed(code)

export const problemOf = ({ code }: DenialReason): ProblemCode =>
  code === 'organization_missing' ? 'permission_denied' : code

export function denialOfAnswer(refused: Refused): Denial {
  const { reason } = refused
  const code = problemOf(reason)
  const scheme = schemeOf(refused)
  switch (reason.code) {
    case 'organization_missing':
      return denied(code, refused, { reason: 'the token has no organization', missing: null })
    case 'token_invalid':
      return denied(code, refused, { reason: inactiveReason(refused), scheme })
    case 'step_up_required':
      return denied(code, refused, {
        reason: 'the sign-in is too weak or too old',
        scheme,
        stepUp: reason.stepUp,
      })
    case 'scope_insufficient':
      return denied(code, refused, { reason: reason.scope, scope: reason.scope, scheme })
    case 'token_missing':
      return denied(code, refused, { reason: `for a guest: ${reason.why}`, scheme })
    case 'entitlement_required':
      return denied(code, refused, { reason: reason.entitlement, entitlement: reason.entitlement })
    default:
      return denied(code, refused, {
        reason: denialText(reason),
        ...(code === 'permission_denied' && reason.question !== undefined && { missing: reason.question }),
        // The client may see this reason: it names values that the request lacks, or the agent whose permission is missing.
        ...((code === 'condition_failed' || isOfActor(reason.why)) && { detail: reason.why }),
      })
  }
}

const isOfActor = (why: string | undefined): boolean => /^(?:delegation_missing|actor_denied): /.test(why ?? '')

function inactiveReason({ claims }: Refused): string {
  const reason = 'the PDP says that the token is not active'
  if (claims?.subject.startsWith(EXTERNAL_MARK) !== true) return reason
  return `${reason}: does it trust the issuer ${claims.issuer}, with the same keys, audience and required claims (GET /v1/trusted-issuers)?`
}

/** `stage`: the last stage that the request reached. */
export function denied(
  code: ProblemCode,
  stage: Stage,
  { reason, ...members }: DenialMembers & { readonly reason: string },
): Denial {
  const route = 'route' in stage ? stage.route : null
  const subject = 'claims' in stage ? (stage.claims?.subject ?? null) : null
  const rpc = members.rpc ?? rpcOf(stage)
  const answered = rpc === null ? members : { ...members, rpc }
  return { kind: 'denial', code, members: answered, reason, route, subject, asked: askedOf(stage) }
}

/** The form of a denial for an MCP client; null: the route is not for MCP. */
function rpcOf(stage: Stage): RpcReply | null {
  if ('rpc' in stage) return stage.rpc
  if (!('route' in stage) || stage.route.mcp === null) return null
  return { id: ('mcp' in stage ? stage.mcp?.id : null) ?? null, code: null, status: null }
}

export const askedOf = (stage: Stage): Asked | null => ('questions' in stage ? stage.questions : null)

/** Denies a request that was permitted before, so that the log still names its route and subject. */
export function deniedAfterPermit(
  {
    route,
    identity,
    asked,
  }: Pick<Denial, 'asked'> & { readonly route: Route; readonly identity: { readonly subject: string } | null },
  code: ProblemCode,
  members: Parameters<typeof denied>[2],
): Denial {
  return { ...denied(code, ARRIVED, members), route, subject: identity?.subject ?? null, asked }
}

/** Errors of checks that compare times: with a wrong clock they refuse a good token. */
const TIMED: ReadonlySet<TokenErrorCode> = new Set(['token_invalid', 'token_expired', 'proof_invalid'])

/** `stage`: the last stage that the request reached. `clockHint`: a sentence when this server's clock differs from others. */
export function denialOfError(err: unknown, stage: Stage, clockHint: () => string | null): Denial {
  if (err instanceof RpcError) return denied(err.code, stage, { reason: err.reason, detail: err.message, rpc: err.rpc })
  if (err instanceof RequestError) return denied(err.code, stage, { reason: err.reason, detail: err.message })
  if (err instanceof PdpUnavailable) return denied(err.code, stage, { reason: err.message })
  if (!(err instanceof TokenError))
    return denied('internal', stage, { reason: err instanceof Error ? (err.stack ?? err.message) : 'unknown' })
  const hint = TIMED.has(err.code) ? clockHint() : null
  // The denial names the scopes that the route needs, so that the client asks for a token that has them (RFC 6750 section 3).
  const scopes = 'route' in stage && stage.route.check !== null ? requiredScopes(stage.route.check) : []
  return denied(TOKEN_PROBLEMS[err.code], stage, {
    reason: hint === null ? err.message : `${err.message}; ${hint}`,
    scheme: schemeOf(stage),
    malformedCredentials: err.code === 'authorization_invalid',
    ...(scopes.length > 0 && { scope: scopes.join(' ') }),
    ...(hint !== null && { detail: hint }),
  })
}

/** The scheme that the client must use for this token: DPoP for a bound token, even if it was sent as Bearer. */
function schemeOf(stage: Stage): ChallengeScheme | undefined {
  if (stage.stage === 'arrived' || stage.stage === 'public') return undefined
  const isBound = 'claims' in stage && stage.claims !== null && stage.claims.jkt !== null
  return isBound || /^dpop /i.test(stage.request.authorization[0] ?? '') ? 'DPoP' : 'Bearer'
}
