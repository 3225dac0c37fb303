/** Enforces the rules that are in force when a request is let through, not those at its arrival: it may have waited long in between. */
import type { Span } from '../../pdp/process/tracing/tracing.ts'
import type { Origin } from '../request/origin.ts'
import { checkMedia, type ReadBody } from '../routes/json-body.ts'
import { NO_ADMISSION } from './admission.ts'
import { deniedAfterPermit } from './denial.ts'
import { type Arrival, type EnforceDeps, enforce, type Outcome } from './enforce.ts'
import { withSpan } from './trace.ts'

export type Rules = {
  readonly enforcing: EnforceDeps
  /** False once a reload has replaced these rules. */
  readonly isCurrent: () => boolean
}
/** Reloads while one request is evaluated. A permit that is out of date even then is refused. */
const ROUNDS_MAX = 3

/** Never rejects. A request that the former rules permitted keeps its places, and its proof is not asked again. */
export async function enforceLatest<InForce extends Rules>(
  arrival: Omit<Arrival, 'former'>,
  first: InForce,
  options: {
    readonly latest: () => InForce
    /** The origin of the request by these rules. */
    readonly originBy: (rules: InForce) => Origin
    readonly span: Span | null
  },
): Promise<{ readonly outcome: Outcome; readonly rules: InForce; readonly origin: Origin }> {
  const { latest, originBy, span } = options
  const readBody = keepBody(arrival.readBody)
  let rules = first
  let { origin } = arrival
  let outcome = await enforce({ ...arrival, readBody, former: null }, withSpan(rules.enforcing, span))
  for (let round = 0; round < ROUNDS_MAX && outcome.kind === 'permit' && !rules.isCurrent(); round += 1) {
    rules = latest()
    origin = originBy(rules)
    const former = outcome
    // The token of a session is in the former request.
    const browser = former.identity === null ? arrival.browser : null
    const again = { ...arrival, origin, readBody, admission: NO_ADMISSION, browser, former }
    outcome = await enforce(again, withSpan(rules.enforcing, span))
  }
  if (outcome.kind === 'permit' && !rules.isCurrent())
    outcome = deniedAfterPermit(outcome, 'overloaded', { reason: RELOADING })
  return { outcome, rules, origin }
}

const RELOADING = 'the route file changed again and again during this request'

/** A body can be read only once. */
function keepBody(read: ReadBody): ReadBody {
  let kept: Promise<Buffer> | null = null
  return (request, need) => {
    if (kept !== null) checkMedia(request, need)
    kept ??= read(request, need)
    return kept
  }
}
