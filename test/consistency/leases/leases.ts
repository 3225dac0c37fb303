/** `npm run consistency -- --leases [--schedules N]`: none wrong in any schedule, and each planted mistake is shown by one. */
import { ANNOUNCEMENT, createWait, mayRemove, mayWrite } from '../../../pdp/engine/store/leases/announced-write.ts'
import { NodeLease, takesEffect } from '../../../pdp/engine/store/leases/node-lease.ts'
import { LEASE_MISTAKES, loadEngine, type Mistake, SETUPS } from './mistakes.ts'
import type { Engine } from './node.ts'
import { simulateLeases } from './simulate.ts'
import type { Setup } from './world.ts'

export type Played = { readonly leased: number; readonly written: number; readonly wrong: string | null }
export const ENGINE: Engine = { ANNOUNCEMENT, createWait, mayRemove, mayWrite, NodeLease, takesEffect }
const MISTAKE_SEEDS_MAX = 20_000
const REPORT_EVERY = 1_000

/** Up to the first wrong answer, with the seed that replays it. */
export function playSeeds(
  engine: Engine,
  setup: Setup,
  seeds: { readonly from: number; readonly count: number },
): Played {
  let [leased, written] = [0, 0]
  for (let seed = seeds.from; seed < seeds.from + seeds.count; seed++) {
    const outcome = simulateLeases(seed, engine, setup)
    leased += outcome.leased
    written += outcome.written
    if (outcome.wrong !== null) return { leased, written, wrong: `schedule ${seed}: ${outcome.wrong}` }
  }
  return { leased, written, wrong: null }
}

/** Null: no schedule showed it. The one that showed it before comes first. */
export async function findMistake({ name, edits, setup, foundAt }: Mistake): Promise<string | null> {
  const engine = await loadEngine(name, edits)
  const { wrong } = playSeeds(engine, setup, { from: foundAt, count: 1 })
  return wrong ?? playSeeds(engine, setup, { from: 1, count: MISTAKE_SEEDS_MAX }).wrong
}

/** `schedules`: in all, and the first seed of each set-up. @returns the exit code. */
export async function playLeases(of: { readonly schedules: number; readonly firstSeed: number }): Promise<number> {
  const each = Math.ceil(of.schedules / SETUPS.length)
  let [played, leased, written, wrongCount] = [0, 0, 0, 0]
  for (let done = 0; done < each; done += REPORT_EVERY) {
    const seeds = { from: of.firstSeed + done, count: Math.min(REPORT_EVERY, each - done) }
    for (const [name, setup] of SETUPS) {
      const outcome = playSeeds(ENGINE, setup, seeds)
      leased += outcome.leased
      written += outcome.written
      played += seeds.count
      if (outcome.wrong === null) continue
      wrongCount++
      console.log(`WRONG: ${name}: ${outcome.wrong}`)
    }
    console.log(`${played} schedules, ${leased} answers from memory, ${written} writes, ${wrongCount} wrong`)
  }
  let shown = 0
  for (const mistake of LEASE_MISTAKES) {
    const found = await findMistake(mistake)
    if (found !== null) shown++
    console.log(`planted: ${mistake.name}: ${found ?? 'NOT SHOWN'}`)
  }
  console.log(`${played} schedules, ${wrongCount} wrong; ${shown} of ${LEASE_MISTAKES.length} planted mistakes shown`)
  return wrongCount === 0 && shown === LEASE_MISTAKES.length ? 0 : 1
}
