/** One question on its way to an answer: asked twice at most, and settled once within its deadline. */
import { PdpUnavailable } from './errors.ts'
import { readAnswer } from './pdp-answer.ts'
import type { Outcome, PdpLink } from './pdp-link.ts'
import type { PdpLinks } from './pdp-links.ts'
import type { PdpAnswer, PdpQuestion } from './pdp-question.ts'

const ATTEMPTS_MAX = 2
/** The share of the deadline after which another address is asked as well. */
const HEDGE_SHARE = 0.4

/** Rejects with PdpUnavailable. */
export const ask = (question: PdpQuestion, links: PdpLinks, timeoutMs: number): Promise<PdpAnswer> =>
  new Asking(question, links, timeoutMs).promise

class Asking {
  readonly promise: Promise<PdpAnswer>
  readonly #question: PdpQuestion
  readonly #links: PdpLinks
  readonly #timeoutMs: number
  readonly #deadline: NodeJS.Timeout
  readonly #cancels: (() => void)[] = []
  readonly #pending = new Set<PdpLink>()
  readonly #wake = (): void => this.#attempt(null)
  readonly #resolve: (answer: PdpAnswer) => void
  readonly #reject: (error: PdpUnavailable) => void
  #hedge: NodeJS.Timeout | undefined
  #attempts = 0

  constructor(question: PdpQuestion, links: PdpLinks, timeoutMs: number) {
    const { promise, resolve, reject } = Promise.withResolvers<PdpAnswer>()
    this.promise = promise
    this.#resolve = resolve
    this.#reject = reject
    this.#question = question
    this.#links = links
    this.#timeoutMs = timeoutMs
    this.#deadline = setTimeout(() => this.#expire(), timeoutMs)
    this.#attempt(null)
  }

  /** On another link than `except`; when there is none, on the first that opens in time, be it the same. */
  #attempt(except: PdpLink | null): void {
    const choice = this.#links.choose(except)
    if (choice.kind === 'wait' || (choice.kind === 'none' && except !== null)) this.#links.waiting.add(this.#wake)
    else if (choice.kind === 'none') this.#fail('no address can be asked')
    else this.#askOver(choice.link)
  }

  #askOver(link: PdpLink): void {
    this.#attempts += 1
    this.#pending.add(link)
    this.#cancels.push(link.send(this.#question, (outcome) => this.#settle(link, outcome)))
    if (this.#attempts === 1 && this.#links.count > 1)
      this.#hedge = setTimeout(() => this.#askAnother(link), this.#timeoutMs * HEDGE_SHARE)
  }

  #askAnother(link: PdpLink): void {
    this.#links.slow(link)
    const choice = this.#attempts < ATTEMPTS_MAX ? this.#links.choose(link) : null
    if (choice?.kind === 'link') this.#askOver(choice.link)
  }

  #expire(): void {
    for (const link of this.#pending) this.#links.bad(link)
    this.#fail('no answer in time')
  }

  #settle(link: PdpLink, outcome: Outcome): void {
    this.#pending.delete(link)
    if (outcome.kind === 'lost') {
      if (this.#attempts < ATTEMPTS_MAX) this.#attempt(link)
      else if (this.#pending.size === 0) this.#fail('the connection was lost twice')
      return
    }
    this.#links.good(link)
    const answer = outcome.kind === 'answer' ? readAnswer(outcome.decision, this.#question) : null
    if (answer === null)
      this.#fail(outcome.kind === 'error' ? `the PDP answered ${outcome.code}` : 'the answer does not fit the question')
    else {
      this.#finish()
      this.#resolve(answer)
    }
  }

  #fail(reason: string): void {
    this.#finish()
    this.#reject(new PdpUnavailable(reason))
  }

  #finish(): void {
    clearTimeout(this.#deadline)
    clearTimeout(this.#hedge)
    this.#links.waiting.delete(this.#wake)
    for (const cancel of this.#cancels) cancel()
  }
}
