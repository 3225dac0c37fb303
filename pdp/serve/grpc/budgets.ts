/** Counts what the streams of each caller hold in this process. One caller may hold a quarter of the total. */

/** Limits for all callers together. One caller has at most a quarter of each. */
const TOTALS = { streams: 10_000, watched: 100_000, tokenCharacters: 128 * 1024 * 1024 } as const
type Kind = keyof typeof TOTALS
type Counts = { [kind in Kind]: number }

export type Holding = {
  /** Takes nothing and returns false if that would exceed a limit. */
  take(kind: Kind, amount: number): boolean
  give(kind: Kind, amount: number): void
}
export type Budgets = { of(caller: string): Holding }

export function createBudgets(totals: { readonly [kind in Kind]: number } = TOTALS): Budgets {
  const all: Counts = { streams: 0, watched: 0, tokenCharacters: 0 }
  const callers = new Map<string, Counts>()

  return {
    of: (caller) => ({
      take(kind, amount) {
        const own = callers.get(caller) ?? { streams: 0, watched: 0, tokenCharacters: 0 }
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
        if (Object.values(own).every((count) => count === 0)) callers.delete(caller)
      },
    }),
  }
}
