/** What a part of the suite measured: groups of ways to do the same thing, in turn, in one run. */
import { latencyOf, load, ratios, type Spread, spreadOf } from '../report/figures.ts'
import type { Stale } from '../report/stale.ts'

export type Row = {
  readonly name: string
  readonly ours: boolean
  /** Of each round. */
  readonly perSecond: readonly number[]
  readonly p50Ms: number
  readonly p99Ms: number
  readonly p999Ms: number
  /** What the reference checks or promises, and this one does not; '' for nothing. */
  readonly unchecked: string
  readonly stale: Stale | null
}
export type Group = {
  readonly title: string
  readonly unit: string
  /** The row that the others are compared with. */
  readonly reference: string
  readonly rows: readonly Row[]
}
export type Part = { readonly name: string; readonly groups: readonly Group[]; readonly missing: readonly string[] }
/** How long, and how much, one run takes. */
export type Extent = {
  readonly roundMs: number
  readonly rounds: number
  readonly revocations: number
  readonly waitMs: number
}
export const USUAL: Extent = { roundMs: 2_000, rounds: 3, revocations: 200, waitMs: 12_000 }
export const SHORT: Extent = { roundMs: 1_000, rounds: 3, revocations: 40, waitMs: 3_000 }

export type Way = {
  readonly name: string
  readonly ours: boolean
  readonly unchecked: string
  /** Throws when the answer is wrong. */
  readonly call: (i: number) => Promise<unknown>
  /** Decisions of one call; 1 unless given. */
  readonly weight?: number
  /** A call that is too short to be timed repeats itself so often. */
  readonly repeats?: number
  /** What goes on while it is measured. Returns what ends it. */
  readonly beside?: () => () => Promise<void>
  /** How stale it is seen to be. */
  readonly stale?: () => Promise<Stale>
}

/** Each way warm, then in turn, so that what else the machine does falls on all. */
export async function measureInTurn(
  ways: readonly Way[],
  { roundMs, rounds, callers }: { readonly roundMs: number; readonly rounds: number; readonly callers: number },
): Promise<readonly Row[]> {
  const found = ways.map((way) => ({
    way,
    perSecond: [] as number[],
    p50: [] as number[],
    p99: [] as number[],
    p999: [] as number[],
  }))
  for (const { call } of ways) await load(call, { callers, ms: roundMs / 2 })
  for (let round = 0; round < rounds; round++)
    for (const one of found) {
      const { call, weight = 1, repeats = 1, beside } = one.way
      const stop = beside?.()
      const { perSecond, timesMs } = await load(call, { callers, ms: roundMs })
      await stop?.()
      const { p50, p99, p999 } = latencyOf(timesMs)
      one.perSecond.push(perSecond * weight * repeats)
      one.p50.push(p50 / repeats)
      one.p99.push(p99 / repeats)
      one.p999.push(p999 / repeats)
    }
  const rows: Row[] = []
  for (const { way, perSecond, p50, p99, p999 } of found)
    rows.push({
      name: way.name,
      ours: way.ours,
      perSecond,
      p50Ms: spreadOf(p50).median,
      p99Ms: spreadOf(p99).median,
      p999Ms: spreadOf(p999).median,
      unchecked: way.unchecked,
      stale: (await way.stale?.()) ?? null,
    })
  return rows
}

/** How many times as fast the reference is. */
export function against({ reference, rows }: Group, row: Row): Spread | null {
  const own = rows.find(({ name }) => name === reference)
  return own === undefined || own === row ? null : ratios(own.perSecond, row.perSecond)
}
