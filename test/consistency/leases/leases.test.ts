/** A part of the leases' schedules, in which nothing may be wrong, and one for each mistake that they must show. */
import { describe, expect, test } from 'vitest'
import { effort } from '../../support/effort.ts'
import { ENGINE, findMistake, playSeeds } from './leases.ts'
import { LEASE_MISTAKES, SETUPS } from './mistakes.ts'

const TIMEOUT_MS = 600_000

describe('a process with a lease', () => {
  test.each(SETUPS)('answers right in every schedule with %s', { timeout: TIMEOUT_MS }, (_, setup) => {
    const count = effort({ short: 20, long: 2_000 })
    const { wrong, leased, written } = playSeeds(ENGINE, setup, { from: 1, count })
    expect(wrong).toBeNull()
    expect(leased).toBeGreaterThan(count * 20)
    expect(written).toBeGreaterThan(count)
  })

  const mistakes = LEASE_MISTAKES.map((mistake) => [mistake.name, mistake] as const)

  test.each(mistakes)('answers wrong in a schedule when %s', { timeout: TIMEOUT_MS }, async (_, mistake) => {
    expect(await findMistake(mistake)).not.toBeNull()
  })
})
