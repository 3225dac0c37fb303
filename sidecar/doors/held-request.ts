/** Judges a request that a gateway holds, by the same `enforce` as one that came to the data port, and says what to answer. */

import type { ProblemCode } from '../../pdp/shared/base/problems.ts'
import { withTimeout } from '../../pdp/shared/base/with-timeout.ts'
import type { Span, Tracing } from '../../pdp/shared/process/tracing/tracing.ts'
import { type Admitted, admit } from '../enforce/admission.ts'
import { enforceLatest } from '../enforce/current-rules.ts'
import { type Denial, denied, deniedAfterPermit } from '../enforce/denial.ts'
import { type DenialAnswer, type DenialMembers, describeDenial, OWN_STATUS } from '../enforce/denial-response.ts'
import type { EnforceDeps, Outcome, OwnAnswer, Permit } from '../enforce/enforce.ts'
import type { Places } from '../enforce/places.ts'
import { type RecordDeps, record, requestIdOf } from '../enforce/record.ts'
import type { ResourceMetadata } from '../enforce/resource-metadata.ts'
import { ARRIVED } from '../enforce/stages.ts'
import { beginSpan } from '../enforce/trace.ts'
import type { Turns } from '../enforce/turns.ts'
import type { ClientRequest } from '../http/client-request.ts'
import type { DoorProfile } from '../http/door-fields.ts'
import type { HeaderNames, HeaderRules } from '../http/fields.ts'
import { RequestError } from '../request/errors.ts'
import type { InboundRequest } from '../request/inbound.ts'
import type { Origin } from '../request/origin.ts'
import type { SidecarLimits } from '../route-file/default-limits.ts'
import { isUntyped, type ReadBody, readBody } from '../routes/json-body.ts'
import type { SignIn } from '../sign-in/sign-in.ts'
import type { Visit } from '../sign-in/visit.ts'

/** What is in force when a gateway asks. */
export type HeldDeps = RecordDeps & {
  readonly enforcing: EnforceDeps
  /** Null: nobody collects spans. */
  readonly tracing: Tracing | null
  readonly forwarding: { readonly rules: HeaderRules; readonly headers: HeaderNames; readonly publicPort: number }
  readonly metadata: ResourceMetadata | null
  /** Null: nobody signs in here. */
  readonly signIn: SignIn | null
  readonly limits: SidecarLimits
  readonly places: Places
  readonly turns: Turns
  readonly requestsMax: number
  readonly bodyBytesMax: number
  readonly proofNonce: () => string | null
  /** False once a reload has replaced this. */
  readonly isCurrent: () => boolean
  /** What is in force now. */
  readonly latest: (closing: null) => HeldDeps
}
/** The request that a gateway holds, as far as the gateway may be believed. */
export type Held = { readonly client: ClientRequest; readonly origin: Origin }
export type HeldRequest = Held & {
  readonly door: DoorProfile
  /** False: the gateway sends no bodies, so that what must be in them, or must not, cannot be known. */
  readonly holdsBody: boolean
  /** After so long the gateway must have an answer. */
  readonly withinMs: number
  /** Why a request that these rules permit may not pass this gateway; null: it may. */
  readonly objection: (permit: Permit, inForce: HeldDeps) => string | null
}
export type DoorOutcome =
  | {
      readonly kind: 'allow'
      readonly permit: Permit
      /** The rules that permitted it: they say what the service may get, too. */
      readonly inForce: HeldDeps
      readonly origin: Origin
      readonly requestId: string
      /** Names and values in turn to add to the response of the service. */
      readonly toClient: readonly string[]
      /** Fields of the client that the service gets with another value; empty: not at all. */
      readonly rewritten: readonly (readonly [name: string, value: string])[]
    }
  /** For the client, in place of the service's response. */
  | { readonly kind: 'answer'; readonly answer: DenialAnswer }

/** Never rejects, and allows only by a Permit. */
export async function evaluateHeld(given: HeldRequest, deps: HeldDeps): Promise<DoorOutcome> {
  const requestId = requestIdOf(given.client)
  const visit = deps.signIn === null ? null : deps.signIn.visit(given.client)
  const asked = visit === null ? given : { ...given, client: visit.client }
  const span = beginSpan(deps.tracing, asked.client)
  try {
    const startedMs = performance.now()
    const { outcome, inForce } = await decideInTime({ ...asked, requestId }, visit, deps, span)
    const { client, origin, door } = asked
    const durationMs = performance.now() - startedMs
    record(outcome, { client, address: origin.address, requestId, durationMs, door, span }, inForce)
    span?.end()
    const toClient = visit === null ? [] : visit.fields()
    if (outcome.kind === 'permit') {
      const rewritten = rewrittenFields(outcome, given)
      return { kind: 'allow', permit: outcome, inForce, origin, requestId, toClient, rewritten }
    }
    const about = { requestId, visit, leftMs: asked.withinMs - durationMs }
    if (outcome.kind === 'denial') return { kind: 'answer', answer: await answerOf(outcome, about, inForce) }
    if (outcome.kind === 'sign_in') return { kind: 'answer', answer: await pageOf(outcome.request, about) }
    return { kind: 'answer', answer: ownAnswer(outcome, requestId, inForce) }
  } catch (err) {
    deps.log.error({ event: 'request_failed', request_id: requestId, err })
    span?.end('request_failed')
    return { kind: 'answer', answer: failure('internal', requestId) }
  }
}

