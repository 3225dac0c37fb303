/** Ends open exchanges early: when the token expires, the PDP denies, the rules change, or the process stops. */
import type { ProblemCode } from '../../pdp/shared/base/problems.ts'
import type { PdpAnswer, PdpQuestion } from '../pdp-client/question.ts'

/** The facts that the permission of an open exchange depends on. */
export type PermissionBasis = {
  readonly question: PdpQuestion
  /** The token's expiry, in milliseconds since the epoch. */
  readonly expiresAtMs: number
  /** The reason for which the answer ends the exchange; null: still permitted. `pdp_unavailable`: the answer does not decide. */
  readonly evaluate: (answer: PdpAnswer) => ProblemCode | null
  /** Calls `onAnswer` with each new answer, and with null when no PDP answers, until the returned function is called. */
  readonly watch: (onAnswer: (answer: PdpAnswer | null) => void) => () => void
}
export type Reevaluation =
  | { readonly kind: 'permitted'; readonly basis: PermissionBasis | null }
  | { readonly kind: 'denied'; readonly code: ProblemCode }
/** An open exchange that was permitted. */
export type OpenExchange = {
  /** The facts that can end the permission; null: nothing can, as on a public route. */
  readonly basis: PermissionBasis | null
  /** True when the rules have changed since the exchange was permitted. */
  readonly stale: boolean
  /** Evaluates the exchange by the rules now in force. Never rejects. */
  readonly reevaluate: () => Promise<Reevaluation>
  /** True for an exchange that has no natural end: WebSockets and event streams. */
  readonly isEndless: () => boolean
  /** True when the session that let a browser in has been ended. Rejects when this cannot be known. Null: no session let it in. */
  readonly isSignedOut: (() => Promise<boolean>) | null
}
type Watched = {
  readonly exchange: OpenExchange
  readonly cancel: (code: ProblemCode) => void
  readonly askAtMs: number
  /** The time of the next check whether the session was ended. */
  sessionAtMs: number
  /** The time since which this cannot be known; null: it can. */
  sessionUnknownSinceMs: number | null
  basis: PermissionBasis | null
  endAtMs: number
  stop: (() => void) | null
  /** The index in the list of open exchanges; -1: the exchange has ended. */
  at: number
  /** The time since which no answer confirms the permission; null: the last answer was an allow. */
  unconfirmedSinceMs: number | null
  /** True: permitted by rules that are no longer in force. */
  stale: boolean
  /** Counts evaluations by new rules: only the result of the last one is used. */
  reevaluations: number
}

const SWEEP_MS = 100
/** The wait before the PDP is asked about an exchange again: most exchanges are over by then. An endless exchange does not wait. */
const ASK_AFTER_MS = 400
/** The time between two checks whether a session was ended. */
const SESSION_MS = 1_000

type WatchOptions = {
  readonly clock: () => number
  /** How long an exchange may continue while no PDP answers. */
  readonly unconfirmedMaxMs: number
  /** Tokens are accepted for this long after their expiry. */
  readonly expiryLeewayMs: number
}

export class PermissionWatch {
  readonly #options: WatchOptions
  // An array, because V8 copies a Set when it grows, and the old copy keeps short-lived entries from being collected young.
  readonly #open: Watched[] = []
  readonly #sweeping: NodeJS.Timeout
  #endlessMayStay = true

  constructor(options: WatchOptions) {
    this.#options = options
    this.#sweeping = setInterval(() => this.#sweep(), SWEEP_MS).unref()
  }

  /** Watches the exchange until the returned function is called, which must happen at its end. Calls `cancel` at most once before that. */
  begin(exchange: OpenExchange, cancel: (code: ProblemCode) => void): () => void {
    const { basis, stale } = exchange
    const askAtMs = this.#options.clock() + ASK_AFTER_MS
    const watched: Watched = {
      exchange,
      cancel,
      askAtMs,
      sessionAtMs: askAtMs,
      sessionUnknownSinceMs: null,
      basis,
      endAtMs: this.#endOf(basis),
      stop: null,
      at: this.#open.length,
      unconfirmedSinceMs: null,
      stale,
      reevaluations: 0,
    }
    this.#open.push(watched)
    return () => this.#end(watched)
  }

