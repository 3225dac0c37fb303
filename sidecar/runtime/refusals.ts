/** The last refusals by request id. By them the admin port tells `probe-gateway` whether a door has refused its probe. */
import type { DecisionLine } from '../enforce/decision-log.ts'

export type RefusedRequest = Pick<DecisionLine, 'door' | 'reason' | 'status'>

/** How many refusals are kept: enough for a probe, which asks immediately. An id has at most 128 characters. */
const REFUSALS_MAX = 1_000

export function createRefusals() {
  const refusals = new Map<string, RefusedRequest>()
  return {
    /** The refusal with this id; null: none is recent enough. */
    find: (requestId: string): RefusedRequest | null => refusals.get(requestId) ?? null,
    /** Keeps a refusal until a request with the same id is allowed. */
    decided({ request_id: requestId, decision, door, reason, status }: DecisionLine): void {
      if (refusals.size > 0) refusals.delete(requestId)
      if (decision !== 'deny') return
      refusals.set(requestId, { ...(door !== undefined && { door }), reason, ...(status !== undefined && { status }) })
      const [oldest] = refusals.keys()
      if (refusals.size > REFUSALS_MAX && oldest !== undefined) refusals.delete(oldest)
    },
  }
}
