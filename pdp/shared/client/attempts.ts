/** Asks one question, at most at two PDPs, and settles once before the deadline. */
import type { Decision, StreamedQuestion } from './codec.ts'
import { isAddressError, type PdpPool } from './pool.ts'
import type { PdpStream, Reply } from './stream.ts'

const ATTEMPTS_MAX = 2
/** The part of the deadline after which a second address is asked, too. */
const HEDGE_SHARE = 0.4
/** A timeout is no failure of the PDP if this process was busy for this part of the wait. */
const LAG_SHARE = 0.2

export type Asking<Answer> = {
  readonly question: StreamedQuestion
  /** The time for the question, with all attempts. */
  readonly timeoutMs: number
  /** The name of the asking process in errors. */
  readonly asker: string
  /** Reads the decision. Throws if it is about another question. */
  readonly read: (decision: Decision) => Answer
  /** Is called once, before the answer or the error is given. */
  readonly settled: () => void
  /** The error of an undecided question. `code`: the PDP's, `overloaded`, or `pdp_unavailable`. */
  readonly undecided: (reason: string, code: string) => Error
}

/** Rejects with what `undecided` makes, or with what `read` throws. */
export const ask = <Answer>(pool: PdpPool, asking: Asking<Answer>): Promise<Answer> =>
  new Promise((resolve, reject) => new QuestionAttempts(pool, asking, { resolve, reject }).begin())

type Settle<Answer> = { readonly resolve: (answer: Answer) => void; readonly reject: (error: unknown) => void }

class QuestionAttempts<Answer> {
  readonly #pool: PdpPool
  readonly #asking: Asking<Answer>
  readonly #settled: Settle<Answer>
  readonly #startedMs = performance.now()
  readonly #deadline: NodeJS.Timeout
  readonly #cancels: (() => void)[] = []
  readonly #pending = new Set<PdpStream>()
  readonly #wake = (): void => this.#attempt(null)
  #hedge: NodeJS.Timeout | undefined
  #attempts = 0
  /** How many attempts no PDP evaluated, because it ended its stream before it read the question. */
  #untaken = 0
  #over = false

  constructor(pool: PdpPool, asking: Asking<Answer>, settled: Settle<Answer>) {
    this.#settled = settled
    this.#asking = asking
    this.#pool = pool
    // Timers run before I/O, so `setImmediate` lets an answer that has arrived be read first.
    this.#deadline = setTimeout(() => setImmediate(() => this.#expire()), asking.timeoutMs)
  }

  begin(): void {
    const { asker, timeoutMs } = this.#asking
    // This process could not read the answer in time, and the question would delay it even more.
    if (this.#pool.lag.isStarved(timeoutMs)) this.#fail(`${asker} is too busy to ask`, 'overloaded')
    else this.#attempt(null)
  }

  /** Asks over another stream than `except`. If none is open, waits for the next one to open, even if it is `except`. */
  #attempt(except: PdpStream | null): void {
    const choice = this.#pool.choose(except)
    if (choice.kind === 'wait' || (choice.kind === 'none' && except !== null)) this.#pool.waiting.add(this.#wake)
    else if (choice.kind === 'none') this.#fail('no PDP address is connected')
    else this.#askOver(choice.stream)
  }

  #askOver(stream: PdpStream): void {
    this.#attempts += 1
    this.#pending.add(stream)
    this.#cancels.push(stream.send(this.#asking.question, (reply) => this.#settle(stream, reply)))
    if (this.#attempts > 1 || this.#pool.count === 1) return
    clearTimeout(this.#hedge)
    this.#hedge = setTimeout(() => this.#askAnother(stream), this.#asking.timeoutMs * HEDGE_SHARE)
  }

  #askAnother(stream: PdpStream): void {
    // A second question would only add to the load of this process.
    if (this.#wasBusy()) return
    this.#pool.markSlow(stream)
    const choice = this.#attempts < ATTEMPTS_MAX ? this.#pool.choose(stream) : null
    if (choice?.kind === 'stream') this.#askOver(choice.stream)
  }

  #expire(): void {
    if (this.#over) return
    const wasBusy = this.#wasBusy()
    if (!wasBusy) for (const stream of this.#pending) this.#pool.markFailed(stream)
    if (wasBusy) this.#fail(`${this.#asking.asker} was too busy to read an answer in time`, 'overloaded')
    else this.#fail('the PDP did not answer in time')
  }

  #wasBusy(): boolean {
    const { lag } = this.#pool
    return lag.since(this.#startedMs) >= LAG_SHARE * (performance.now() - this.#startedMs)
  }

  #settle(stream: PdpStream, reply: Reply): void {
    this.#pending.delete(stream)
    if (reply.kind === 'lost') this.#askAgain(stream, reply.taken)
    else if (reply.kind === 'error') this.#settleError(stream, reply.code)
    else this.#settleDecision(stream, reply.decision)
  }

  #settleDecision(stream: PdpStream, decision: Decision): void {
    this.#pool.markHealthy(stream)
    this.#finish()
    try {
      this.#settled.resolve(this.#asking.read(decision))
    } catch (err) {
      this.#settled.reject(err)
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

  #askAgain(stream: PdpStream, taken: boolean): void {
    // A PDP that ended its stream before it read the question costs no attempt: in a rolling restart, each PDP may do so once.
    if (!taken && this.#untaken < this.#pool.count) {
      this.#untaken += 1
      this.#attempts -= 1
    }
    if (this.#attempts < ATTEMPTS_MAX) this.#attempt(stream)
    else if (this.#pending.size === 0) this.#fail('the connection was lost twice')
  }

  /** Asks another address, since this one has answered that it cannot decide. */
  #askElsewhere(stream: PdpStream, reason: string): void {
    const choice = this.#attempts < ATTEMPTS_MAX ? this.#pool.choose(stream) : null
    if (choice?.kind === 'stream') this.#askOver(choice.stream)
    else if (this.#pending.size === 0) this.#fail(reason)
  }

  #fail(reason: string, code = 'pdp_unavailable'): void {
    this.#finish()
    this.#settled.reject(this.#asking.undecided(reason, code))
  }

  #finish(): void {
    if (!this.#over) this.#asking.settled()
    this.#over = true
    clearTimeout(this.#deadline)
    clearTimeout(this.#hedge)
    this.#pool.waiting.delete(this.#wake)
    for (const cancel of this.#cancels) cancel()
  }
}
