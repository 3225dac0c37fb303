/** Medians, spread and shares of what was measured in turn. */
import { setTimeout as delay } from 'node:timers/promises'

/** Of all rounds: the middle one, the least and the most. */
export type Spread = { readonly median: number; readonly least: number; readonly most: number }
export type Latency = {
  readonly p50: number
  readonly p99: number
  readonly p999: number
  readonly max: number
  readonly count: number
}

export function spreadOf(values: readonly number[]): Spread {
  const sorted = values.toSorted((a, b) => a - b)
  return { median: sorted[sorted.length >> 1] ?? 0, least: sorted[0] ?? 0, most: sorted.at(-1) ?? 0 }
}

/** Round by round, so that a slow moment of the machine falls on both. */
export const ratios = (ours: readonly number[], theirs: readonly number[]): Spread =>
  spreadOf(ours.flatMap((value, round) => ((theirs[round] ?? 0) > 0 ? [value / (theirs[round] ?? 1)] : [])))

export function latencyOf(timesMs: readonly number[]): Latency {
  const sorted = timesMs.toSorted((a, b) => a - b)
  const share = (part: number): number => sorted[Math.min(sorted.length - 1, Math.floor(part * sorted.length))] ?? 0
  return { p50: share(0.5), p99: share(0.99), p999: share(0.999), max: sorted.at(-1) ?? 0, count: sorted.length }
}

/** Three digits that count. */
export function short(value: number): string {
  if (value === 0) return '0'
  const size = Math.abs(value)
  if (size >= 1e6) return `${(value / 1e6).toFixed(2)} M`
  if (size >= 100) return Math.round(value).toLocaleString('en')
  return value.toFixed(size >= 10 ? 1 : size >= 1 ? 2 : 3)
}

export const spreadText = ({ median, least, most }: Spread): string =>
  `${short(median)} (${short(least)}–${short(most)})`

/** Closed: so many callers, each of whom waits for its answer. Open: so many calls a second, whether or not answers come. */
export type Manner = { readonly ms: number } & ({ readonly callers: number } | { readonly rate: number })
export type Loaded = { readonly perSecond: number; readonly timesMs: readonly number[] }

/** Calls until the time is over. `call` throws when an answer is wrong. */
export async function load(call: (i: number) => Promise<unknown>, manner: Manner): Promise<Loaded> {
  const timesMs: number[] = []
  let next = 0
  async function timed(): Promise<void> {
    const sentMs = performance.now()
    await call(next++)
    timesMs.push(performance.now() - sentMs)
  }
  const begin = performance.now()
  await ('rate' in manner ? open(timed, manner) : closed(timed, manner))
  return { perSecond: (timesMs.length / (performance.now() - begin)) * 1_000, timesMs }
}

async function closed(timed: () => Promise<void>, manner: { readonly callers: number; readonly ms: number }) {
  const endMs = performance.now() + manner.ms
  await Promise.all(
    Array.from({ length: manner.callers }, async () => {
      while (performance.now() < endMs) await timed()
    }),
  )
}

/** The pauses are random, so that calls do not come in step. */
async function open(timed: () => Promise<void>, manner: { readonly rate: number; readonly ms: number }) {
  const endMs = performance.now() + manner.ms
  const calls: Promise<void>[] = []
  for (let dueMs = performance.now(); dueMs < endMs; dueMs += (-Math.log(1 - Math.random()) * 1_000) / manner.rate) {
    const waitMs = dueMs - performance.now()
    if (waitMs > 0) await delay(waitMs)
    calls.push(timed())
  }
  await Promise.all(calls)
}
