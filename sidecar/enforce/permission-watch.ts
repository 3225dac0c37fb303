/** What is open, and what ends it early: its token's expiry, a denial, rules that changed, and the end of the process. */
import type { ProblemCode } from '../../pdp/process/problems.ts'
import type { PdpAnswer, PdpQuestion } from '../pdp-client/question.ts'

/** Why, and on what, a permitted exchange may go on. */
export type PermissionBasis = {
  readonly question: PdpQuestion
  /** When the token expires, in milliseconds since the epoch. */
  readonly expiresAtMs: number
  /** Null: still permitted. `pdp_unavailable`: this answer does not say. */
  readonly judge: (answer: PdpAnswer) => ProblemCode | null
  /** Asks again whenever the answer changes. */
  readonly watch: (onAnswer: (answer: PdpAnswer | null) => void) => () => void
}
export type JudgedAgain =
  | { readonly kind: 'permitted'; readonly standing: PermissionBasis | null }
  | { readonly kind: 'denied'; readonly code: ProblemCode }
/** One permitted exchange that is open. */
export type OpenExchange = {
  /** Null: on a public route. */
  readonly standing: PermissionBasis | null
  /** Other rules than those that permitted it are in force already. */
  readonly stale: boolean
  /** On what it may go on by the rules that are in force now. Never rejects. */
  readonly judgeAgain: () => Promise<JudgedAgain>
  /** True for what ends only when somebody ends it: WebSockets and streams of events. */
  readonly isEndless: () => boolean
}
export type PermissionWatch = {
  /** `cut` is called once at most, and not after the returned function, which says that the exchange has ended. */
  begin(exchange: OpenExchange, cut: (code: ProblemCode) => void): () => void
  /** The rules have changed: what is open is judged by the new ones, once it has lasted. */
  judgeAgain(): void
  /** From now on what would never end is told to go. */
  sendAway(): void
  /** Ends all that is open. */
  cutAll(code: ProblemCode): void
  close(): void
}
type Lifetime = {
  readonly exchange: OpenExchange
  readonly cut: (code: ProblemCode) => void
  readonly askAtMs: number
  standing: PermissionBasis | null
  endAtMs: number
  stop: (() => void) | null
  /** Where it is in the list of those that go on; -1: it has ended. */
  at: number
  /** Since when nothing is known; null: the last answer was an allow. */
  unconfirmedSinceMs: number | null
  /** It was permitted by rules that are not in force any more. */
  stale: boolean
  /** How often it was judged again; a judgement that a later one overtook does not count. */
  judgements: number
}

const SWEEP_MS = 100
/** Most exchanges are over by then, and cost nothing. */
const ASK_AFTER_MS = 400

export function createPermissionWatch(options: {
  readonly clock: () => number
  /** For how long an exchange goes on while the PDP cannot be asked. */
  readonly unconfirmedMaxMs: number
  /** Tokens are accepted for this long after their expiry. */
  readonly expiryLeewayMs: number
}): PermissionWatch {
  const { clock, unconfirmedMaxMs, expiryLeewayMs } = options
  // Not a Set: whenever one is packed, its former table keeps what it held from being collected while that was young.
  const open: Lifetime[] = []
  const sweeping = setInterval(sweep, SWEEP_MS).unref()
  let leaving = false

  function sweep(): void {
    const nowMs = clock()
    // Backwards, since the last one takes the place of one that ends.
    for (let at = open.length - 1; at >= 0; at -= 1) {
      const lifetime = open[at]
      if (lifetime === undefined) continue
      const { askAtMs, endAtMs, unconfirmedSinceMs, standing } = lifetime
      if (nowMs >= endAtMs) cut(lifetime, 'token_expired')
      else if (leaving && lifetime.exchange.isEndless()) cut(lifetime, 'draining')
      else if (lifetime.stale && nowMs >= askAtMs) void judgeOneAgain(lifetime, nowMs)
      else if (standing !== null && lifetime.stop === null && nowMs >= askAtMs) ask(lifetime, standing, nowMs)
      else if (unconfirmedSinceMs !== null && nowMs - unconfirmedSinceMs >= unconfirmedMaxMs)
        cut(lifetime, 'pdp_unavailable')
    }
  }

  async function judgeOneAgain(lifetime: Lifetime, nowMs: number): Promise<void> {
    lifetime.stop?.()
    lifetime.judgements += 1
    Object.assign(lifetime, { stale: false, standing: null, stop: null, endAtMs: Number.POSITIVE_INFINITY })
    // It goes on meanwhile, for no longer than without a PDP.
    lifetime.unconfirmedSinceMs ??= nowMs
    const { judgements } = lifetime
    const judged = await lifetime.exchange.judgeAgain()
    if (lifetime.at < 0 || lifetime.judgements !== judgements) return
    if (judged.kind === 'denied') return cut(lifetime, judged.code)
    const { standing } = judged
    lifetime.standing = standing
    lifetime.endAtMs = endOf(standing)
    if (standing === null) lifetime.unconfirmedSinceMs = null
    else if (!lifetime.stale) ask(lifetime, standing, lifetime.unconfirmedSinceMs)
  }

  function ask(lifetime: Lifetime, standing: PermissionBasis, sinceMs: number): void {
    lifetime.unconfirmedSinceMs = sinceMs
    let over = false
    const stop = standing.watch((answer) => {
      if (lifetime.at < 0 || over) return
      const code = answer === null ? 'pdp_unavailable' : standing.judge(answer)
      if (code === null) lifetime.unconfirmedSinceMs = null
      else if (code === 'pdp_unavailable') lifetime.unconfirmedSinceMs ??= clock()
      else cut(lifetime, code)
    })
    lifetime.stop = () => {
      over = true
      stop()
    }
    // The first answer may have come at once.
    if (lifetime.at < 0) lifetime.stop()
  }

  function endOf(standing: PermissionBasis | null): number {
    if (standing === null) return Number.POSITIVE_INFINITY
    const { expiresAtMs } = standing
    return clock() < expiresAtMs ? expiresAtMs : expiresAtMs + expiryLeewayMs
  }

  function end(lifetime: Lifetime): void {
    const last = open.at(-1)
    if (lifetime.at < 0 || last === undefined) return
    open[lifetime.at] = last
    last.at = lifetime.at
    open.pop()
    lifetime.at = -1
    lifetime.stop?.()
  }

  function cut(lifetime: Lifetime, code: ProblemCode): void {
    end(lifetime)
    lifetime.cut(code)
  }

  return {
    begin(exchange, onCancel) {
      const { standing, stale } = exchange
      const lifetime: Lifetime = {
        exchange,
        cut: onCancel,
        askAtMs: clock() + ASK_AFTER_MS,
        standing,
        endAtMs: endOf(standing),
        stop: null,
        at: open.length,
        unconfirmedSinceMs: null,
        stale,
        judgements: 0,
      }
      open.push(lifetime)
      return () => end(lifetime)
    },
    judgeAgain() {
      for (const lifetime of open) lifetime.stale = true
    },
    sendAway() {
      leaving = true
      sweep()
    },
    cutAll(code) {
      for (const lifetime of [...open]) cut(lifetime, code)
    },
    close() {
      clearInterval(sweeping)
      for (const lifetime of [...open]) end(lifetime)
    },
  }
}
