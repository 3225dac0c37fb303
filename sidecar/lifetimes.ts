/** Ends what lasts longer than its permission: at the token's expiry, and when its standing question turns to a denial. */
import type { ProblemCode } from '../pdp/process/problems.ts'
import type { PdpAnswer, PdpQuestion } from './pdp-question.ts'

/** Why, and on what, a permitted exchange may go on. */
export type Standing = {
  readonly question: PdpQuestion
  /** When the token expires, in milliseconds since the epoch. */
  readonly expiresAtMs: number
  /** Null: still permitted. `pdp_unavailable`: this answer does not say. */
  readonly judge: (answer: PdpAnswer) => ProblemCode | null
  /** Asks again whenever the answer changes. */
  readonly watch: (onAnswer: (answer: PdpAnswer | null) => void) => () => void
}
export type Lifetimes = {
  /** `cut` is called once at most, and not after the returned function, which says that the exchange has ended. */
  begin(standing: Standing, cut: (code: ProblemCode) => void): () => void
  close(): void
}
type Lifetime = {
  readonly standing: Standing
  readonly cut: (code: ProblemCode) => void
  readonly askAtMs: number
  readonly endAtMs: number
  stop: (() => void) | null
  /** Where it is in the list of those that go on; -1: it has ended. */
  at: number
  /** Since when nothing is known; null: the last answer was an allow. */
  unconfirmedSinceMs: number | null
}

const SWEEP_MS = 100
/** Most exchanges are over by then, and cost nothing. */
const ASK_AFTER_MS = 400

export function createLifetimes(options: {
  readonly clock: () => number
  /** For how long an exchange goes on while the PDP cannot be asked. */
  readonly unconfirmedMaxMs: number
  /** Tokens are accepted for this long after their expiry. */
  readonly expiryLeewayMs: number
}): Lifetimes {
  const { clock, unconfirmedMaxMs, expiryLeewayMs } = options
  // Not a Set: whenever one is packed, its former table keeps what it held from being collected while that was young.
  const open: Lifetime[] = []
  const sweeping = setInterval(sweep, SWEEP_MS).unref()

  function sweep(): void {
    const nowMs = clock()
    // Backwards, since the last one takes the place of one that ends.
    for (let at = open.length - 1; at >= 0; at -= 1) {
      const lifetime = open[at]
      if (lifetime === undefined) continue
      const { askAtMs, endAtMs, unconfirmedSinceMs } = lifetime
      if (nowMs >= endAtMs) cut(lifetime, 'token_expired')
      else if (lifetime.stop === null && nowMs >= askAtMs) ask(lifetime, nowMs)
      else if (unconfirmedSinceMs !== null && nowMs - unconfirmedSinceMs >= unconfirmedMaxMs)
        cut(lifetime, 'pdp_unavailable')
    }
  }

  function ask(lifetime: Lifetime, nowMs: number): void {
    lifetime.unconfirmedSinceMs = nowMs
    lifetime.stop = lifetime.standing.watch((answer) => {
      if (lifetime.at < 0) return
      const code = answer === null ? 'pdp_unavailable' : lifetime.standing.judge(answer)
      if (code === null) lifetime.unconfirmedSinceMs = null
      else if (code === 'pdp_unavailable') lifetime.unconfirmedSinceMs ??= clock()
      else cut(lifetime, code)
    })
    // The first answer may have come at once.
    if (lifetime.at < 0) lifetime.stop()
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
    begin(standing, onCut) {
      const nowMs = clock()
      const { expiresAtMs } = standing
      const endAtMs = nowMs < expiresAtMs ? expiresAtMs : expiresAtMs + expiryLeewayMs
      const askAtMs = nowMs + ASK_AFTER_MS
      const at = open.length
      const lifetime: Lifetime = { standing, cut: onCut, askAtMs, endAtMs, stop: null, at, unconfirmedSinceMs: null }
      open.push(lifetime)
      return () => end(lifetime)
    },
    close() {
      clearInterval(sweeping)
      for (const lifetime of [...open]) end(lifetime)
    },
  }
}
