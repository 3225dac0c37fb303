/** `npm run consistency -- --leases [--schedules N]`: none wrong in any schedule, and each planted mistake is shown by one. */
import { NodeLease, REGISTRY } from '../../../pdp/engine/store/leases/node-lease.ts'
import { FENCE, SoleLease } from '../../../pdp/engine/store/leases/sole-lease.ts'
import { LEASE_MISTAKES, loadPlanted, type Mistake, SETUPS } from './mistakes.ts'
import { type Outcome, simulateLeases } from './simulate.ts'
import { simulateSole } from './sole.ts'
import { SOLE_MISTAKES, SOLE_SETUPS } from './sole-mistakes.ts'

type Played = Pick<Outcome, 'leased' | 'written' | 'wrong'>
type Play = (seed: number) => Outcome
export type Case<T> = readonly [name: string, case_: T]

const REAL = { NodeLease, REGISTRY }
const REAL_SOLE = { FENCE, SoleLease }
const MISTAKE_SEEDS_MAX = 20_000
const REPORT_EVERY = 1_000

export const RIGHT: readonly Case<Play>[] = [
  ...SETUPS.map(([name, setup]) => [name, (seed: number) => simulateLeases(seed, REAL, setup)] as const),
  ...SOLE_SETUPS.map(([name, setup]) => [name, (seed: number) => simulateSole(seed, REAL_SOLE, setup)] as const),
]

const planted = (mistakes: readonly Mistake[], load: (mistake: Mistake) => Promise<Play>) =>
  mistakes.map((mistake) => [mistake.name, async () => find(await load(mistake), mistake.foundAt)] as const)

/** Each finds the schedule that shows it. */
export const MISTAKES: readonly Case<() => Promise<string | null>>[] = [
  ...planted(LEASE_MISTAKES, async (mistake) => {
    const engine = await loadPlanted(mistake, 'node-lease.ts')
    return (seed) => simulateLeases(seed, engine as typeof REAL, mistake.setup)
  }),
  ...planted(SOLE_MISTAKES, async (mistake) => {
    const engine = await loadPlanted(mistake, 'sole-lease.ts')
    return (seed) => simulateSole(seed, engine as typeof REAL_SOLE, mistake.setup)
  }),
]

/** Up to the first wrong answer, with the seed that replays it. */
export function playSeeds(play: Play, seeds: { readonly from: number; readonly count: number }): Played {
  let [leased, written] = [0, 0]
  for (let seed = seeds.from; seed < seeds.from + seeds.count; seed++) {
    const outcome = play(seed)
    leased += outcome.leased
    written += outcome.written
    if (outcome.wrong !== null) return { leased, written, wrong: `schedule ${seed}: ${outcome.wrong}` }
  }
  return { leased, written, wrong: null }
}

/** Null: no schedule shows it. The one that showed it before comes first. */
const find = (play: Play, foundAt: number): string | null =>
  playSeeds(play, { from: foundAt, count: 1 }).wrong ?? playSeeds(play, { from: 1, count: MISTAKE_SEEDS_MAX }).wrong

/** `schedules`: in all. `firstSeed`: of each set-up. @returns the exit code. */
export async function playLeases(of: { readonly schedules: number; readonly firstSeed: number }): Promise<number> {
  const each = Math.ceil(of.schedules / RIGHT.length)
  let [played, leased, written, wrongCount] = [0, 0, 0, 0]
  for (let done = 0; done < each; done += REPORT_EVERY) {
    const seeds = { from: of.firstSeed + done, count: Math.min(REPORT_EVERY, each - done) }
    for (const [name, play] of RIGHT) {
      const outcome = playSeeds(play, seeds)
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
  for (const [name, search] of MISTAKES) {
    const found = await search()
    if (found !== null) shown++
    console.log(`planted: ${name}: ${found ?? 'NOT SHOWN'}`)
  }
  console.log(`${played} schedules, ${wrongCount} wrong; ${shown} of ${MISTAKES.length} planted mistakes shown`)
  return wrongCount === 0 && shown === MISTAKES.length ? 0 : 1
}
