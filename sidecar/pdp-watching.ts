/** A standing question: the PDP says whenever its answer changes, over whichever address is reachable. */
import { readAnswer } from './pdp-answer.ts'
import type { Outcome } from './pdp-link.ts'
import type { PdpLinks } from './pdp-links.ts'
import type { PdpAnswer, PdpQuestion } from './pdp-question.ts'

/** `answer` null: nothing is known from now on, until the next call. */
export type OnStanding = (answer: PdpAnswer | null) => void

const RETRY_MS = 500

/** Goes on until the returned function is called. */
export function watch(question: PdpQuestion, links: PdpLinks, onStanding: OnStanding): () => void {
  let ended = false
  let cancel: (() => void) | null = null
  let timer: NodeJS.Timeout | undefined

  function start(): void {
    if (ended) return
    const choice = links.choose(null)
    if (choice.kind === 'link') cancel = choice.link.watch(question, settle)
    else links.waiting.add(start)
  }

  function settle(outcome: Outcome): void {
    if (ended) return
    const answer = outcome.kind === 'answer' ? readAnswer(outcome.decision, question) : null
    onStanding(answer)
    if (answer !== null || ended) return
    cancel?.()
    cancel = null
    timer = setTimeout(start, RETRY_MS).unref()
  }

  start()
  return () => {
    ended = true
    clearTimeout(timer)
    links.waiting.delete(start)
    cancel?.()
  }
}
