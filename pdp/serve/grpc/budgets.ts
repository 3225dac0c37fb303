/** What streams hold in this process, by caller: nobody takes more than a quarter of what there is for all. */

/** Of everybody together. One caller has a quarter of each at most. */
const TOTALS = { streams: 10_000, watched: 100_000, tokenCharacters: 128 * 1024 * 1024 } as const
type Kind = keyof typeof TOTALS
type Counts = { [kind in Kind]: number }

export type Holding = {
  /** False when there is no room: nothing is taken then. */
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
