/** A standing question: the PDP says whenever its answer changes, over whichever address is reachable. */
import { readAnswer } from './answer.ts'
import { isOfAddress, type PdpLinks } from './connections.ts'
import type { PdpAnswer, PdpQuestion } from './question.ts'
import type { Outcome, PdpLink } from './stream.ts'

/** `answer` null: nothing is known from now on, until the next call. */
export type OnStanding = (answer: PdpAnswer | null) => void

const RETRY_MS = 500
/** Below the time for which an exchange goes on unconfirmed. */
const RETRY_MAX_MS = 2_000

/** Goes on until the returned function is called. */
export function watch(question: PdpQuestion, links: PdpLinks, onStanding: OnStanding): () => void {
  let ended = false
  let cancel: (() => void) | null = null
  let timer: NodeJS.Timeout | undefined
  let retryMs = RETRY_MS

  function start(): void {
    if (ended) return
    const choice = links.choose(null)
    if (choice.kind !== 'link') return void links.waiting.add(start)
    const { link } = choice
    cancel = link.watch(question, (outcome) => settle(link, outcome))
  }

  function settle(link: PdpLink, outcome: Outcome): void {
    if (ended) return
    // The next try goes to another address.
    if (outcome.kind === 'error' && isOfAddress(outcome.code)) links.unwell(link)
    const answer = outcome.kind === 'answer' ? readAnswer(outcome.decision, question) : null
    onStanding(answer)
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
    links.waiting.delete(start)
    cancel?.()
  }
}
