/** Enforces the rules that are in force when a request is let through, not those at its arrival: it may have waited long in between. */
import type { Span } from '../../pdp/shared/process/tracing/tracing.ts'
import type { Origin } from '../request/origin.ts'
import { checkMedia, type ReadBody } from '../routes/json-body.ts'
import { NO_ADMISSION } from './admission.ts'
import { deniedAfterPermit } from './denial.ts'
import { type Arrival, type EnforceDeps, enforce, type Outcome, type Permit } from './enforce.ts'
import { withSpan } from './trace.ts'

export type Rules = {
  readonly enforcing: EnforceDeps
  /** False once a reload has replaced these rules. */
  readonly isCurrent: () => boolean
}
/** What became of a request, by which rules, and its origin by them. */
export type Latest<InForce extends Rules> = {
  readonly outcome: Outcome
  readonly rules: InForce
  readonly origin: Origin
}
type Options<InForce extends Rules> = {
  readonly latest: () => InForce
  /** The origin of the request by these rules. */
  readonly originBy: (rules: InForce) => Origin
  readonly span: Span | null
}
/** Reloads while one request is evaluated. A permit that is out of date even then is refused. */
const ROUNDS_MAX = 3

/** Never rejects. */
export async function enforceLatest<InForce extends Rules>(
  arrival: Omit<Arrival, 'former'>,
  first: InForce,
  options: Options<InForce>,
): Promise<Latest<InForce>> {
  const kept: Arrival = { ...arrival, readBody: keepBody(arrival.readBody), former: null }
  const outcome = await enforce(kept, withSpan(first.enforcing, options.span))
  if (outcome.kind !== 'permit' || first.isCurrent()) return { outcome, rules: first, origin: arrival.origin }
  return enforceAgain(outcome, kept, options)
}

/** A request that the former rules permitted keeps its places, and its proof is not asked again. */
async function enforceAgain<InForce extends Rules>(
  permitted: Permit,
  arrival: Arrival,
  { latest, originBy, span }: Options<InForce>,
): Promise<Latest<InForce>> {
  let former = permitted
  for (let round = 0; ; round += 1) {
    const rules = latest()
    const origin = originBy(rules)
    // The token of a session is in the former request.
    const browser = former.identity === null ? arrival.browser : null
    const again = { ...arrival, origin, admission: NO_ADMISSION, browser, former }
    const outcome = await enforce(again, withSpan(rules.enforcing, span))
    if (outcome.kind !== 'permit' || rules.isCurrent()) return { outcome, rules, origin }
    if (round === ROUNDS_MAX - 1)
      return { outcome: deniedAfterPermit(outcome, 'overloaded', { reason: RELOADING }), rules, origin }
    former = outcome
  }
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
