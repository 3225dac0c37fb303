/** One question on its way to an answer: asked twice at most, and settled once within its deadline. */
import { PdpUnavailable } from '../request/errors.ts'
import { readAnswer } from './answer.ts'
import type { Decision } from './codec.ts'
import { isAddressError, type PdpPool } from './pool.ts'
import type { PdpAnswer, PdpQuestion } from './question.ts'
import type { PdpStream, Reply } from './stream.ts'

const ATTEMPTS_MAX = 2
/** The share of the deadline after which another address is asked as well. */
const HEDGE_SHARE = 0.4
/** The share of the time waited in which this process was busy itself, from which on nobody else is to blame. */
const LAG_SHARE = 0.2

/** Rejects with PdpUnavailable. */
export const ask = (question: PdpQuestion, pool: PdpPool, timeoutMs: number): Promise<PdpAnswer> =>
  new QuestionAttempts(question, pool, timeoutMs).promise

class QuestionAttempts {
  readonly promise: Promise<PdpAnswer>
  readonly #question: PdpQuestion
  readonly #pool: PdpPool
  readonly #timeoutMs: number
  readonly #startedMs = performance.now()
  readonly #deadline: NodeJS.Timeout
  readonly #cancels: (() => void)[] = []
  readonly #pending = new Set<PdpStream>()
  readonly #wake = (): void => this.#attempt(null)
  readonly #resolve: (answer: PdpAnswer) => void
  readonly #reject: (error: PdpUnavailable) => void
  #hedge: NodeJS.Timeout | undefined
  #attempts = 0
  #over = false

  constructor(question: PdpQuestion, pool: PdpPool, timeoutMs: number) {
    const { promise, resolve, reject } = Promise.withResolvers<PdpAnswer>()
    this.promise = promise
    this.#resolve = resolve
    this.#reject = reject
    this.#question = question
    this.#pool = pool
    this.#timeoutMs = timeoutMs
    // What has arrived already is read before: timers come first in a turn that is late.
    this.#deadline = setTimeout(() => setImmediate(() => this.#expire()), timeoutMs)
    this.#attempt(null)
  }

  /** On another stream than `except`; when there is none, on the first that opens in time, be it the same. */
  #attempt(except: PdpStream | null): void {
    const choice = this.#pool.choose(except)
    if (choice.kind === 'wait' || (choice.kind === 'none' && except !== null)) this.#pool.waiting.add(this.#wake)
    else if (choice.kind === 'none') this.#fail('no address can be asked')
    else this.#askOver(choice.stream)
  }

  #askOver(stream: PdpStream): void {
    this.#attempts += 1
    this.#pending.add(stream)
    this.#cancels.push(stream.send(this.#question, (reply) => this.#settle(stream, reply)))
    if (this.#attempts === 1 && this.#pool.count > 1)
      this.#hedge = setTimeout(() => this.#askAnother(stream), this.#timeoutMs * HEDGE_SHARE)
  }

  #askAnother(stream: PdpStream): void {
    // Two questions in the place of one would be the wrong help for this process.
    if (this.#wasBusy()) return
    this.#pool.markSlow(stream)
    const choice = this.#attempts < ATTEMPTS_MAX ? this.#pool.choose(stream) : null
    if (choice?.kind === 'stream') this.#askOver(choice.stream)
  }

  #expire(): void {
    if (this.#over) return
    const wasBusy = this.#wasBusy()
    if (!wasBusy) for (const stream of this.#pending) this.#pool.markFailed(stream)
    this.#fail(wasBusy ? 'this sidecar was too busy to read an answer in time' : 'no answer in time')
  }

  #wasBusy(): boolean {
    const { lag } = this.#pool
    return lag.since(this.#startedMs) >= LAG_SHARE * (performance.now() - this.#startedMs)
  }

  #settle(stream: PdpStream, reply: Reply): void {
    this.#pending.delete(stream)
    if (reply.kind === 'lost') this.#askAgain(stream, 'the connection was lost twice')
    else if (reply.kind === 'error') this.#settleError(stream, reply.code)
    else this.#settleDecision(stream, reply.decision)
  }

  #settleDecision(stream: PdpStream, decision: Decision): void {
    this.#pool.markHealthy(stream)
    const answer = readAnswer(decision, this.#question)
    if (answer === null) {
      this.#fail('the answer does not fit the question')
    } else {
      this.#finish()
      this.#resolve(answer)
    }
  }

  #settleError(stream: PdpStream, code: string): void {
    const reason = `the PDP answered ${code}`
    if (isAddressError(code)) {
      this.#pool.markUnable(stream)
      this.#askElsewhere(stream, reason)
    } else {
      this.#pool.markHealthy(stream)
      this.#fail(reason, code)
    }
  }

  #askAgain(stream: PdpStream, reason: string): void {
    if (this.#attempts < ATTEMPTS_MAX) this.#attempt(stream)
    else if (this.#pending.size === 0) this.#fail(reason)
  }

  /** Not at the same address: it has answered. */
  #askElsewhere(stream: PdpStream, reason: string): void {
    const choice = this.#attempts < ATTEMPTS_MAX ? this.#pool.choose(stream) : null
    if (choice?.kind === 'stream') this.#askOver(choice.stream)
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
    this.#pool.waiting.delete(this.#wake)
    for (const cancel of this.#cancels) cancel()
  }
}
