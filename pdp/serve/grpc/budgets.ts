/** Counts what each gRPC caller holds in this process. One caller may hold a quarter of the total. */

/** Limits for all callers together. `bytes`: of open and watched questions, and of answers that were not sent yet. */
const TOTALS = {
  streams: 10_000,
  watched: 100_000,
  tokenCharacters: 128 * 1024 * 1024,
  bytes: 256 * 1024 * 1024,
} as const
type Kind = keyof typeof TOTALS
type Counts = { [kind in Kind]: number }

export type Holding = {
  /** Takes nothing and returns false if that would exceed a limit. */
  take(kind: Kind, amount: number): boolean
  give(kind: Kind, amount: number): void
}
export type Budgets = {
  of(caller: string): Holding
  /** What all callers together hold of each limit, from 0 to 1. */
  used(): Counts
}

export function createBudgets(totals: { readonly [kind in Kind]: number } = TOTALS): Budgets {
  const all = none()
  const callers = new Map<string, Counts>()

  return {
    used: () => ({
      streams: all.streams / totals.streams,
      watched: all.watched / totals.watched,
      tokenCharacters: all.tokenCharacters / totals.tokenCharacters,
      bytes: all.bytes / totals.bytes,
    }),
    of: (caller) => ({
      take(kind, amount) {
        const own = callers.get(caller) ?? none()
        if (all[kind] + amount > totals[kind] || own[kind] + amount > totals[kind] / 4) return false
        all[kind] += amount
        own[kind] += amount
        callers.set(caller, own)
        return true
      },
      give(kind, amount) {
        const own = callers.get(caller)
        if (own === undefined) return
        all[kind] -= amount
        own[kind] -= amount
        if (own.streams + own.watched + own.tokenCharacters + own.bytes === 0) callers.delete(caller)
      },
    }),
  }
}

const none = (): Counts => ({ streams: 0, watched: 0, tokenCharacters: 0, bytes: 0 })
