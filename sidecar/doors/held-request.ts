/** Judges a request that a gateway holds, by the same `enforce` as one that came to the data port, and says what to answer. */

import type { ProblemCode } from '../../pdp/process/problems.ts'
import { type Admitted, admit } from '../enforce/admission.ts'
import { type Denial, denied } from '../enforce/denial.ts'
import { type DenialAnswer, type DenialMembers, describeDenial, OWN_STATUS } from '../enforce/denial-response.ts'
import { type EnforceDeps, enforce, type Outcome, type OwnAnswer, type Permit } from '../enforce/enforce.ts'
import type { Places } from '../enforce/places.ts'
import { type RecordDeps, record, requestIdOf } from '../enforce/record.ts'
import type { ResourceMetadata } from '../enforce/resource-metadata.ts'
import { ARRIVED } from '../enforce/stages.ts'
import type { Turns } from '../enforce/turns.ts'
import type { ClientRequest } from '../http/client.ts'
import type { DoorProfile } from '../http/door-fields.ts'
import type { HeaderNames, HeaderRules } from '../http/fields.ts'
import type { Origin } from '../request/origin.ts'
import type { SidecarLimits } from '../route-file/default-limits.ts'
import { readBody } from '../routes/json-body.ts'

/** What is in force when a gateway asks. */
export type HeldDeps = RecordDeps & {
  readonly enforcing: EnforceDeps
  readonly forwarding: { readonly rules: HeaderRules; readonly headers: HeaderNames; readonly publicPort: number }
  readonly metadata: ResourceMetadata | null
  readonly limits: SidecarLimits
  readonly places: Places
  readonly turns: Turns
  readonly requestsMax: number
  readonly bodyBytesMax: number
  readonly proofNonce: () => string | null
}
/** The request that a gateway holds, as far as the gateway may be believed. */
export type Held = { readonly client: ClientRequest; readonly origin: Origin }
export type Asked = Held & {
  readonly door: DoorProfile
  /** After so long the gateway must have an answer. */
  readonly withinMs: number
  /** Why a permitted request may not pass this gateway; null: it may. */
  readonly objection: (permit: Permit) => string | null
}
export type DoorOutcome =
  | { readonly kind: 'allow'; readonly permit: Permit; readonly origin: Origin; readonly requestId: string }
  /** For the client, in place of the service's response. */
  | { readonly kind: 'answer'; readonly answer: DenialAnswer }

/** Never rejects, and allows only by a Permit. */
export async function evaluateHeld(asked: Asked, deps: HeldDeps): Promise<DoorOutcome> {
  const requestId = requestIdOf(asked.client)
  try {
    const startedMs = performance.now()
    const outcome = await decideInTime(asked, deps)
    const { client, origin, door } = asked
    const durationMs = performance.now() - startedMs
    record(outcome, { client, address: origin.address, requestId, durationMs, door }, deps)
    if (outcome.kind === 'permit') return { kind: 'allow', permit: outcome, origin, requestId }
    if (outcome.kind === 'denial') return { kind: 'answer', answer: answerOf(outcome, requestId, deps) }
    return { kind: 'answer', answer: ownAnswer(outcome, requestId, deps) }
  } catch (err) {
    deps.log.error({ event: 'request_failed', request_id: requestId, err })
    return { kind: 'answer', answer: failure('internal', requestId) }
  }
}

async function decideInTime({ withinMs, objection, client, origin }: Asked, deps: HeldDeps): Promise<Outcome> {
  const { limits, requestsMax, bodyBytesMax } = deps
  const admission: Admitted = admit(deps, { address: origin.address, upgrade: false, limits, requestsMax })
  const late = Promise.withResolvers<Denial>()
  const timer = setTimeout(() => late.resolve(denied('overloaded', ARRIVED, { reason: LATE })), withinMs)
  try {
    const read: Parameters<typeof enforce>[0]['readBody'] = (request) =>
      readBody(client, request, { bytesMax: bodyBytesMax, timeoutMs: limits.bodyReadMs })
    const arrival = { client, origin, admission, readBody: read, upgrade: false }
    const outcome = await Promise.race([enforce(arrival, deps.enforcing), late.promise])
    const reason = outcome.kind === 'permit' ? objection(outcome) : null
    if (outcome.kind !== 'permit' || reason === null) return outcome
    const { route, identity } = outcome
    const detail = 'The request has a header field that the gateway cannot remove'
    const denial = denied('request_invalid', ARRIVED, { reason, detail })
    return { ...denial, route, subject: identity?.subject ?? null }
  } finally {
    clearTimeout(timer)
    admission.leave()
  }
}

const LATE = 'no decision before the deadline of the gateway'

function answerOf({ code, members }: Denial, requestId: string, deps: HeldDeps): DenialAnswer {
  if (code === 'internal') return failure(code, requestId)
  return describeDenial(code, members, contextOf(requestId, deps))
}

const contextOf = (requestId: string, { metadata, proofNonce }: HeldDeps): Parameters<typeof describeDenial>[2] => ({
  requestId,
  metadataUrl: metadata?.url ?? null,
  nonce: proofNonce(),
})

/** Our own failure is 503 for gateways: they must neither let it pass nor take it for the service's. */
export function failure(code: ProblemCode, requestId: string, members: DenialMembers = {}): DenialAnswer {
  const answer = describeDenial(code, members, { requestId, metadataUrl: null })
  if (answer.status === UNAVAILABLE) return answer
  // The problem document names the status, too.
  const body = JSON.stringify({ ...JSON.parse(answer.body), status: UNAVAILABLE })
  const fields = answer.fields.map((value, at) =>
    answer.fields[at - 1] === 'content-length' && at % 2 === 1 ? String(Buffer.byteLength(body)) : value,
  )
  return { status: UNAVAILABLE, fields, body }
}

const UNAVAILABLE = 503

function ownAnswer(own: OwnAnswer, requestId: string, { metadata }: HeldDeps): DenialAnswer {
  const id = ['x-request-id', requestId]
  if (own.kind === 'options')
    return { status: OWN_STATUS.options, fields: ['allow', own.allow.join(', '), ...id], body: '' }
  return {
    status: OWN_STATUS.metadata,
    fields: ['content-type', 'application/json', ...id],
    body: metadata?.body ?? '',
  }
}
