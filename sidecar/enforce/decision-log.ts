/** The log line of each request; its schema is decision-log.schema.json. It has no header, query, body or token. */
import { hash } from 'node:crypto'
import type { ProblemCode } from '../../pdp/shared/base/problems.ts'
import type { ClientRequest } from '../http/client-request.ts'
import type { DoorProfile } from '../http/door-fields.ts'
import type { SubjectsInLog } from '../route-file/route-file.ts'
import { denialStatus } from './denial-response.ts'
import type { Outcome } from './enforce.ts'

export type DecisionLine = {
  readonly event: 'decision'
  readonly request_id: string
  /** RFC 9110 section 9.1 names; anything else is `other`. */
  readonly method: string
  /** HTTP version of the client's request; null: the input could not be read as a request. */
  readonly http_version: ClientRequest['version'] | null
  /** The profile of the gateway that asked; absent: the request came to the data port. */
  readonly door?: DoorProfile
  /** The client's address, as far as trusted proxies know it. */
  readonly client_address: string
  readonly route: string | null
  readonly subject: string | null
  /** `shadow`: forwarded although `reason` would have refused it. `answer`: by the sidecar itself. */
  readonly decision: 'allow' | 'deny' | 'shadow' | 'answer'
  /** `permitted`, `answered` or a problem code. */
  readonly reason: string
  readonly duration_ms: number
  readonly status?: number
  /** For operators. May name relations and resources, so it is present only if subjects are logged in plain text. */
  readonly detail?: string
  /** The trace id of the request's traceparent (W3C Trace Context). */
  readonly trace_id?: string
}

const METHODS = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'])
const HASH_CHARS = 22

export function decisionLine(
  outcome: Outcome,
  request: {
    readonly client: Pick<ClientRequest, 'method' | 'version'>
    readonly requestId: string
    readonly address: string
    readonly door: DoorProfile | null
    readonly durationMs: number
  },
  { traceId, subjects }: { readonly traceId: string | null; readonly subjects: SubjectsInLog },
): DecisionLine {
  const { method, version } = request.client
  const denial = outcome.kind === 'denial' ? outcome : outcome.kind === 'permit' ? outcome.shadowed : null
  const permit = outcome.kind === 'permit' ? outcome : null
  const route = (permit ?? denial)?.route?.id ?? null
  return {
    event: 'decision',
    request_id: request.requestId,
    method: METHODS.has(method) ? method : 'other',
    http_version: version,
    ...(request.door !== null && { door: request.door }),
    client_address: request.address,
    route,
    subject: named(permit?.identity?.subject ?? denial?.subject ?? null, subjects),
    decision: decisionOf(outcome),
    reason: denial?.code ?? (permit === null ? 'answered' : 'permitted'),
    ...(denial !== null && { status: denialStatus(denial.code) }),
    ...(denial !== null && subjects === 'plain' && { detail: denial.reason }),
    ...(traceId !== null && { trace_id: traceId }),
    duration_ms: Math.round(request.durationMs * 1_000) / 1_000,
  }
}

/** The line for input that could not be read as a request. */
export const rejectionLine = (
  code: ProblemCode,
  about: { readonly requestId: string; readonly address: string; readonly detail: string },
): DecisionLine => ({
  event: 'decision',
  request_id: about.requestId,
  method: 'other',
  http_version: null,
  client_address: about.address,
  route: null,
  subject: null,
  decision: 'deny',
  reason: code,
  status: denialStatus(code),
  detail: about.detail,
  duration_ms: 0,
})

function decisionOf(outcome: Outcome): DecisionLine['decision'] {
  if (outcome.kind === 'denial') return 'deny'
  if (outcome.kind !== 'permit') return 'answer'
  return outcome.shadowed === null ? 'allow' : 'shadow'
}

function named(subject: string | null, how: SubjectsInLog): string | null {
  if (subject === null || how === 'omitted') return null
  return how === 'plain' ? subject : hash('sha256', subject, 'base64url').slice(0, HASH_CHARS)
}