  /** The rules have changed: exchanges that stay open are evaluated by the new rules. */
  reevaluateAll(): void {
    for (const watched of this.#open) watched.stale = true
  }

  /** Ends endless exchanges, such as event streams, now and from now on. */
  cancelEndless(): void {
    this.#endlessMayStay = false
    this.#sweep()
  }

  /** Cancels every open exchange. */
  cancelAll(code: ProblemCode): void {
    for (const watched of [...this.#open]) this.#cancel(watched, code)
  }

  close(): void {
    clearInterval(this.#sweeping)
    for (const watched of [...this.#open]) this.#end(watched)
  }

  #sweep(): void {
    const nowMs = this.#options.clock()
    // Runs backwards, since the last exchange takes the index of one that ends.
    for (let at = this.#open.length - 1; at >= 0; at -= 1) {
      const watched = this.#open[at]
      if (watched === undefined) continue
      const { askAtMs, endAtMs, unconfirmedSinceMs, basis } = watched
      const { isSignedOut, isEndless } = watched.exchange
      if (nowMs >= endAtMs) this.#cancel(watched, 'token_expired')
      else if (!this.#endlessMayStay && isEndless()) this.#cancel(watched, 'draining')
      else if (watched.stale && nowMs >= askAtMs) void this.#reevaluate(watched, nowMs)
      else if (basis !== null && watched.stop === null && (nowMs >= askAtMs || isEndless()))
        this.#ask(watched, basis, nowMs)
      else if (unconfirmedSinceMs !== null && nowMs - unconfirmedSinceMs >= this.#options.unconfirmedMaxMs)
        this.#cancel(watched, 'pdp_unavailable')
      else if (isSignedOut !== null && nowMs >= watched.sessionAtMs) void this.#askSession(watched, isSignedOut, nowMs)
    }
  }

  async #askSession(watched: Watched, ask: () => Promise<boolean>, nowMs: number): Promise<void> {
    watched.sessionAtMs = nowMs + SESSION_MS
    const isSignedOut = await ask().catch(() => null)
    if (watched.at < 0) return
    if (isSignedOut === true) return this.#cancel(watched, 'token_invalid')
    if (isSignedOut === false) {
      watched.sessionUnknownSinceMs = null
      return
    }
    watched.sessionUnknownSinceMs ??= nowMs
    if (nowMs - watched.sessionUnknownSinceMs >= this.#options.unconfirmedMaxMs)
      this.#cancel(watched, 'session_unavailable')
  }

  async #reevaluate(watched: Watched, nowMs: number): Promise<void> {
    watched.stop?.()
    watched.reevaluations += 1
    Object.assign(watched, { stale: false, basis: null, stop: null, endAtMs: Number.POSITIVE_INFINITY })
    // Until the result is known, the exchange may continue for as long as without a PDP.
    watched.unconfirmedSinceMs ??= nowMs
    const { reevaluations } = watched
    const result = await watched.exchange.reevaluate()
    if (watched.at < 0 || watched.reevaluations !== reevaluations) return
    if (result.kind === 'denied') return this.#cancel(watched, result.code)
    const { basis } = result
    watched.basis = basis
    watched.endAtMs = this.#endOf(basis)
    if (basis === null) watched.unconfirmedSinceMs = null
    else if (!watched.stale) this.#ask(watched, basis, watched.unconfirmedSinceMs)
  }

  #ask(watched: Watched, basis: PermissionBasis, sinceMs: number): void {
    watched.unconfirmedSinceMs = sinceMs
    let over = false
    const stop = basis.watch((answer) => {
      if (watched.at < 0 || over) return
      const code = answer === null ? 'pdp_unavailable' : basis.evaluate(answer)
      if (code === null) watched.unconfirmedSinceMs = null
      else if (code === 'pdp_unavailable') watched.unconfirmedSinceMs ??= this.#options.clock()
      else this.#cancel(watched, code)
    })
    watched.stop = () => {
      over = true
      stop()
    }
    // `watch` may call back before it returns.
    if (watched.at < 0) watched.stop()
  }

  #endOf(basis: PermissionBasis | null): number {
    if (basis === null) return Number.POSITIVE_INFINITY
    const { expiresAtMs } = basis
    const { clock, expiryLeewayMs } = this.#options
    return clock() < expiresAtMs ? expiresAtMs : expiresAtMs + expiryLeewayMs
  }

  #end(watched: Watched): void {
    const last = this.#open.at(-1)
    if (watched.at < 0 || last === undefined) return
    this.#open[watched.at] = last
    last.at = watched.at
    this.#open.pop()
    watched.at = -1
    watched.stop?.()
  }

  #cancel(watched: Watched, code: ProblemCode): void {
    this.#end(watched)
    watched.cancel(code)
  }
}
