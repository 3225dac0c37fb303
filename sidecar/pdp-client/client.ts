/** Asks the PDP at several addresses within one deadline. A missing answer never permits a request. */
import { ask } from '../../pdp/shared/client/attempts.ts'
import type { Decision } from '../../pdp/shared/client/codec.ts'
import { createPdpPool, type PoolOptions } from '../../pdp/shared/client/pool.ts'
import { PdpUnavailable, UNDECIDED_CODES } from '../request/errors.ts'
import { decidedAbout } from './answer.ts'
import type { PdpAnswer, PdpQuestion } from './question.ts'
import { type OnAnswer, watch } from './watch.ts'

export type PdpClient = {
  /** Throws PdpUnavailable when no valid answer arrives in time. */
  ask(question: PdpQuestion): Promise<PdpAnswer>
  /** Watches a question: calls `onAnswer` with each new answer, or null while unknown, until the returned function is called. */
  watch(question: PdpQuestion, onAnswer: OnAnswer): () => void
  /** The time since which no address answers, in milliseconds; null while one does. */
  silentSinceMs(): number | null
  /** True while no address answered yet and a first attempt to connect is under way. */
  isConnecting(): boolean
  /** True after any address has answered. */
  hasConnected(): boolean
  close(): void
}
const ASKER = 'this sidecar'
const undecided = (reason: string, code: string): PdpUnavailable =>
  new PdpUnavailable(reason, UNDECIDED_CODES.find((known) => known === code) ?? 'pdp_unavailable')

export function createPdpClient(
  options: PoolOptions & {
    /** Deadline of one question, including all attempts. */
    readonly timeoutMs?: number
    readonly questionsMax?: number
  },
): PdpClient {
  const { timeoutMs = 500, questionsMax = 10_000 } = options
  const pool = createPdpPool(options)
  let openCount = 0
  const settled = (): void => {
    openCount -= 1
  }
  return {
    ask(question) {
      if (openCount >= questionsMax)
        return Promise.reject(new PdpUnavailable(`${ASKER} has too many open questions to the PDP`, 'overloaded'))
      openCount += 1
      const read = (decision: Decision): PdpAnswer => decidedAbout(decision, question)
      return ask(pool, { question, timeoutMs, asker: ASKER, read, undecided, settled })
    },
    watch: (question, onAnswer) => watch(question, pool, onAnswer),
    silentSinceMs: pool.silentSinceMs,
    isConnecting: pool.isConnecting,
    hasConnected: pool.hasConnected,
    close: () => pool.close(),
  }
}