/** The gateway forwards what it holds: with the cookies of the sidecar, and without the token of a session. */
function rewrittenFields({ request, route }: Permit, { client }: HeldRequest): readonly (readonly [string, string])[] {
  const valuesOf = (raw: readonly string[], name: string): readonly string[] =>
    raw.filter((_, at) => at % 2 === 1 && raw[at - 1]?.toLowerCase() === name)
  const names = route.forwardToken ? ['cookie', 'authorization'] : ['cookie']
  return names.flatMap((name) => {
    const value = valuesOf(request.raw, name).join('; ')
    return value === valuesOf(client.raw, name).join('; ') ? [] : [[name, value] as const]
  })
}

async function decideInTime(
  { withinMs, objection, holdsBody, client, requestId, origin }: HeldRequest & { readonly requestId: string },
  browser: Visit | null,
  deps: HeldDeps,
  span: Span | null,
): Promise<{ readonly outcome: Outcome; readonly inForce: HeldDeps }> {
  const { limits, requestsMax, bodyBytesMax } = deps
  const admission: Admitted = admit(deps, { address: origin.address, upgrade: false, limits, requestsMax })
  const late = Promise.withResolvers<Denial>()
  const timer = setTimeout(() => late.resolve(denied('overloaded', ARRIVED, { reason: LATE })), withinMs)
  try {
    const read: ReadBody = async (request, need) => {
      // Such a request seldom has a body, and nobody can tell here.
      if (!holdsBody && need === 'absence' && isUntyped(request)) return NO_BODY
      if (!holdsBody) throw new RequestError('media_type_unsupported', UNSEEN, `${UNSEEN}; ${SEEN}`)
      return readBody(client, request, { need, bytesMax: bodyBytesMax, timeoutMs: limits.bodyReadMs })
    }
    const arrival = { client, requestId, origin, admission, readBody: read, upgrade: false, browser }
    const deciding = enforceLatest(arrival, deps, { latest: () => deps.latest(null), originBy: () => origin, span })
    const tooLate = late.promise.then((outcome) => ({ outcome, rules: deps }))
    const { outcome, rules: inForce } = await Promise.race([deciding, tooLate])
    const reason = outcome.kind === 'permit' ? objection(outcome, inForce) : null
    if (outcome.kind !== 'permit' || reason === null) return { outcome, inForce }
    const detail = 'The request has a header field that the gateway cannot remove'
    return { outcome: deniedAfterPermit(outcome, 'request_invalid', { reason, detail }), inForce }
  } finally {
    clearTimeout(timer)
    admission.leave()
  }
}

const NO_BODY = Buffer.alloc(0)
const UNSEEN = 'This route takes no typed body here, because the gateway does not send the body'
const SEEN = 'to let it pass unread, set body: keep'
const LATE = 'no decision before the deadline of the gateway'

type Answering = { readonly requestId: string; readonly visit: Visit | null; readonly leftMs: number }

async function answerOf(
  denial: Denial,
  { requestId, visit, leftMs }: Answering,
  deps: HeldDeps,
): Promise<DenialAnswer> {
  const { code, members } = denial
  if (code === 'internal') return failure(code, requestId)
  // An issuer that is slow must not keep the gateway waiting until it calls that an error, which it may let pass.
  const page =
    visit === null
      ? null
      : await withTimeout(visit.answer(denial, requestId), leftMs, () => new Error(LATE)).catch(() => null)
  const answer = page ?? describeDenial(code, members, contextOf(requestId, deps))
  return visit === null ? answer : { ...answer, fields: [...answer.fields, ...visit.fields()] }
}

function pageOf(request: InboundRequest, { requestId, visit, leftMs }: Answering): Promise<DenialAnswer> {
  if (visit === null) throw new TypeError('a sign-in without its settings')
  const page = visit.page(request, requestId)
  return withTimeout(page, leftMs, () => new Error(LATE)).catch(() => failure('overloaded', requestId))
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

function ownAnswer(
  own: Exclude<OwnAnswer, { kind: 'sign_in' }>,
  requestId: string,
  { metadata }: HeldDeps,
): DenialAnswer {
  const id = ['x-request-id', requestId]
  if (own.kind === 'options')
    return { status: OWN_STATUS.options, fields: ['allow', own.allow.join(', '), ...id], body: '' }
  return {
    status: OWN_STATUS.metadata,
    fields: ['content-type', 'application/json', ...id],
    body: metadata?.body ?? '',
  }
}
