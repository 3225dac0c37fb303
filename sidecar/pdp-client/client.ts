/** Asks the PDP, over several addresses, within one deadline. No answer is never an allow. */
import { PdpUnavailable } from '../request/errors.ts'
import { ask } from './ask.ts'
import { createPdpPool, type PoolOptions } from './pool.ts'
import type { PdpAnswer, PdpQuestion } from './question.ts'
import { type OnAnswer, watch } from './watch.ts'

export type PdpClient = {
  /** Throws PdpUnavailable when no well-formed answer to this question came in time. */
  ask(question: PdpQuestion): Promise<PdpAnswer>
  /** Tells each answer to a standing question, and null whenever none can be had, until the returned function is called. */
  watch(question: PdpQuestion, onAnswer: OnAnswer): () => void
  /** Since when no address can be asked, or answers; null: one does. */
  silentSinceMs(): number | null
  close(): void
}
export type PdpClientOptions = PoolOptions & {
  /** For one question with all its attempts. */
  readonly timeoutMs?: number
  readonly questionsMax?: number
}

export function createPdpClient(options: PdpClientOptions): PdpClient {
  const { timeoutMs = 500, questionsMax = 10_000 } = options
  const pool = createPdpPool(options)
  let openCount = 0
  return {
    async ask(question) {
      if (openCount >= questionsMax) throw new PdpUnavailable('too many questions are open', 'overloaded')
      openCount += 1
      try {
        return await ask(question, pool, timeoutMs)
      } finally {
        openCount -= 1
      }
    },
    watch: (question, onAnswer) => watch(question, pool, onAnswer),
    silentSinceMs: pool.silentSinceMs,
    close: () => pool.close(),
  }
}
