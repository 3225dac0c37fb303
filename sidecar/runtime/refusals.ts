/** The last refusals by request id. The admin port gives them to `probe-gateway`, to tell whether a door refused its probe. */
import type { DecisionLine } from '../enforce/decision-log.ts'
import type { Metrics } from './metrics.ts'

export type RefusedRequest = Pick<DecisionLine, 'door' | 'reason' | 'status'>
export type Refusals = {
  /** Null: no recent refusal has this id. */
  find(requestId: string): RefusedRequest | null
  /** These metrics, which now also remember refusals. */
  countedBy(metrics: Metrics): Metrics
}

/** How many refusals are remembered: enough for a probe, which asks at once. A client's id has 128 characters at most. */
const REFUSALS_MAX = 1_000

export function createRefusals(): Refusals {
  const refusals = new Map<string, RefusedRequest>()
  return {
    find: (requestId) => refusals.get(requestId) ?? null,
    countedBy: (metrics) => ({
      ...metrics,
      decided(route, line) {
        // A request that is allowed under the same id replaces the refusal.
        if (refusals.size > 0) refusals.delete(line.request_id)
        if (line.decision === 'deny') {
          const { door, reason, status } = line
          refusals.set(line.request_id, {
            ...(door !== undefined && { door }),
            reason,
            ...(status !== undefined && { status }),
          })
          const [oldest] = refusals.keys()
          if (refusals.size > REFUSALS_MAX && oldest !== undefined) refusals.delete(oldest)
        }
        metrics.decided(route, line)
      },
    }),
  }
}
