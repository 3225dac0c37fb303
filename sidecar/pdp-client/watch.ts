/** Watches a question over any reachable address: the PDP sends a new answer whenever it changes. */

import { isAddressError, type PdpPool } from '../../pdp/shared/client/pool.ts'
import type { PdpStream, Reply } from '../../pdp/shared/client/stream.ts'
import { readAnswer } from './answer.ts'
import type { PdpAnswer, PdpQuestion } from './question.ts'

/** `answer` is null while the current answer is unknown. */
export type OnAnswer = (answer: PdpAnswer | null) => void

const RETRY_MS = 500
/** Shorter than the time for which an exchange continues unconfirmed. */
const RETRY_MAX_MS = 2_000

/** Watches until the returned function is called. */
export function watch(question: PdpQuestion, pool: PdpPool, onAnswer: OnAnswer): () => void {
  let ended = false
  let cancel: (() => void) | null = null
  let timer: NodeJS.Timeout | undefined
  let retryMs = RETRY_MS

  function start(): void {
    if (ended) return
    const choice = pool.choose(null)
    if (choice.kind !== 'stream') return void pool.waiting.add(start)
    const { stream } = choice
    cancel = stream.watch(question, (reply) => settle(stream, reply))
  }

  function settle(stream: PdpStream, reply: Reply): void {
    if (ended) return
    // This address cannot answer now, so the next attempt uses another one.
    if (reply.kind === 'error' && isAddressError(reply.code)) pool.markUnable(stream)
    const answer = reply.kind === 'answer' ? readAnswer(reply.decision, question) : null
    onAnswer(answer)
    if (answer !== null) retryMs = RETRY_MS
    if (answer !== null || ended) return
    cancel?.()
    cancel = null
    timer = setTimeout(start, retryMs).unref()
    retryMs = Math.min(RETRY_MAX_MS, 2 * retryMs)
  }

  start()
  return () => {
    ended = true
    clearTimeout(timer)
    pool.waiting.delete(start)
    cancel?.()
  }
}
