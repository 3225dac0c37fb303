/** What a part of the suite measured: groups of ways to do the same thing, in turn, in one run. */

import { type Loaded, latencyOf, load, type Manner, ratios, type Spread, spreadOf } from '../report/figures.ts'
import { type CpuByRole, cpuByRole } from '../report/process-use.ts'
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
  /** CPU time for one, in microseconds: median of the rounds. Null: not measured. */
  readonly cpuUs: CpuByRole | null
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
  /** How it is called otherwise than by this process. */
  readonly load?: (manner: Manner) => Promise<Loaded>
  /** Processes that call, besides this one. */
  readonly callers?: readonly number[]
  /** Decisions of one call; 1 unless given. */
  readonly weight?: number
  /** A call that is too short to be timed repeats itself so often. */
  readonly repeats?: number
  /** What goes on while it is measured. Returns what ends it. */
  readonly beside?: () => () => Promise<void>
  /** How stale it is seen to be. */
  readonly stale?: () => Promise<Stale>
}

type Turns = {
  readonly roundMs: number
  readonly rounds: number
  readonly callers: number
  /** Calls a second for the latency; else it is that of the callers. */
  readonly rate?: number
}

/** Each way warm, then in turn, so that what else the machine does falls on all. */
export async function measureInTurn(ways: readonly Way[], turns: Turns): Promise<readonly Row[]> {
  const { roundMs, rounds, callers, rate } = turns
  const found = ways.map((way) => ({ way, full: [] as Round[], slow: [] as Round[] }))
  for (const { way } of found) await play(way, { callers, ms: roundMs / 2 })
  for (let round = 0; round < rounds; round++) {
    for (const { way, full } of found) full.push(await play(way, { callers, ms: roundMs }))
    if (rate === undefined) continue
    for (const { way, slow } of found) slow.push(await play(way, { rate, ms: roundMs }))
  }
  const rows: Row[] = []
  for (const { way, full, slow } of found) {
    const latencies = (rate === undefined ? full : slow).map(({ timesMs }) => latencyOf(timesMs))
    const median = (share: 'p50' | 'p99' | 'p999'): number =>
      spreadOf(latencies.map((one) => one[share])).median / (way.repeats ?? 1)
    rows.push({
      name: way.name,
      ours: way.ours,
      perSecond: full.map(({ perSecond }) => perSecond),
      p50Ms: median('p50'),
      p99Ms: median('p99'),
      p999Ms: median('p999'),
      unchecked: way.unchecked,
      stale: (await way.stale?.()) ?? null,
      cpuUs: medianCpu(full.map(({ cpuUs }) => cpuUs)),
    })
  }
  return rows
}

type Round = Loaded & { readonly cpuUs: CpuByRole }

async function play(way: Way, manner: Manner): Promise<Round> {
  const { call, weight = 1, repeats = 1, beside } = way
  const stop = beside?.()
  const { found, cpuUs } = await withCpu(
    () => way.load?.(manner) ?? load(call, manner),
    ({ timesMs }) => timesMs.length * weight * repeats,
    way.callers,
  )
  await stop?.()
  return { perSecond: found.perSecond * weight * repeats, timesMs: found.timesMs, cpuUs }
}

/** What one of so many took of each. */
export async function withCpu<T>(
  work: () => Promise<T>,
  countOf: (found: T) => number,
  callers?: readonly number[],
): Promise<{ readonly found: T; readonly cpuUs: CpuByRole }> {
  const before = cpuByRole(callers)
  const found = await work()
  const after = cpuByRole(callers)
  const each = (role: keyof CpuByRole): number => (1_000 * (after[role] - before[role])) / countOf(found)
  return { found, cpuUs: { caller: each('caller'), server: each('server'), database: each('database') } }
}

export function medianCpu(rounds: readonly CpuByRole[]): CpuByRole {
  const median = (role: keyof CpuByRole): number => spreadOf(rounds.map((one) => one[role])).median
  return { caller: median('caller'), server: median('server'), database: median('database') }
}

/** How many times as fast the reference is. */
export function against({ reference, rows }: Group, row: Row): Spread | null {
  const own = rows.find(({ name }) => name === reference)
  return own === undefined || own === row ? null : ratios(own.perSecond, row.perSecond)
}
