/**
 * Growth: the input of somebody who is not known yet doubles, and the work on it grows at most 2.2 times. A table is a module that
 * exports `ROWS`; the tidy check compares the names in `runs` with what the guarded folders export.
 */
import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { setTimeout } from 'node:timers/promises'

export type Growth = {
  /** The subject of a sentence: `a path of scripts`. */
  readonly name: string
  /** Exported functions that the row runs: `sidecar/http/cookies.ts:separateCookies`. */
  readonly runs: readonly string[]
  /** The largest size that such an input can have. */
  readonly most: number
  /** Prepares an input of this size; the work on it may run many times. */
  readonly at: (size: number) => () => unknown
}
/** Of one row: how much more work twice the input is, and the time for the largest input. */
export type Grown = { readonly name: string; readonly growth: number; readonly mostMs: number }

export const GROWTH_MAX = 2.2
/** Enough that one step, where the input no longer fits into a cache of the processor, does not decide. */
const DOUBLINGS = 3
const ROUNDS = 5
const ROUND_MS = 1
/** Work that is really too much grows too much each time; other programs on the machine disturb one measurement, and some in a row. */
const TRIES_MAX = 24
const PAUSE_MS = 20

/** Over the last doublings below the largest size, on average. */
export async function growthOf({ name, most, at }: Growth): Promise<Grown> {
  const [small, large] = [at(Math.floor(most / 2 ** DOUBLINGS)), at(most)]
  let best: Grown | null = null
  for (let tries = 0; tries < TRIES_MAX && (best === null || best.growth > GROWTH_MAX); tries += 1) {
    if (tries > 0) await setTimeout(PAUSE_MS * tries)
    const [before, after] = [await leastMsOf(small), await leastMsOf(large)]
    const grown = { name, growth: (after / before) ** (1 / DOUBLINGS), mostMs: after }
    if (best === null || grown.growth < best.growth) best = grown
  }
  if (best === null) throw new TypeError('nothing was measured')
  return best
}

/**
 * The least time for one piece of work, over some rounds. A round is shorter than the turn that another program takes, so that the
 * least has none; the CPU time of a thread is counted in turns of 4 ms on many machines.
 */
async function leastMsOf(work: () => unknown): Promise<number> {
  let times = 1
  let least = Number.POSITIVE_INFINITY
  for (let round = 0; round < ROUNDS; ) {
    const begin = performance.now()
    for (let time = 0; time < times; time += 1) {
      const working = work()
      if (working instanceof Promise) await working
    }
    const ms = performance.now() - begin
    if (ms < ROUND_MS) {
      times *= ms < ROUND_MS / 8 ? 8 : 2
      continue
    }
    least = Math.min(least, ms / times)
    round += 1
  }
  return least
}

/** Plays the table at the path in a process of its own, whose heap has the bound that the chart gives. Rejects when it ends early. */
export async function playTable(
  path: string,
  { heapMb }: { readonly heapMb: number },
): Promise<ReadonlyMap<string, Grown>> {
  const main = new URL('main.ts', import.meta.url).pathname
  const child = spawn(process.execPath, [`--max-old-space-size=${heapMb}`, main, path], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const ended = new Promise<string>((resolve) => {
    child.on('close', (status, signal) => resolve(`${signal ?? status}`))
  })
  const grown = new Map<string, Grown>()
  let last = ''
  for await (const line of createInterface({ input: child.stdout })) {
    const said: Grown | { readonly begins: string } = JSON.parse(line)
    if ('begins' in said) last = said.begins
    else grown.set(said.name, said)
  }
  const status = await ended
  if (status !== '0') throw new Error(`the process ended with ${status} at the row: ${last}`)
  return grown
}
