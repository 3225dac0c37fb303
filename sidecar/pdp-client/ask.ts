/** One question on its way to an answer: asked twice at most, and settled once within its deadline. */
import { PdpUnavailable } from '../request/errors.ts'
import { readAnswer } from './answer.ts'
import type { Decision } from './codec.ts'
import { isOfAddress, type PdpLinks } from './connections.ts'
import type { PdpAnswer, PdpQuestion } from './question.ts'
import type { Outcome, PdpLink } from './stream.ts'

const ATTEMPTS_MAX = 2
/** The share of the deadline after which another address is asked as well. */
const HEDGE_SHARE = 0.4
/** The share of the time waited in which this process was busy itself, from which on nobody else is to blame. */
const LAG_SHARE = 0.2

/** Rejects with PdpUnavailable. */
export const ask = (question: PdpQuestion, links: PdpLinks, timeoutMs: number): Promise<PdpAnswer> =>
  new Asking(question, links, timeoutMs).promise

class Asking {
  readonly promise: Promise<PdpAnswer>
  readonly #question: PdpQuestion
  readonly #links: PdpLinks
  readonly #timeoutMs: number
  readonly #startedMs = performance.now()
  readonly #deadline: NodeJS.Timeout
  readonly #cancels: (() => void)[] = []
  readonly #pending = new Set<PdpLink>()
  readonly #wake = (): void => this.#attempt(null)
  readonly #resolve: (answer: PdpAnswer) => void
  readonly #reject: (error: PdpUnavailable) => void
  #hedge: NodeJS.Timeout | undefined
  #attempts = 0
  #over = false

  constructor(question: PdpQuestion, links: PdpLinks, timeoutMs: number) {
    const { promise, resolve, reject } = Promise.withResolvers<PdpAnswer>()
    this.promise = promise
    this.#resolve = resolve
    this.#reject = reject
    this.#question = question
    this.#links = links
    this.#timeoutMs = timeoutMs
    // What has arrived already is read before: timers come first in a turn that is late.
    this.#deadline = setTimeout(() => setImmediate(() => this.#expire()), timeoutMs)
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
    // Two questions in the place of one would be the wrong help for this process.
    if (this.#wasBusy()) return
    this.#links.slow(link)
    const choice = this.#attempts < ATTEMPTS_MAX ? this.#links.choose(link) : null
    if (choice?.kind === 'link') this.#askOver(choice.link)
  }

  #expire(): void {
    if (this.#over) return
    const wasBusy = this.#wasBusy()
    if (!wasBusy) for (const link of this.#pending) this.#links.bad(link)
    this.#fail(wasBusy ? 'this sidecar was too busy to read an answer in time' : 'no answer in time')
  }

  #wasBusy(): boolean {
    const { lag } = this.#links
    return lag.since(this.#startedMs) >= LAG_SHARE * (performance.now() - this.#startedMs)
  }

  #settle(link: PdpLink, outcome: Outcome): void {
    this.#pending.delete(link)
    if (outcome.kind === 'lost') this.#askAgain(link, 'the connection was lost twice')
    else if (outcome.kind === 'error') this.#settleError(link, outcome.code)
    else this.#settleDecision(link, outcome.decision)
  }

  #settleDecision(link: PdpLink, decision: Decision): void {
    this.#links.good(link)
    const answer = readAnswer(decision, this.#question)
    if (answer === null) {
      this.#fail('the answer does not fit the question')
    } else {
      this.#finish()
      this.#resolve(answer)
    }
  }

  #settleError(link: PdpLink, code: string): void {
    const reason = `the PDP answered ${code}`
    if (isOfAddress(code)) {
      this.#links.unwell(link)
      this.#askElsewhere(link, reason)
    } else {
      this.#links.good(link)
      this.#fail(reason, code)
    }
  }

  #askAgain(link: PdpLink, reason: string): void {
    if (this.#attempts < ATTEMPTS_MAX) this.#attempt(link)
    else if (this.#pending.size === 0) this.#fail(reason)
  }

  /** Not at the same address: it has answered. */
  #askElsewhere(link: PdpLink, reason: string): void {
    const choice = this.#attempts < ATTEMPTS_MAX ? this.#links.choose(link) : null
    if (choice?.kind === 'link') this.#askOver(choice.link)
    else if (this.#pending.size === 0) this.#fail(reason)
  }

  #fail(reason: string, code = 'pdp_unavailable'): void {
    this.#finish()
    this.#reject(new PdpUnavailable(reason, code === 'overloaded' ? 'overloaded' : 'pdp_unavailable'))
  }

  #finish(): void {
    this.#over = true
    clearTimeout(this.#deadline)
    clearTimeout(this.#hedge)
    this.#links.waiting.delete(this.#wake)
    for (const cancel of this.#cancels) cancel()
  }
}
