/** Decides one request, at the data port or at a door: every step from its arrival to its answer, in order. */
import type { Span, Tracing } from '../../pdp/shared/process/tracing/tracing.ts'
import type { ClientRequest } from '../http/client-request.ts'
import type { DoorProfile } from '../http/door-fields.ts'
import type { InboundRequest } from '../request/inbound.ts'
import type { Origin } from '../request/origin.ts'
import type { SidecarLimits } from '../route-file/default-limits.ts'
import { checkMedia, type LimitedBody, type ReadBody } from '../routes/json-body.ts'
import { admit, NO_ADMISSION } from './admission.ts'
import { type Denial, denied, deniedAfterPermit } from './denial.ts'
import {
  type Arrival,
  type Browser,
  type EnforceDeps,
  enforce,
  LATE,
  type Outcome,
  type Permit,
  permitUnedited,
} from './enforce.ts'
import type { Places } from './places.ts'
import { type AnswerEnd, type RecordDeps, record, requestIdOf } from './record.ts'
import type { ResourceMetadata } from './resource-metadata.ts'
import { ARRIVED } from './stages.ts'
import { beginSpan } from './trace.ts'
import type { Turns } from './turns.ts'

/** The route file's rules in force, and the parts of the process that a decision needs. */
export type ExchangeRules = RecordDeps & {
  readonly enforcing: EnforceDeps
  /** The collector of trace spans; null: no spans are collected. */
  readonly tracing: Tracing | null
  readonly metadata: ResourceMetadata | null
  /** The key set of assertions as JSON; null: no assertions are signed. */
  readonly assertionKeys: string | null
  /** The sign-in of browsers; null: the file has none. */
  readonly signIn: { browser(client: ClientRequest): Browser } | null
  readonly limits: SidecarLimits
  readonly places: Places
  readonly turns: Turns
  /** How many requests to services may be open at once. */
  readonly requestsMax: number
  /** How many requests to one of several services may be open at once; null: there is only one service. */
  readonly serviceRequestsMax: number | null
  /** The longest body, in bytes, that a check reads. */
  readonly bodyBytesMax: number
  /** The nonce that the client must put into its next proof; null: proofs need no nonce. */
  readonly proofNonce: () => string | null
  /** True when /readyz of the admin port reports ready. */
  readonly ready: () => boolean
  /** True until a reload replaces these rules. */
  readonly isCurrent: () => boolean
}
/** The response, or the connection of a WebSocket: closed when the exchange has ended. */
export type Closing = {
  readonly destroyed: boolean
  on(event: 'close', listener: () => void): unknown
  once(event: 'close', listener: () => void): unknown
}
export type Arrived<Rules> = {
  readonly client: ClientRequest
  /** The profile of the gateway that asks about the request; null: the request came to the data port. */
  readonly door: DoorProfile | null
  /** True: the client asks for a WebSocket connection. */
  readonly upgrade: boolean
  readonly closing: Closing
  readonly originBy: (rules: Rules, client: ClientRequest) => Origin
  /** Reads the body of the request. Rejects with RequestError. */
  readonly readBody: (client: ClientRequest, request: InboundRequest, limited: LimitedBody) => Promise<Buffer>
  /** The rules that are in force now; they stay usable until `closing` closes. */
  readonly latest: () => Rules
  /** The time by which there must be a decision, in milliseconds; null: no gateway waits for it. */
  readonly withinMs: number | null
  /** The reason for which a permitted request may still not pass; null: it may. */
  readonly objection: (permit: Permit, rules: Rules) => string | null
}
/** The outcome of a request, with the rules that decided the request. */
export type Decided<Rules> = {
  readonly outcome: Outcome
  readonly rules: Rules
  /** The origin of the request, by the trusted proxies of `rules`. */
  readonly origin: Origin
  /** The request without the cookies of the sidecar. */
  readonly client: ClientRequest
  /** True: a gateway holds the request until the answer. */
  readonly isHeld: boolean
  readonly requestId: string
  /** The browser that may have sent the request; null: the file has no sign-in. */
  readonly browser: Browser | null
  readonly span: Span | null
  readonly durationMs: number
  /** Writes the log line of an allowed request, when its answer ends. A second call does nothing. */
  readonly write: (end: AnswerEnd) => void
}

/** Rejects only if `fail` throws. `fail` makes the answer to an error of our own. */
export async function decideExchange<Rules extends ExchangeRules, Answer>(
  arrived: Arrived<Rules>,
  first: Rules,
  ways: {
    readonly answer: (decided: Decided<Rules>) => Promise<Answer>
    readonly fail: (requestId: string) => Answer
  },
): Promise<Answer> {
  const startedMs = performance.now()
  const { door, closing } = arrived
  const requestId = requestIdOf(arrived.client)
  let span: Span | null = null
  let write: Decided<Rules>['write'] = () => undefined
  try {
    const browser = first.signIn === null ? null : first.signIn.browser(arrived.client)
    const client = browser === null ? arrived.client : browser.client
    const opened = beginSpan(first.tracing, client)
    span = opened
    if (opened !== null) closing.once('close', () => opened.end())
    const enforced = await enforceInTime(arrived, first, { client, requestId, browser, span })
    const { outcome, rules, origin } = enforced
    const durationMs = performance.now() - startedMs
    write = record(outcome, { client, address: origin.address, requestId, durationMs, door, span }, rules)
    const isHeld = door !== null
    if (isHeld || outcome.kind !== 'permit') write({})
    return await ways.answer({ outcome, rules, origin, client, isHeld, requestId, browser, span, durationMs, write })
  } catch (err) {
    first.log.error({ event: 'request_failed', request_id: requestId, err })
    span?.end('request_failed')
    write({})
    return ways.fail(requestId)
  }
}

