/** Counts what gRPC callers hold in this process. One caller may hold a quarter of the total, and a group of callers half. */
import type { GrpcCaller } from '../authentication/grpc-callers.ts'

/** Limits for all callers together. `bytes`: those of open and watched questions, and of answers that were not sent yet. */
const TOTALS = {
  streams: 10_000,
  watched: 100_000,
  tokenCharacters: 128 * 1024 * 1024,
  bytes: 256 * 1024 * 1024,
} as const
type Kind = keyof typeof TOTALS
type Counts = { [kind in Kind]: number }

export type Holding = {
  /** Takes the amount; false: it would exceed a limit, and nothing was taken. */
  take(kind: Kind, amount: number): boolean
  give(kind: Kind, amount: number): void
}
export type Budgets = {
  of(caller: GrpcCaller): Holding
  /** The share of each limit that all callers together hold, from 0 to 1. */
  used(): Counts
}

/** Takes the amount and returns a function that gives it back. Null: that would exceed a limit. */
export function hold(holding: Holding, kind: Kind, amount: number): (() => void) | null {
  if (!holding.take(kind, amount)) return null
  let held = true
  return () => {
    if (held) holding.give(kind, amount)
    held = false
  }
}

export function createBudgets(totals: { readonly [kind in Kind]: number } = TOTALS): Budgets {
  const all = none()
  /** The amounts in use, by the name of the caller or group. */
  const shares = new Map<string, Counts>()

  return {
    used: () => ({
      streams: all.streams / totals.streams,
      watched: all.watched / totals.watched,
      tokenCharacters: all.tokenCharacters / totals.tokenCharacters,
      bytes: all.bytes / totals.bytes,
    }),
    of({ name, group }) {
      const parts = [{ name, ratio: 1 / 4 }, ...(group === null ? [] : [{ name: group, ratio: 1 / 2 }])]
      return {
        take(kind, amount) {
          if (all[kind] + amount > totals[kind]) return false
          for (const part of parts)
            if ((shares.get(part.name)?.[kind] ?? 0) + amount > totals[kind] * part.ratio) return false
          all[kind] += amount
          for (const part of parts) {
            const held = shares.get(part.name) ?? none()
            held[kind] += amount
            shares.set(part.name, held)
          }
          return true
        },
        give(kind, amount) {
          if (!shares.has(name)) return
          all[kind] -= amount
          for (const part of parts) {
            const held = shares.get(part.name) ?? none()
            held[kind] -= amount
            if (held.streams + held.watched + held.tokenCharacters + held.bytes === 0) shares.delete(part.name)
          }
        },
      }
    },
  }
}

const none = (): Counts => ({ streams: 0, watched: 0, tokenCharacters: 0, bytes: 0 })
