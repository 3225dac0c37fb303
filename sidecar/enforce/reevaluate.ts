/** Judges an open exchange again, by rules that came into force after it began. */
import { malformed } from '../request/errors.ts'
import { fromOrigin } from '../request/inbound.ts'
import type { Origin } from '../request/origin.ts'
import { routeRequest } from '../routes/route-request.ts'
import { denialOfError, isShadowable, problemOf } from './denial.ts'
import { basisOf, type EnforceDeps, isProven, type Permit } from './enforce.ts'
import type { Reevaluation } from './permission-watch.ts'
import { answerUnrouted, judgePreflight } from './preflight.ts'
import {
  ARRIVED,
  type Authenticated,
  asksNothing,
  authenticate,
  evaluate,
  type GuardedRequest,
  isGuest,
  judgeBody,
  NOTHING_ASKED,
  type Prepared,
  prepare,
  routed,
  type Stage,
  verifyToken,
} from './stages.ts'
import { checkHandshake } from './websocket-handshake.ts'

/** Evaluates an open exchange by new rules. The question to the PDP is left to the permission watch. Never throws. */
export async function reevaluate(
  former: Permit,
  { upgrade, origin }: { readonly upgrade: boolean; readonly origin: Origin },
  deps: EnforceDeps,
): Promise<Reevaluation> {
  // While the whole file is in shadow mode, no change ends an exchange.
  if (deps.shadowRoute !== null) return { kind: 'permitted', basis: null }
  let stage: Stage = ARRIVED
  try {
    const request = fromOrigin(former.request, origin) // RequestError
    if (request.refusal !== null) throw request.refusal // RequestError
    if (judgePreflight(request, deps)?.kind === 'pass') return { kind: 'permitted', basis: null } // RequestError
    const match = routeRequest(deps, request) // RequestError
    if (match.kind !== 'route') {
      const answer = answerUnrouted(match, request, deps) // RequestError
      return { kind: 'denied', code: answer.kind === 'denial' ? answer.code : 'route_unknown' }
    }
    const routing = routed(match, request)
    stage = routing
    if (upgrade) checkHandshake(request, routing.route) // RequestError
    const kept = async (): Promise<Buffer> => keptBody(former)
    if (routing.stage === 'public') {
      await judgeBody(routing, kept) // RequestError
      return { kind: 'permitted', basis: null }
    }
    let sender: GuardedRequest | Authenticated = routing
    if (!isGuest(routing)) {
      const verified = await verifyToken(routing, deps) // TokenError
      stage = verified
      sender = await authenticate(verified, { proven: isProven(former) }, deps) // TokenError
    }
    stage = sender
    const prepared = await prepare(sender, { requestId: '', readBody: kept }, deps) // RequestError
    const { route } = prepared
    if (route.shadow) return { kind: 'permitted', basis: null }
    if (asksNothing(prepared)) return ofGuest(prepared, deps)
    const sameStepUp = JSON.stringify(route.stepUp) === JSON.stringify(former.route.stepUp)
    return { kind: 'permitted', basis: basisOf(prepared, sameStepUp ? null : route.stepUp, deps) }
  } catch (err) {
    const denial = denialOfError(err, stage, deps.clockHint)
    return isShadowable(denial) ? { kind: 'permitted', basis: null } : { kind: 'denied', code: denial.code }
  }
}

/** The result for a guest when the PDP is not asked. It has no basis: nothing that could end the permission changes later. */
function ofGuest(prepared: Prepared, deps: EnforceDeps): Reevaluation {
  const reason = evaluate(prepared, NOTHING_ASKED, deps)
  return reason === null ? { kind: 'permitted', basis: null } : { kind: 'denied', code: problemOf(reason) }
}

function keptBody({ request, body }: Permit): Buffer {
  if (request.bodyBytes === 0) return NO_BODY
  if (body === null) throw malformed('The body was forwarded without being kept')
  return body
}

const NO_BODY = Buffer.alloc(0)
