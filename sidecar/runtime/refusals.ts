/** The last refusals by request id. The admin port gives them to `probe-gateway`, to tell whether a door refused its probe. */
import type { DecisionLine } from '../enforce/decision-log.ts'

export type RefusedRequest = Pick<DecisionLine, 'door' | 'reason' | 'status'>

/** How many refusals are remembered: enough for a probe, which asks at once. A client's id has 128 characters at most. */
const REFUSALS_MAX = 1_000

export function createRefusals() {
  const refusals = new Map<string, RefusedRequest>()
  return {
    /** Null: no recent refusal has this id. */
    find: (requestId: string): RefusedRequest | null => refusals.get(requestId) ?? null,
    /** A request that is allowed under the same id replaces the refusal. */
    decided({ request_id: requestId, decision, door, reason, status }: DecisionLine): void {
      if (refusals.size > 0) refusals.delete(requestId)
      if (decision !== 'deny') return
      refusals.set(requestId, { ...(door !== undefined && { door }), reason, ...(status !== undefined && { status }) })
      const [oldest] = refusals.keys()
      if (refusals.size > REFUSALS_MAX && oldest !== undefined) refusals.delete(oldest)
    },
  }
}
