/** Pushes what streams have to send. Any process may; turns (turns.ts) let one at a time deliver a stream. */
import { backoffMs, FAILING_MS_MAX } from './backoff.ts'
import type { Feed } from './feed.ts'
import { noteOutcome, type PauseDeps, pauseStream } from './pause.ts'
import { type PushOutcome, pushSet } from './push.ts'
import type { PendingSet } from './queue.ts'
import type { Stream } from './streams.ts'
import { createTurns, type Turn, type Turns } from './turns.ts'

/** With the last call, shorter than the lease of a turn. */
const BATCH_MS_MAX = 5_000

export type DeliveryOutcome = PushOutcome['kind'] | 'paused'
export type DelivererDeps = PauseDeps & {
  readonly feed: Pick<Feed, 'after' | 'newest'>
  readonly random: () => number
}
/** `nothing`: another process has it, or there is nothing to send now. */
export type Round = 'more' | 'nothing' | 'failed'
/**
 * One batch of one stream. `wanted`: the number of its newest event that is known. Throws PdpError `store_unavailable`; what was
 * sent but not recorded is sent again.
 */
export type Deliver = (id: string, wanted: number) => Promise<Round>

export function createDeliverer(deps: DelivererDeps): Deliver {
  const turns = createTurns(deps)
  return async (id, wanted) => {
    const turn = await turns.take(id, wanted)
    return turn === null ? 'nothing' : deliver(deps, turns, turn)
  }
}

async function deliver(deps: DelivererDeps, turns: Turns, turn: Turn): Promise<Round> {
  const { stream, sets, more } = turn
  const untilMs = performance.now() + BATCH_MS_MAX
  const done: Done[] = []
  let failure: Failure | null = null
  const authorization = deps.openAuthorization(stream)
  for (const set of sets) {
    if (performance.now() > untilMs) break
    const call = { url: stream.endpointUrl ?? '', authorization, token: set.token }
    const outcome = await pushSet(deps.post, call)
    deps.onOutcome(outcome.kind)
    noteOutcome(deps, stream, { set, outcome })
    if (outcome.kind === 'failed') {
      failure = outcome
      break
    }
    done.push({ set, outcome })
  }
  await settle(deps, turns, { stream, done, failure })
  if (failure !== null) return 'failed'
  return more || done.length < sets.length ? 'more' : 'nothing'
}

type Failure = Extract<PushOutcome, { kind: 'failed' }>
type Done = { readonly set: PendingSet; readonly outcome: Exclude<PushOutcome, { kind: 'failed' }> }

async function settle(
  deps: DelivererDeps,
  turns: Turns,
  {
    stream,
    done,
    failure,
  }: { readonly stream: Stream; readonly done: readonly Done[]; readonly failure: Failure | null },
): Promise<void> {
  const reasons = done.flatMap(({ outcome }) => (outcome.kind === 'refused' ? [outcome.reason] : []))
  const reason = failure?.reason ?? reasons.at(-1) ?? null
  const attempts = (done.length > 0 ? 0 : stream.attemptsCount) + (failure === null ? 0 : 1)
  const failingSinceMs = done.length > 0 ? null : stream.failingSinceMs
  await turns.end({
    stream,
    jtis: done.map(({ set }) => set.jti),
    refusedCount: reasons.length,
    isDelivered: done.length > reasons.length,
    error: reason,
    attempts,
    failingSinceMs: failingSinceMs ?? deps.clock(),
    waitMs: failure === null ? 0 : Math.max(backoffMs(attempts, deps.random()), failure.retryAfterMs ?? 0),
  })
  const isGivenUp = failure !== null && failingSinceMs !== null && deps.clock() - failingSinceMs >= FAILING_MS_MAX
  if (isGivenUp)
    await pauseStream(deps, stream, `delivery failed for ${FAILING_MS_MAX / 3_600_000} hours: ${reason ?? 'failed'}`)
}
