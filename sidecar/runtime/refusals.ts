/** The last refusals by request id. The admin port names them to `probe-gateway`, which asks whether a door refused its probe. */
import type { DecisionLine } from '../enforce/decision-log.ts'
import type { Metrics } from './metrics.ts'

export type RefusedRequest = Pick<DecisionLine, 'door' | 'reason' | 'status'>
export type Refusals = {
  /** Null: none of the last ones has this id. */
  find(requestId: string): RefusedRequest | null
  /** The same metrics, of which refusals are remembered. */
  countedBy(metrics: Metrics): Metrics
}

/** Enough for a probe, which asks at once. Clients choose ids of 128 characters at most. */
const REFUSALS_MAX = 1_000

export function createRefusals(): Refusals {
  const refusals = new Map<string, RefusedRequest>()
  return {
    find: (requestId) => refusals.get(requestId) ?? null,
    countedBy: (metrics) => ({
      ...metrics,
      decided(route, line) {
        // An id that is refused and then allowed names no refusal.
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