type Opened = Pick<Decided<unknown>, 'client' | 'requestId' | 'browser' | 'span'>
type Enforced<Rules> = Pick<Decided<Rules>, 'outcome' | 'rules' | 'origin'>

/** A decision after the deadline is a denial, whatever it would have been. */
async function enforceInTime<Rules extends ExchangeRules>(
  arrived: Arrived<Rules>,
  first: Rules,
  opened: Opened,
): Promise<Enforced<Rules>> {
  const origin = arrived.originBy(first, opened.client)
  const enforcing = enforceLatest(arrived, first, { ...opened, origin })
  const { withinMs } = arrived
  if (withinMs === null) return enforcing
  const late = Promise.withResolvers<Enforced<Rules>>()
  const outcome = denied('overloaded', ARRIVED, { reason: LATE })
  const timer = setTimeout(() => late.resolve({ outcome, rules: first, origin }), withinMs)
  try {
    return await Promise.race([enforcing, late.promise])
  } finally {
    clearTimeout(timer)
  }
}

/** The share of the time after which a request without a decision passes in shadow mode. */
const SHADOW_SHARE = 0.8

async function enforceLatest<Rules extends ExchangeRules>(
  arrived: Arrived<Rules>,
  first: Rules,
  { client, requestId, browser, span, origin }: Opened & { readonly origin: Origin },
): Promise<Enforced<Rules>> {
  const { upgrade, closing, objection, withinMs } = arrived
  const { limits, requestsMax, serviceRequestsMax } = first
  const bounds = { limits, requestsMax, serviceRequestsMax }
  const admission = admit(first, { address: origin.address, upgrade, ...bounds })
  closing.on('close', () => admission.leave())
  const keeping = keepBody((request, need, bytesMax) =>
    arrived.readBody(client, request, { need, bytesMax: bytesMax ?? first.bodyBytesMax, timeoutMs: limits.bodyReadMs }),
  )
  const lateMs = withinMs === null ? null : withinMs * SHADOW_SHARE
  const known = { client, requestId, origin, upgrade, browser, span, lateMs }
  const arrival: Arrival = { ...known, admission, ...keeping, former: null }
  const outcome = await enforce(arrival, first.enforcing)
  const enforced =
    outcome.kind !== 'permit' || first.isCurrent()
      ? { outcome, rules: first, origin }
      : await enforceAgain(arrived, arrival, outcome)
  const { outcome: permit, rules } = enforced
  if (permit.kind !== 'permit') return enforced
  const refuse = (reason: string): Denial => deniedAfterPermit(permit, 'request_invalid', { reason, detail: UNFIT })
  const [editing, objected] = [uneditable(permit, arrived.door), objection(permit, rules)]
  // A field that the gateway cannot remove could name another caller to the service, so even shadow mode denies.
  if (objected !== null) return { ...enforced, outcome: refuse(objected) }
  if (editing === null) return enforced
  const denial = refuse(editing)
  return { ...enforced, outcome: rules.enforcing.shadowRoute === null ? denial : permitUnedited(permit, denial) }
}

const UNFIT = 'The request, or its answer, has something that the gateway cannot remove'

/** The reason why a gateway must refuse a permitted request: it cannot edit fields or answers. Null: no edit is needed. */
const uneditable = ({ mcp, filter, request }: Permit, door: DoorProfile | null): string | null =>
  door === null || (filter === null && (mcp === null || mcp.request.names.length === request.names.length))
    ? null
    : 'a gateway edits neither answers nor the fields of older revisions of MCP'

/** How often one request is decided again after reloads. A permit that is out of date even then is refused. */
const ROUNDS_MAX = 3

/**
 * Decides the request again when a reload has replaced the rules meanwhile: the newest rules count. A request that the old rules permitted
 * keeps its places, and its proof is not verified again.
 */
async function enforceAgain<Rules extends ExchangeRules>(
  { latest, originBy }: Arrived<Rules>,
  arrival: Arrival,
  permitted: Permit,
): Promise<Enforced<Rules>> {
  let former = permitted
  for (let round = 0; ; round += 1) {
    const rules = latest()
    const origin = originBy(rules, arrival.client)
    // A permit with identity has the token of the session already in its request.
    const browser = former.identity === null ? arrival.browser : null
    const again = { ...arrival, origin, admission: NO_ADMISSION, browser, former }
    const outcome = await enforce(again, rules.enforcing)
    if (outcome.kind !== 'permit' || rules.isCurrent()) return { outcome, rules, origin }
    if (round === ROUNDS_MAX - 1)
      return { outcome: deniedAfterPermit(outcome, 'overloaded', { reason: RELOADING }), rules, origin }
    former = outcome
  }
}

const RELOADING = 'the route file changed again and again during this request'

/** Reads the body at most once and keeps the bytes for further readers. */
function keepBody(read: ReadBody): Pick<Arrival, 'readBody' | 'keptBody'> {
  let kept: Promise<Buffer> | null = null
  return {
    readBody(request, need, bytesMax) {
      if (kept !== null && request.bodyBytes !== 0) checkMedia(request, need)
      kept ??= read(request, need, bytesMax)
      return kept
    },
    keptBody: async () => kept?.catch(() => null) ?? null,
  }
}
