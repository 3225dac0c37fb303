/** The log line of each request; its schema is decision-log.schema.json. It has no token, no body, and a query only if the file says so. */
import { hash } from 'node:crypto'
import type { ProblemCode } from '../../pdp/shared/base/problems.ts'
import type { ClientRequest } from '../http/client-request.ts'
import type { DoorProfile } from '../http/door-fields.ts'
import { firstValue } from '../http/fields.ts'
import type { PathsInLog, SubjectsInLog } from '../route-file/route-file.ts'
import { describeQuestions } from '../routes/checks.ts'
import type { Asked, Denial } from './denial.ts'
import { denialStatus } from './denial-response.ts'
import type { Outcome } from './enforce.ts'

export type DecisionLine = {
  readonly event: 'decision'
  readonly request_id: string
  /** A method of RFC 9110 section 9.1; any other is logged as `other`. */
  readonly method: string
  /** HTTP version of the client's request; null: the input could not be read as a request. */
  readonly http_version: ClientRequest['version'] | null
  /** The profile of the gateway that asked; absent: the request came to the data port. */
  readonly door?: DoorProfile
  /** The client's address, as trusted proxies report it. */
  readonly client_address: string
  /** The Host field; absent: the request had none. */
  readonly host?: string
  /** The path as the client wrote it; absent: the route file says that logs omit paths. */
  readonly path?: string
  readonly route: string | null
  /** Questions to the PDP, such as `viewer invoice:42`; absent: the PDP was not asked. No ids where logs omit paths or subjects. */
  readonly asks?: readonly string[]
  readonly subject: string | null
  /** `shadow`: forwarded although `reason` says why it would be refused. `answer`: answered by the sidecar itself. */
  readonly decision: 'allow' | 'deny' | 'shadow' | 'answer'
  /** `permitted`, `answered` or a problem code. */
  readonly reason: string
  readonly duration_ms: number
  /** The status that the client of an allowed request got; absent: the client left first, or a gateway forwards the request. */
  readonly status?: number
  /** The bytes of the answer's body; absent: the answer is endless, and its line is written when it begins. */
  readonly bytes?: number
  /** How many items were removed from the answer, or shadow mode would remove; absent: nothing is filtered, or the answer is endless. */
  readonly removed?: number
  readonly user_agent?: string
  /** A longer reason for operators. It may name relations and resources, so it is absent unless subjects are logged in plain text. */
  readonly detail?: string
  /** The trace id of the request's traceparent (W3C Trace Context). */
  readonly trace_id?: string
}

const METHODS = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'])
const HASH_CHARS = 22
/** Bounds of the texts in a line, since any client can cause lines. */
const PATH_CHARS_MAX = 1_024
const NAME_CHARS_MAX = 256
const ASKS_MAX = 16

export function decisionLine(
  outcome: Outcome,
  request: {
    readonly client: Pick<ClientRequest, 'method' | 'version' | 'target' | 'raw'>
    readonly requestId: string
    readonly address: string
    readonly door: DoorProfile | null
    readonly durationMs: number
  },
  {
    traceId,
    subjects,
    paths,
  }: { readonly traceId: string | null; readonly subjects: SubjectsInLog; readonly paths: PathsInLog },
): DecisionLine {
  const { method, version, raw } = request.client
  const denial = outcome.kind === 'denial' ? outcome : outcome.kind === 'permit' ? outcome.shadowed : null
  const permit = outcome.kind === 'permit' ? outcome : null
  const route = (denial ?? permit)?.route?.id ?? null
  const asked = (permit ?? denial)?.asked ?? null
  const path = pathOf(request.client.target, paths)
  const withIds = subjects === 'plain' && paths !== 'omitted'
  return {
    event: 'decision',
    request_id: request.requestId,
    method: METHODS.has(method) ? method : 'other',
    http_version: version,
    ...(request.door !== null && { door: request.door }),
    client_address: request.address,
    ...named('host', firstValue(raw, 'host')),
    ...(path !== null && { path }),
    route,
    ...(asked !== null && { asks: asksOf(asked, withIds) }),
    subject: subjectIn(permit?.identity?.subject ?? denial?.subject ?? null, subjects),
    decision: decisionOf(outcome),
    reason: denial?.code ?? (permit === null ? 'answered' : 'permitted'),
    ...(denial !== null && { status: denialStatus(denial.code) }),
    ...(permit !== null &&
      permit.unidentified !== null &&
      subjects === 'plain' && { detail: `without identity: ${permit.unidentified}` }),
    ...(denial !== null && subjects === 'plain' && { detail: withIds ? denial.reason : withoutIds(denial) }),
    ...named('user_agent', firstValue(raw, 'user-agent')),
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

const atMost = (text: string, charsMax: number): string =>
  text.length > charsMax ? `${text.slice(0, charsMax)}…` : text

const named = (name: 'host' | 'user_agent', value: string | null): { readonly [name: string]: string } =>
  value === null ? {} : { [name]: atMost(value, NAME_CHARS_MAX) }

/** The path to log. A target in absolute form may name a user and a host before it, which are dropped. */
function pathOf(target: string, paths: PathsInLog): string | null {
  if (paths === 'omitted') return null
  const path = target.replace(/^[a-z][a-z0-9+.-]*:\/\/[^/?#]*/i, '')
  return atMost(paths === 'full' ? path : (path.split('?', 1)[0] ?? ''), PATH_CHARS_MAX)
}

function asksOf({ permissions, entitlements }: Asked, withIds: boolean): readonly string[] {
  const asks = withIds
    ? permissions
    : permissions.map(({ relation, resource }) => ({ relation, resource: typeOf(resource) }))
  return describeQuestions({ permissions: asks.slice(0, ASKS_MAX), entitlements: entitlements.slice(0, ASKS_MAX) })
}

const typeOf = (resource: string): string => resource.split(':', 1)[0] ?? ''

/** The reason of the denial, with the ids of resources removed. */
function withoutIds({ reason, asked }: Denial): string {
  const resources = asked?.permissions.map(({ resource }) => resource) ?? []
  // The PDP's explanation in parentheses names other resources and subjects.
  const [text = ''] = resources.length === 0 ? [reason] : reason.split(' (', 1)
  // The longest come first, since `doc:1` is the beginning of `doc:12`.
  const longestFirst = resources.toSorted((a, b) => b.length - a.length)
  return longestFirst.reduce((shown, resource) => shown.replaceAll(resource, typeOf(resource)), text)
}

function decisionOf(outcome: Outcome): DecisionLine['decision'] {
  if (outcome.kind === 'denial') return 'deny'
  if (outcome.kind !== 'permit') return 'answer'
  return outcome.shadowed === null ? 'allow' : 'shadow'
}

function subjectIn(subject: string | null, how: SubjectsInLog): string | null {
  if (subject === null || how === 'omitted') return null
  return how === 'plain' ? subject : hash('sha256', subject, 'base64url').slice(0, HASH_CHARS)
}
